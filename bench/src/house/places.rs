//! The places behind the figures, for whoever wants to change them.

use std::path::Path;

use super::{
    comments::Comment,
    measures::{count_types, count_words},
    source_file::SourceFile,
    source_tree::SourceTree,
    syntax::{Function, Place},
};

/// Kinds of places.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum PlaceKind {
    /// Doc comments that open with What, How, Whether, Who, Whom, Whose, Where or Why
    Riddles,
    /// Functions whose name is one word, but for `new`, `main` and names that a trait chose
    OneWord,
    /// Types whose name another type has, too
    Types,
    /// Doc comments of three words or fewer
    ShortDocs,
    /// Uses of `match` on a bool
    BoolMatch,
    /// Functions with a tuple as a parameter
    TupleParams,
    /// Uses of `let x = x.…` directly below another `let x`
    Rebinding,
}

/// Places of a kind, in the order of paths and lines.
pub(super) fn list_places(tree: &SourceTree, kind: PlaceKind) -> Vec<(&Path, Place)> {
    let mut found = Vec::new();
    for file in &tree.product {
        let mut places = list_in_file(tree, file, kind);
        places.sort_by_key(|place| place.line);
        found.extend(places.into_iter().map(|place| (&*file.path, place)));
    }
    found
}

fn list_in_file(tree: &SourceTree, file: &SourceFile, kind: PlaceKind) -> Vec<Place> {
    let syntax = &file.syntax;
    match kind {
        PlaceKind::Riddles => list_docs(file, Comment::is_riddle),
        PlaceKind::ShortDocs => list_docs(file, Comment::is_short),
        PlaceKind::OneWord => list_functions(file, has_free_word),
        PlaceKind::TupleParams => list_functions(file, |function| function.tuple_parameter),
        PlaceKind::Types => {
            let types = count_types(tree);
            let shared = |place: &&Place| types[&*place.name] > 1;
            syntax.types.iter().filter(shared).cloned().collect()
        }
        PlaceKind::BoolMatch => syntax.bool_matches.clone(),
        PlaceKind::Rebinding => syntax.rebindings.clone(),
    }
}

/// The doc comments that meet a condition, each by its first line.
fn list_docs(file: &SourceFile, condition: fn(&Comment) -> bool) -> Vec<Place> {
    let docs = file.comments.iter().filter(|comment| comment.is_doc);
    let places = docs.filter(|doc| condition(doc)).map(|doc| Place {
        name: doc.text.lines().next().unwrap_or_default().to_owned(),
        line: doc.line,
    });
    places.collect()
}

fn list_functions(file: &SourceFile, condition: fn(&Function) -> bool) -> Vec<Place> {
    let functions = file.syntax.functions.iter().filter(|f| condition(f));
    functions.map(|function| function.at.clone()).collect()
}

/// True if the name is one word that the house could choose otherwise.
fn has_free_word(function: &Function) -> bool {
    let name = &function.at.name;
    !function.of_trait && count_words(name) == 1 && !["main", "new"].contains(&name.as_str())
}
