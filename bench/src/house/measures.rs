//! Sums and shares over a tree, and their texts.

use std::collections::BTreeMap;

use super::{
    comments::{Comment, LineKind},
    source_file::SourceFile,
    source_tree::SourceTree,
    syntax::{Function, Place},
};

pub(super) fn functions(tree: &SourceTree) -> impl Iterator<Item = &Function> {
    tree.product.iter().flat_map(|file| &file.syntax.functions)
}

pub(super) fn types(tree: &SourceTree) -> impl Iterator<Item = &Place> {
    tree.product.iter().flat_map(|file| &file.syntax.types)
}

pub(super) fn comments(tree: &SourceTree) -> impl Iterator<Item = &Comment> {
    tree.product.iter().flat_map(|file| &file.comments)
}

pub(super) fn docs(tree: &SourceTree) -> impl Iterator<Item = &Comment> {
    comments(tree).filter(|comment| comment.is_doc)
}

/// The sum of a count over the files of the product.
pub(super) fn sum(tree: &SourceTree, count: fn(&SourceFile) -> usize) -> usize {
    tree.product.iter().map(count).sum()
}

/// Number of lines of the product.
pub(super) fn count_kept(tree: &SourceTree) -> usize {
    sum(tree, |file| file.lines.len())
}

/// Number of lines of some kinds.
pub(super) fn count_lines(tree: &SourceTree, kinds: &[LineKind]) -> usize {
    let lines = tree.product.iter().flat_map(|file| &file.lines);
    lines.filter(|kind| kinds.contains(kind)).count()
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

pub(super) fn write_sizes(tree: &SourceTree) -> String {
    let sizes = sorted(tree.product.iter().map(|file| file.lines.len()));
    let largest = sizes.last().copied().unwrap_or(0);
    format!("{} / {largest}", median_and_p90(&sizes))
}

pub(super) fn write_lengths(tree: &SourceTree) -> String {
    let lengths = sorted(functions(tree).map(|function| function.length));
    let long = share_of_functions(tree, |function| function.length > 60);
    format!("{} / {long}", median_and_p90(&lengths))
}

pub(super) fn mean_words<'a>(names: impl Iterator<Item = &'a Place>) -> String {
    let words: Vec<usize> = names.map(|place| count_words(&place.name)).collect();
    format!("{:.2}", quotient(words.iter().sum(), words.len()))
}

/// The share of types whose name no other type has.
pub(super) fn share_of_unique_types(tree: &SourceTree) -> String {
    let counts = count_types(tree);
    let unique = counts.values().filter(|count| **count == 1).count();
    percent(unique, counts.values().sum())
}

pub(super) fn share_of_functions(tree: &SourceTree, condition: fn(&Function) -> bool) -> String {
    let found = functions(tree).filter(|function| condition(function));
    percent(found.count(), functions(tree).count())
}

pub(super) fn share_of_docs(tree: &SourceTree, condition: fn(&Comment) -> bool) -> String {
    let found = docs(tree).filter(|comment| condition(comment));
    percent(found.count(), docs(tree).count())
}

pub(super) fn percent(part: usize, whole: usize) -> String {
    format!("{:.1} %", quotient(part, whole) * 100.0)
}

pub(super) fn per_thousand(part: usize, whole: usize) -> String {
    format!("{:.2}", quotient(part, whole) * 1000.0)
}

/// A count per 1000 lines of code.
pub(super) fn per_code(tree: &SourceTree, part: usize) -> String {
    per_thousand(part, count_lines(tree, &[LineKind::Code]))
}

fn sorted(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut values: Vec<usize> = values.collect();
    values.sort_unstable();
    values
}

fn median_and_p90(sorted: &[usize]) -> String {
    let value = |at: usize| sorted.get(at).copied().unwrap_or(0);
    format!(
        "{} / {}",
        value(sorted.len() / 2),
        value(sorted.len() * 9 / 10)
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts of lines and names")]
fn quotient(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn tree(text: &str) -> SourceTree {
        let file = SourceFile::parse(Path::new("crates/a/src/lib.rs"), text.to_owned()).unwrap();
        SourceTree {
            all_lines: 0,
            product: vec![file],
        }
    }

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

    #[test]
    fn every_type_of_a_shared_name_is_not_unique() {
        let tree = tree("struct A; mod b { struct A; enum C {} trait D {} }");
        assert_eq!(share_of_unique_types(&tree), "50.0 %");
    }

    #[test]
    fn medians_and_shares_are_of_all_functions() {
        let tree = tree("fn a() {}\nfn b_c() {\n}\nfn d() {\n\n\n}");
        assert_eq!(write_lengths(&tree), "2 / 4 / 0.0 %");
        assert_eq!(mean_words(functions(&tree).map(|f| &f.at)), "1.33");
        assert_eq!(share_of_functions(&tree, |f| f.length > 2), "33.3 %");
    }

    #[test]
    fn tests_and_comments_are_no_lines_of_code() {
        let tree = tree("// A.\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n");
        assert_eq!(
            (count_kept(&tree), count_lines(&tree, &[LineKind::Code])),
            (2, 1)
        );
        assert_eq!(per_code(&tree, 1), "1000.00");
    }
}
