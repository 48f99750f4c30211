//! Facts of a file's tokens, which are found inside macros too.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::source_file::within;

/// Facts of the tokens outside tests.
#[derive(Debug, Default)]
pub(super) struct TokenFacts {
    /// Lines on which a text literal goes on that began above.
    pub(super) continued_lines: Vec<RangeInclusive<usize>>,
    /// Calls `.unwrap()`.
    pub(super) unwraps: usize,
    /// Calls `.expect(…)`.
    pub(super) expects: usize,
    /// `span!`, `info_span!` and so on, and `#[instrument]`.
    pub(super) spans: usize,
}

// === impl TokenFacts ===

impl TokenFacts {
    /// Reads a file's tokens, but for lines that are cut.
    pub(super) fn read(stream: TokenStream, cut: &[RangeInclusive<usize>]) -> Self {
        let mut facts = Self::default();
        facts.read_group(stream, cut);
        facts
    }

    fn read_group(&mut self, stream: TokenStream, cut: &[RangeInclusive<usize>]) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        for window in trees.windows(3) {
            let [dot, TokenTree::Ident(name), TokenTree::Group(arguments)] = window else {
                continue;
            };
            if is_punct(dot, '.') && !within(name.span().start().line, cut) {
                self.unwraps += usize::from(name == "unwrap" && arguments.stream().is_empty());
                self.expects += usize::from(name == "expect");
            }
        }
        for pair in trees.windows(2) {
            if !within(pair[0].span().start().line, cut) {
                self.spans += usize::from(opens_span(&pair[0], &pair[1]));
            }
        }
        for tree in trees {
            match tree {
                TokenTree::Group(group) => self.read_group(group.stream(), cut),
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

/// True for `info_span` before `!`, and for `#` before `[tracing::instrument]`.
fn opens_span(first: &TokenTree, second: &TokenTree) -> bool {
    match (first, second) {
        (TokenTree::Ident(name), mark) if is_punct(mark, '!') => {
            let name = name.to_string();
            name == "span" || name.ends_with("_span")
        }
        (hash, TokenTree::Group(attribute)) if is_punct(hash, '#') => {
            let is_bracket = attribute.delimiter() == Delimiter::Bracket;
            let names_it = |tree| matches!(tree, TokenTree::Ident(name) if name == "instrument");
            is_bracket && attribute.stream().into_iter().any(names_it)
        }
        _ => false,
    }
}

fn is_punct(tree: &TokenTree, mark: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str, cut: &[RangeInclusive<usize>]) -> TokenFacts {
        TokenFacts::read(text.parse().unwrap(), cut)
    }

    #[test]
    fn counts_calls_in_macros_but_not_in_comments_and_tests() {
        let text = "// a.unwrap()\nf!(a.unwrap(), b.expect(\"c\"));\n/// d.unwrap()\n\
            fn e() { x.unwrap_or(1); unwrap(); }\na.unwrap();";
        let found = facts(text, &[5..=5]);
        assert_eq!((found.unwraps, found.expects), (1, 1));
        assert_eq!(facts(text, &[]).unwraps, 2);
    }

    #[test]
    fn counts_spans_by_macro_and_by_attribute() {
        let text = "#[tracing::instrument(skip(a))] fn f() { info_span!(\"a\"); span!(b); }\n\
            fn g(span: Span) -> bool { !span && a.instrument(span) }";
        assert_eq!(facts(text, &[]).spans, 3);
    }
}
