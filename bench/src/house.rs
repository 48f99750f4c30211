//! Figures of how the source reads, beside those of an earlier commit and of other projects.

mod comments;
mod measures;
mod page;
mod patterns;
mod places;
mod rows;
mod source_file;
mod source_tree;
mod syntax;
mod tokens;

use std::{
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use self::{places::PlaceKind, source_tree::SourceTree, syntax::Place};
use crate::machine;

/// The commit that was reviewed.
const REVIEWED: &str = "48eef18";

/// Measure how the source reads, and write HOUSE.md.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the places that a figure counts, as `path:line: name`, and write nothing
    #[arg(long, value_name = "KIND")]
    list: Option<PlaceKind>,

    /// With --list: only places below this path, from the root of the repository on
    #[arg(long, value_name = "PATH", requires = "list")]
    under: Option<PathBuf>,

    /// Commit of the column "before"
    #[arg(long, value_name = "COMMIT", default_value = REVIEWED)]
    before: String,

    /// Commit of the column "now", and of --list [default: the files as they are]
    #[arg(long, value_name = "COMMIT")]
    now: Option<String>,

    /// Folder to write to [default: the folder of this program's source]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// A state of the code and the name of its commit.
#[derive(Debug)]
struct NamedTree {
    commit: String,
    tree: SourceTree,
}

/// Prints the places that are asked for, or prints and writes the page.
///
/// # Errors
/// If a file of the product is not Rust, a commit is missing, or the page cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.parent().unwrap_or(own);
    let now = NamedTree::read(root, args.now.as_deref())?;
    if let Some(kind) = args.list {
        return print(&write_places(&now.tree, kind, args.under.as_deref()));
    }
    let before = NamedTree::read(root, Some(&args.before))?;
    let page = page::write_page(&before, &now);
    let folder = args.output.as_deref().unwrap_or(own);
    fs_err::create_dir_all(folder)?;
    fs_err::write(folder.join("HOUSE.md"), &page)?;
    print(&page)
}

// === impl NamedTree ===

impl NamedTree {
    /// Reads a commit, or without one the files as they are.
    fn read(root: &Path, commit: Option<&str>) -> anyhow::Result<Self> {
        let Some(commit) = commit else {
            return Ok(Self {
                commit: machine::commit().unwrap_or_else(|| "unknown".to_owned()),
                tree: SourceTree::read_folder(root)?,
            });
        };
        let hash = machine::git(&["rev-parse", "--short=12", commit]);
        Ok(Self {
            commit: hash.unwrap_or_else(|| commit.to_owned()),
            tree: SourceTree::read_commit(root, commit)?,
        })
    }
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
