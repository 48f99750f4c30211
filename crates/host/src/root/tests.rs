//! Tests of both lookups, in folder trees with difficult links.

use std::{
    os::unix::fs::symlink,
    sync::atomic::{AtomicBool, Ordering},
};

use proptest::prelude::*;
use rstest::rstest;
use rustix::fs::{FileType, mknodat};
use tokio::time::{Duration, Instant};

use super::*;

const LONG: Duration = Duration::from_secs(30);

type Lookup = fn(&OwnedFd, &Path, LastLink) -> Result<OwnedFd, Errno>;

/// A root, and a folder beside it that no lookup may reach.
struct Tree {
    _folder: tempfile::TempDir,
    root: HostRoot,
    outside: PathBuf,
}

impl Tree {
    fn new(links: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, outside) = (base.join("root"), base.join("outside"));
        for folder in [&outside, &root.join("usr/lib"), &root.join("etc")] {
            fs_err::create_dir_all(folder).unwrap();
        }
        fs_err::write(outside.join("file"), "outside").unwrap();
        fs_err::write(root.join("usr/lib/file"), "inside\n").unwrap();
        for (path, target) in links {
            let target = target.replace("{outside}", outside.to_str().unwrap());
            symlink(target, root.join(path)).unwrap();
        }
        Self {
            _folder: folder,
            root: HostRoot::new(root),
            outside,
        }
    }

    /// Resolves a path by the given lookup.
    fn resolve(&self, lookup: Lookup, path: &str) -> Result<String, Errno> {
        let root = self.root.open_root().unwrap();
        let path: PathBuf = Path::new("/").join(path).components().collect();
        let found = name_of(&lookup(&root, &path, LastLink::Follow)?).unwrap();
        let inside = found.strip_prefix(self.root.root_folder());
        Ok(format!("/{}", inside.expect("it leads out").display()))
    }
}

#[rstest]
#[case::plain("/usr/lib/file", Ok("/usr/lib/file"))]
#[case::the_root("/", Ok("/"))]
#[case::above_the_root("/../../..", Ok("/"))]
#[case::up_and_down("/usr/../../usr/lib/./file", Ok("/usr/lib/file"))]
#[case::relative_link("/lib/file", Ok("/usr/lib/file"))]
#[case::absolute_link("/lib64/file", Ok("/usr/lib/file"))]
#[case::chain_of_parents("/up/file", Ok("/usr/lib/file"))]
#[case::absolute_link_out("/out", Err(Errno::NOENT))]
#[case::parents_that_lead_out("/far", Err(Errno::NOENT))]
#[case::back_to_the_root("/slash", Ok("/"))]
#[case::to_itself("/loop", Err(Errno::LOOP))]
#[case::one_to_the_other("/one", Err(Errno::LOOP))]
#[case::that_grows("/grow/x", Err(Errno::LOOP))]
#[case::to_nothing("/dangling", Err(Errno::NOENT))]
#[case::missing("/nothing/file", Err(Errno::NOENT))]
#[case::through_a_file("/usr/lib/file/x", Err(Errno::NOTDIR))]
#[case::back_from_a_file("/usr/lib/file/..", Err(Errno::NOTDIR))]
#[case::back_from_nothing("/nothing/../usr", Err(Errno::NOENT))]
#[case::a_file_as_a_folder("/slashed", Err(Errno::NOTDIR))]
#[case::a_slash_at_the_end("/usr/lib/file/", Ok("/usr/lib/file"))]
#[case::without_the_first_slash("usr/lib", Ok("/usr/lib"))]
#[case::nothing_at_all("", Ok("/"))]
fn links_stay_inside(
    #[values(find_by_kernel, walk)] lookup: Lookup,
    #[case] path: &str,
    #[case] expected: Result<&str, Errno>,
) {
    let tree = Tree::new(&[
        ("lib", "usr/lib"),
        ("lib64", "/usr/lib"),
        ("up", "../../../../../../../../usr/lib"),
        ("out", "{outside}/file"),
        ("far", "etc/../../outside/file"),
        ("slash", "/"),
        ("loop", "loop"),
        ("one", "two"),
        ("two", "/one"),
        ("grow", "grow/grow"),
        ("dangling", "/nothing"),
        ("slashed", "usr/lib/file/"),
    ]);
    let found = tree.resolve(lookup, path);
    assert_eq!(found.as_deref().map_err(|errno| *errno), expected);
    match (tree.root.resolve_path(path), expected) {
        (Ok(found), expected) => assert_eq!(found.to_str(), expected.ok()),
        (Err(error), expected) => assert_eq!(
            error.raw_os_error(),
            expected.err().map(|e| e.raw_os_error())
        ),
    }
}

#[rstest]
fn a_path_of_too_many_links_ends(#[values(find_by_kernel, walk)] lookup: Lookup) {
    let tree = Tree::new(&[]);
    for n in 0..=41 {
        let target = if n == 0 {
            "usr/lib/file".to_owned()
        } else {
            format!("l{}", n - 1)
        };
        symlink(target, tree.root.join_path(format!("l{n}"))).unwrap();
    }
    assert_eq!(tree.resolve(lookup, "/l39").unwrap(), "/usr/lib/file");
    assert_eq!(tree.resolve(lookup, "/l40"), Err(Errno::LOOP));
}

/// Another thread replaces a folder of the path by a link out of the root, again and again.
#[rstest]
fn a_swap_on_the_way_leads_nowhere_else(#[values(find_by_kernel, walk)] lookup: Lookup) {
    let tree = Tree::new(&[
        ("up", "../../outside"),
        ("absolute", "{outside}"),
        ("deep", "usr/lib/../lib/../../spot/file"),
    ]);
    let at = |name: &str| tree.root.join_path(name);
    fs_err::create_dir(at("spot")).unwrap();
    fs_err::write(at("spot/file"), "inside").unwrap();
    let stop = AtomicBool::new(false);
    let open = |path: &str| -> Result<String, Errno> {
        let root = tree.root.open_root().unwrap();
        let found = lookup(&root, Path::new(path), LastLink::Follow)?;
        Ok(fs_err::read_to_string(own_descriptor(&found)).unwrap())
    };
    let swap = || {
        while !stop.load(Ordering::Relaxed) {
            for link in ["up", "absolute"] {
                fs_err::rename(at("spot"), at("away")).unwrap();
                fs_err::rename(at(link), at("spot")).unwrap();
                fs_err::rename(at("spot"), at(link)).unwrap();
                fs_err::rename(at("away"), at("spot")).unwrap();
                // The pause lets the other thread see this state.
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    };
    let (mut found, mut missed, mut wrong) = (0, 0, Vec::new());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(swap);
        while (found < 200 || missed < 200) && begun.elapsed() < LONG {
            for path in ["/spot/file", "/deep"] {
                match open(path) {
                    Ok(text) if text == "inside" => found += 1,
                    Err(Errno::NOENT | Errno::AGAIN) => missed += 1,
                    other => wrong.push(other),
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(wrong, [], "{found} found, {missed} missed");
    assert!(found > 0 && missed > 0, "{found} found, {missed} missed");
    assert_eq!(fs_err::read(tree.outside.join("file")).unwrap(), b"outside");
}

#[rstest]
fn a_link_can_be_kept(#[values(find_by_kernel, walk)] lookup: Lookup) {
    let tree = Tree::new(&[("lib", "/usr/lib"), ("etc/link", "../nothing")]);
    let root = tree.root.open_root().unwrap();
    let link = |path: &str| {
        let found = lookup(&root, Path::new(path), LastLink::Keep)?;
        walk::read_target(&found)
    };
    assert_eq!(link("/lib").unwrap(), "/usr/lib");
    assert_eq!(link("/etc/link").unwrap(), "../nothing");
    assert_eq!(link("/lib/file"), Err(Errno::NOENT), "it is none");
    let read = |path: &str| tree.root.read_link(path).map_err(|error| error.kind());
    assert_eq!(read("/etc/link").unwrap(), Path::new("../nothing"));
    assert_eq!(read("/lib/file"), Err(io::ErrorKind::InvalidInput));
    assert_eq!(read("/none"), Err(io::ErrorKind::NotFound));
}

#[test]
fn files_are_read_through_links_and_nothing_else_is_opened() {
    let tree = Tree::new(&[
        ("lib", "/usr/lib"),
        ("zero", "/dev/zero"),
        ("out", "{outside}/file"),
    ]);
    let root = &tree.root;
    assert_eq!(root.read_trimmed("/lib/file").as_deref(), Some("inside"));
    assert!(root.has_path("/lib/file") && root.has_path("/lib"));
    for path in ["/zero", "/out", "/nothing"] {
        assert!(
            !root.has_path(path) && root.read_trimmed(path).is_none(),
            "{path}"
        );
    }
    let fifo = root.join_path("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    for path in ["/fifo", "/usr"] {
        let refused = root.open_file(path).unwrap_err();
        assert!(
            matches!(refused, small::Error::NotAFile),
            "{path}: {refused}"
        );
        assert!(
            root.has_path(path) && root.read_trimmed(path).is_none(),
            "{path}"
        );
    }
    let host = HostRoot::default();
    let refused = host.open_file("/dev/zero").unwrap_err();
    assert!(matches!(refused, small::Error::NotAFile), "{refused}");
    let large = fs_err::File::create(root.join_path("large")).unwrap();
    large.set_len(TEXT_LIMIT + 1).unwrap();
    assert_eq!(root.read_trimmed("/large"), None);
}

#[test]
fn a_folder_is_listed_through_links() {
    let tree = Tree::new(&[("lib", "/usr/lib"), ("usr/lib/link", "file")]);
    let entries = tree.root.read_dir("/lib").unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name(), entry.file_type().unwrap().is_symlink())
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    assert_eq!(entries, [("file".into(), false), ("link".into(), true)]);
    let kind = tree.root.read_dir("/usr/lib/file").unwrap_err().kind();
    assert_eq!(kind, io::ErrorKind::NotADirectory);
}

#[test]
fn a_root_may_come_later_and_be_reached_through_links() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    let root = HostRoot::new(&link);
    assert!(!root.has_path("/"));
    fs_err::create_dir_all(real.join("sys")).unwrap();
    symlink(&real, &link).unwrap();
    assert_eq!(root.resolve_path("/sys/../sys").unwrap(), Path::new("/sys"));
    assert_eq!(root.join_path("/sys"), link.join("sys"));
}

#[test]
fn stays_below_its_folder() {
    let root = HostRoot::new("/host");
    assert_eq!(
        root.join_path("/dev/nvidia0"),
        Path::new("/host/dev/nvidia0")
    );
    assert_eq!(
        root.join_path("dev/nvidia0"),
        Path::new("/host/dev/nvidia0")
    );
}

#[test]
fn an_absent_file_has_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let root = HostRoot::new(folder.path());
    assert_eq!(root.read_trimmed("/sys/nothing"), None);
    fs_err::write(folder.path().join("numa_node"), "3\n").unwrap();
    assert_eq!(root.read_trimmed("/numa_node").as_deref(), Some("3"));
}

const PARTS: [&str; 7] = ["a", "b", "c", "..", ".", "", "file"];

fn any_path() -> impl Strategy<Value = String> {
    let parts = proptest::collection::vec(proptest::sample::select(&PARTS[..]), 1..6);
    parts.prop_map(|parts| parts.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The walk in user space has the same results and errors as the kernel's lookup.
    #[test]
    fn both_lookups_agree(
        things in proptest::collection::vec((any_path(), any_path(), 0..3), 1..16),
        paths in proptest::collection::vec(any_path(), 1..24),
    ) {
        let tree = Tree::new(&[]);
        for (path, target, kind) in things {
            // Entries that cannot be made are skipped.
            let Ok(folder) = tree.root.resolve_path(Path::new(&path).parent().unwrap_or(Path::new(""))) else {
                continue;
            };
            let Some(name) = Path::new(&path).file_name() else { continue };
            let place = tree.root.join_path(folder).join(name);
            let _ = match kind {
                0 => fs_err::create_dir(place),
                1 if !target.is_empty() => symlink(target, place),
                _ => fs_err::write(place, "x"),
            };
        }
        for path in paths {
            let by_hand = tree.resolve(walk, &path);
            prop_assert_eq!(tree.resolve(find_by_kernel, &path), by_hand, "{}", path);
        }
    }
}
