//! Places that make the source hard to read.

mod comments;
mod measures;
mod patterns;
mod places;
mod source_file;
mod source_tree;
mod syntax;
mod tokens;

use std::{
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use self::{places::PlaceKind, source_tree::SourceTree, syntax::Place};

/// List places that make the source hard to read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the places of this kind, as `path:line: name`
    #[arg(long, value_name = "KIND")]
    list: PlaceKind,

    /// Only places below this path, from the root of the repository on
    #[arg(long, value_name = "PATH")]
    under: Option<PathBuf>,
}

/// Prints the places that are asked for.
///
/// # Errors
/// If a file of the product is not Rust.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tree = SourceTree::read_folder(own.parent().unwrap_or(own))?;
    print(&write_places(&tree, args.list, args.under.as_deref()))
}

/// The places below a path, one to a line.
fn write_places(tree: &SourceTree, kind: PlaceKind, under: Option<&Path>) -> String {
    let places = places::list_places(tree, kind).into_iter();
    let below = places.filter(|(path, _)| under.is_none_or(|under| path.starts_with(under)));
    let lines = below.map(|(path, place)| {
        let Place { name, line } = place;
        format!("{}:{line}: {name}\n", path.display())
    });
    lines.collect()
}

/// Prints a text. A reader that closes the pipe early, such as `head`, is no error.
fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_the_places_of_a_figure_below_a_path() {
        let root = tempfile::tempdir().unwrap();
        let text = "/// What is read.\npub fn read() {}\nimpl A { fn new() {} fn read_all() {} }\n\
            impl B for A { fn fmt() {} }\nstruct Entry;\nfn g((a, b): (A, B)) {}\n";
        for name in ["one", "two"] {
            let folder = root.path().join("crates").join(name).join("src");
            fs_err::create_dir_all(&folder).unwrap();
            fs_err::write(folder.join("lib.rs"), text).unwrap();
        }
        let tree = SourceTree::read_folder(root.path()).unwrap();
        let list = |kind| write_places(&tree, kind, Some(Path::new("crates/two")));
        let at = |rest: &str| format!("crates/two/src/lib.rs:{rest}\n");
        assert_eq!(list(PlaceKind::Riddles), at("1: What is read."));
        assert_eq!(list(PlaceKind::OneWord), at("2: read") + &at("6: g"));
        assert_eq!(list(PlaceKind::Types), at("5: Entry"));
        assert_eq!(list(PlaceKind::TupleParams), at("6: g"));
        assert_eq!(list(PlaceKind::BoolMatch), "");
        assert_eq!(
            write_places(&tree, PlaceKind::Types, None).lines().count(),
            2
        );
    }
}
