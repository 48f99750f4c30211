//! Facts of a file's tokens, which are found inside macros too.

use std::ops::RangeInclusive;

use proc_macro2::{TokenStream, TokenTree};

/// Facts of a file's tokens.
#[derive(Debug, Default)]
pub(super) struct TokenFacts {
    /// Lines on which a text literal goes on that began above.
    pub(super) continued_lines: Vec<RangeInclusive<usize>>,
}

// === impl TokenFacts ===

impl TokenFacts {
    /// Reads a file's tokens.
    pub(super) fn read(stream: TokenStream) -> Self {
        let mut facts = Self::default();
        facts.read_group(stream);
        facts
    }

    fn read_group(&mut self, stream: TokenStream) {
        for tree in stream {
            match tree {
                TokenTree::Group(group) => self.read_group(group.stream()),
                TokenTree::Literal(literal) => {
                    let span = literal.span();
                    self.continued_lines
                        .push(span.start().line + 1..=span.end().line);
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}
