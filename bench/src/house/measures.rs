//! Counts over a tree.

use std::collections::BTreeMap;

use super::{source_tree::SourceTree, syntax::Place};

pub(super) fn types(tree: &SourceTree) -> impl Iterator<Item = &Place> {
    tree.product.iter().flat_map(|file| &file.syntax.types)
}

/// Number of types of each name.
pub(super) fn count_types(tree: &SourceTree) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for place in types(tree) {
        *counts.entry(&*place.name).or_default() += 1;
    }
    counts
}

/// Number of words in `read_report` or `PciAddress`. Capitals in a row are one word: `XIDs`.
pub(super) fn count_words(name: &str) -> usize {
    let mut words = 0;
    let mut last = '_';
    for letter in name.chars() {
        let begins = last == '_' || (letter.is_uppercase() && !last.is_uppercase());
        words += usize::from(begins && letter != '_');
        last = letter;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_underscores_and_capitals() {
        let counts = [
            "of",
            "read_report",
            "_kept",
            "PciAddress",
            "XIDs",
            "nvmlInit",
        ];
        assert_eq!(counts.map(count_words), [1, 2, 1, 2, 1, 2]);
    }
}
