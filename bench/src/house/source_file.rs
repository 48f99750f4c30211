//! One Rust file of the product: its lines, comments, tokens and items.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use proc_macro2::TokenStream;
use syn::visit::Visit as _;

use super::{
    comments::{Comment, LineKind, join_comments, sort_lines},
    syntax::SyntaxFacts,
    tokens::TokenFacts,
};

/// A parsed file without its inline test modules.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// From the root of the tree on.
    pub(super) path: PathBuf,
    /// The kind of each line that is no test.
    pub(super) lines: Vec<LineKind>,
    pub(super) comments: Vec<Comment>,
    pub(super) syntax: SyntaxFacts,
    pub(super) tokens: TokenFacts,
}

// === impl SourceFile ===

impl SourceFile {
    /// Parses a file.
    ///
    /// # Errors
    /// If the text is not Rust.
    pub(super) fn parse(path: &Path, text: String) -> anyhow::Result<Self> {
        let refused = || format!("cannot parse {}", path.display());
        let stream: TokenStream = text.parse().ok().with_context(refused)?;
        let parsed: syn::File = syn::parse2(stream.clone()).with_context(refused)?;
        let mut syntax = SyntaxFacts::default();
        syntax.visit_file(&parsed);
        let cut = &syntax.test_lines;
        let tokens = TokenFacts::read(stream, cut);
        let kinds = sort_lines(&text, cut, &tokens.continued_lines);
        let mut lines: Vec<_> = kinds.iter().copied().flatten().collect();
        lines.truncate(
            lines
                .iter()
                .rposition(|kind| *kind != LineKind::Blank)
                .map_or(0, |at| at + 1),
        );
        Ok(Self {
            path: path.to_owned(),
            comments: join_comments(&text, &kinds),
            lines,
            syntax,
            tokens,
        })
    }

    /// Paths, without `.rs`, of the test modules that this file declares and does not contain.
    pub(super) fn test_modules(&self) -> impl Iterator<Item = PathBuf> {
        let stem = self.path.with_extension("");
        let root = ["lib", "main", "mod"]
            .iter()
            .any(|name| stem.ends_with(name));
        let folder = if root {
            self.path.parent()
        } else {
            Some(&*stem)
        };
        let folder = folder.unwrap_or(&stem).to_owned();
        let names = self.syntax.test_modules.iter();
        names.map(move |name| folder.join(name))
    }
}

/// True if a line, counted from 1, is in one of these ranges.
pub(super) fn within(line: usize, ranges: &[RangeInclusive<usize>]) -> bool {
    ranges.iter().any(|range| range.contains(&line))
}
