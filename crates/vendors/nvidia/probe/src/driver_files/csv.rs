//! Parser of the files in which a Tegra system lists what containers need. A line has a word for
//! the kind of file, a comma, and a path or a pattern.

/// Most characters of a file's text that are shown in a message.
const SHOWN: usize = 40;

/// Entry of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoardEntry {
    pub(super) kind: BoardEntryKind,
    /// Absolute path without `.` and `..`, or a pattern of such paths.
    pub(super) path: String,
}

/// Kind of file at the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoardEntryKind {
    /// `dev`: a device node.
    Node,
    /// `dir`: a folder.
    Folder,
    /// `lib`: a library or any other file.
    File,
    /// `sym`: a link to a file.
    Link,
}

/// Reason to skip a line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EntryError {
    #[error("it is no text")]
    Text,
    #[error("there is no comma between a kind and a path")]
    Comma,
    #[error("`{0}` is none of dev, dir, lib and sym")]
    Kind(String),
    #[error("there is no path")]
    NoPath,
    #[error("the path cannot be written down, or has `..` in it")]
    Path,
}

/// Returns the entries of a file with their line numbers. Empty lines and lines that begin with `#`
/// are skipped.
pub(super) fn parse_board_list(
    bytes: &[u8],
) -> impl Iterator<Item = (usize, Result<BoardEntry, EntryError>)> {
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    lines.filter_map(|(at, line)| Some((at + 1, parse_board_line(line)?)))
}

/// Parses a line; `None` for an empty line or a comment.
fn parse_board_line(line: &[u8]) -> Option<Result<BoardEntry, EntryError>> {
    let Ok(line) = std::str::from_utf8(line) else {
        return Some(Err(EntryError::Text));
    };
    let line = line.trim();
    (!line.is_empty() && !line.starts_with('#')).then(|| parse_board_entry(line))
}

/// Parses a line that is neither empty nor a comment.
fn parse_board_entry(line: &str) -> Result<BoardEntry, EntryError> {
    let (kind, path) = line.split_once(',').ok_or(EntryError::Comma)?;
    let kind = match kind.trim() {
        "dev" => BoardEntryKind::Node,
        "dir" => BoardEntryKind::Folder,
        "lib" => BoardEntryKind::File,
        "sym" => BoardEntryKind::Link,
        other => return Err(EntryError::Kind(shown(other))),
    };
    let path = path.trim();
    let parts = path.split('/').filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.filter(|part| *part != ".").collect();
    if parts.is_empty() {
        return Err(EntryError::NoPath);
    }
    if parts.contains(&"..") || path.contains(char::is_control) {
        return Err(EntryError::Path);
    }
    let path = format!("/{}", parts.join("/"));
    Ok(BoardEntry { kind, path })
}

/// Shortens a foreign text and replaces its control characters, for a message.
fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(SHOWN).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn one(line: &[u8]) -> Option<Result<BoardEntry, EntryError>> {
        let mut all: Vec<_> = parse_board_list(line).map(|(_, entry)| entry).collect();
        assert!(all.len() < 2);
        all.pop()
    }

    #[rstest]
    #[case("dev, /dev/nvmap", BoardEntryKind::Node, "/dev/nvmap")]
    #[case("dir,/usr/src/tensorrt/", BoardEntryKind::Folder, "/usr/src/tensorrt")]
    #[case(
        "  lib ,\t/usr//lib/./libcuda.so.1.1 \r",
        BoardEntryKind::File,
        "/usr/lib/libcuda.so.1.1"
    )]
    #[case("sym, usr/lib/libcuda.so", BoardEntryKind::Link, "/usr/lib/libcuda.so")]
    #[case("lib, /usr/lib/a, b.so", BoardEntryKind::File, "/usr/lib/a, b.so")]
    #[case("dev, /dev/nvhost-*", BoardEntryKind::Node, "/dev/nvhost-*")]
    fn a_line_is_a_kind_and_a_path(
        #[case] line: &str,
        #[case] kind: BoardEntryKind,
        #[case] path: &str,
    ) {
        let path = path.to_owned();
        assert_eq!(one(line.as_bytes()), Some(Ok(BoardEntry { kind, path })));
    }

    #[rstest]
    #[case(b"lib /usr/lib/x.so", EntryError::Comma)]
    #[case(b"blk, /dev/sda", EntryError::Kind("blk".to_owned()))]
    #[case(b"LIB, /x", EntryError::Kind("LIB".to_owned()))]
    #[case(b", /x", EntryError::Kind(String::new()))]
    #[case(b"lib,", EntryError::NoPath)]
    #[case(b"dir, /", EntryError::NoPath)]
    #[case(b"lib, /usr/../etc/shadow", EntryError::Path)]
    #[case(b"lib, /usr/a\x1bb", EntryError::Path)]
    #[case(b"lib, /\xff", EntryError::Text)]
    fn a_line_that_cannot_be_meant_says_why(#[case] line: &[u8], #[case] wrong: EntryError) {
        assert_eq!(one(line), Some(Err(wrong)));
    }

    #[test]
    fn comments_and_empty_lines_count_but_say_nothing() {
        let text = b"# the driver\n\n   \nlib, /a\n#lib, /b\nx";
        let found: Vec<_> = parse_board_list(text)
            .map(|(at, entry)| (at, entry.is_ok()))
            .collect();
        assert_eq!(found, [(4, true), (6, false)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            check(&bytes);
        }

        #[test]
        fn what_looks_like_a_file_is_read_or_refused(
            lines in proptest::collection::vec("(dev|dir|lib|sym|x)? ?,? ?[./*a\\[\\]\u{7f}]{0,12}", 0..8),
        ) {
            check(lines.join("\n").as_bytes());
        }
    }

    fn check(bytes: &[u8]) {
        let count = bytes.split(|byte| *byte == b'\n').count();
        for (at, entry) in parse_board_list(bytes) {
            assert!((1..=count).contains(&at));
            match entry {
                Ok(BoardEntry { path, .. }) => {
                    assert!(path.starts_with('/') && !path.contains(char::is_control));
                    let mut parts = path.split('/').skip(1);
                    assert!(parts.all(|part| !["", ".", ".."].contains(&part)), "{path}");
                }
                Err(wrong) => assert!(!wrong.to_string().contains(char::is_control)),
            }
        }
    }
}
