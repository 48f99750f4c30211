//! The rows of the page: what is counted here, and the same of other projects.

use super::{
    comments::{Comment, LineKind},
    measures::{
        comments, count_kept, count_lines, count_words, docs, functions, mean_words, per_code,
        per_thousand, percent, share_of_docs, share_of_functions, share_of_unique_types, sum,
        types, write_lengths, write_sizes,
    },
    source_tree::SourceTree,
};

/// A figure: its name, and the text of its cell for a tree.
pub(super) type Row = (&'static str, fn(&SourceTree) -> String);

/// The rows in the order of the page.
pub(super) const ROWS: [Row; 27] = [
    ("Rust lines, all", |tree| tree.all_lines.to_string()),
    ("lines of the product", |tree| count_kept(tree).to_string()),
    ("of these, lines of code", |tree| {
        count_lines(tree, &[LineKind::Code]).to_string()
    }),
    ("files", |tree| tree.product.len().to_string()),
    ("file size, median / p90 / max", write_sizes),
    ("files over 500 lines", |tree| {
        let large = tree.product.iter().filter(|file| file.lines.len() > 500);
        percent(large.count(), tree.product.len())
    }),
    ("function length, median / p90 / over 60", write_lengths),
    ("functions over 25 lines", |tree| {
        share_of_functions(tree, |function| function.length > 25)
    }),
    ("function name, mean words", |tree| {
        mean_words(functions(tree).map(|function| &function.at))
    }),
    ("functions named by one word", |tree| {
        share_of_functions(tree, |function| count_words(&function.at.name) == 1)
    }),
    ("type name, mean words", |tree| mean_words(types(tree))),
    ("type names that are unique", share_of_unique_types),
    ("`//`, share of lines", |tree| {
        percent(
            count_lines(tree, &[LineKind::Comment, LineKind::Marker]),
            count_kept(tree),
        )
    }),
    ("`//` blocks per 1000 lines", |tree| {
        per_thousand(
            comments(tree).filter(|c| !c.is_doc).count(),
            count_kept(tree),
        )
    }),
    ("sourced comments per 1000 lines of code", |tree| {
        per_code(tree, comments(tree).filter(|c| c.has_source()).count())
    }),
    ("`///` and `//!`, share of lines", |tree| {
        percent(count_lines(tree, &[LineKind::Doc]), count_kept(tree))
    }),
    ("`pub` items documented", |tree| {
        let items = sum(tree, |file| file.syntax.public_items);
        percent(sum(tree, |file| file.syntax.documented_items), items)
    }),
    ("doc comments that are riddles", |tree| {
        share_of_docs(tree, Comment::is_riddle)
    }),
    ("doc comments of three words or fewer", |tree| {
        share_of_docs(tree, Comment::is_short)
    }),
    ("doc examples", |tree| {
        docs(tree)
            .map(Comment::count_examples)
            .sum::<usize>()
            .to_string()
    }),
    ("tests, share of all lines", |tree| {
        percent(tree.all_lines - count_kept(tree), tree.all_lines)
    }),
    ("`unwrap()` per 1000 lines of code", |tree| {
        per_code(tree, sum(tree, |file| file.tokens.unwraps))
    }),
    ("`expect(` per 1000 lines of code", |tree| {
        per_code(tree, sum(tree, |file| file.tokens.expects))
    }),
    ("tracing spans", |tree| {
        sum(tree, |file| file.tokens.spans).to_string()
    }),
    ("`match` on a bool", |tree| {
        sum(tree, |file| file.syntax.bool_matches.len()).to_string()
    }),
    ("functions with a tuple parameter", |tree| {
        functions(tree)
            .filter(|f| f.tuple_parameter)
            .count()
            .to_string()
    }),
    ("re-bindings", |tree| {
        sum(tree, |file| file.syntax.rebindings.len()).to_string()
    }),
];
