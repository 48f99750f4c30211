//! Lines and comments, found by a plain scan of the text.

use std::{ops::RangeInclusive, sync::LazyLock};

use regex::Regex;

use super::source_file::within;

/// Words that open a doc comment which names its subject only by a question.
const RIDDLES: [&str; 8] = [
    "What", "How", "Whether", "Who", "Whom", "Whose", "Where", "Why",
];

/// The languages of a code block that rustdoc compiles.
const RUST_BLOCKS: [&str; 5] = ["", "rust", "no_run", "should_panic", "compile_fail"];

/// A source that a reader can look up: a file, an issue, a standard, a link, a function of NVIDIA's
/// libraries, a driver's number, or a program's release.
static SOURCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        [\w-]\.(?:go|c|h|py)\b
        | (?:^|[\s(\w])\#\d{3,}\b
        | \b(?:KEP|RFC|CVE)[\ -]\d{3,}
        | https://
        | \b(?:nvml|cu)[A-Z]\w+
        | \b[Dd]rivers?\s(?:(?:before|since|of|from|until|version)\s)?R?\d{3}\b
        | \b(?:[Kk]ubelet|Kubernetes|containerd|CRI-O|runc|systemd|Linux|CUDA)\sv?\d+\.\d+
        | \b(?:since|before|until|[Uu]p\sto)\s(?:[\w-]+\s)?v?\d+\.\d+
        ",
    )
    .expect("a constant that the tests compile")
});

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LineKind {
    Blank,
    Code,
    /// `//`, but for the house's `// === impl X ===`.
    Comment,
    /// `///` and `//!`.
    Doc,
    /// `// === impl X ===`.
    Marker,
}

/// Lines of one kind that follow each other, as one text.
#[derive(Debug, PartialEq)]
pub(super) struct Comment {
    /// Its first line.
    pub(super) line: usize,
    /// True for `///` and `//!`.
    pub(super) is_doc: bool,
    /// Its lines without the slashes.
    pub(super) text: String,
}

// === impl LineKind ===

impl LineKind {
    fn of_line(line: &str) -> Self {
        let line = line.trim();
        if line.is_empty() {
            Self::Blank
        } else if line.starts_with("// ===") {
            Self::Marker
        } else if line.starts_with("//!") || line.starts_with("///") {
            Self::Doc
        } else if line.starts_with("//") {
            Self::Comment
        } else {
            Self::Code
        }
    }
}

// === impl Comment ===

impl Comment {
    /// True if it opens with one of [`RIDDLES`].
    pub(super) fn is_riddle(&self) -> bool {
        let first = self.text.split_whitespace().next().unwrap_or_default();
        RIDDLES.contains(&first.split(['\'', '’', ',']).next().unwrap_or_default())
    }

    /// True if it has three words or fewer.
    pub(super) fn is_short(&self) -> bool {
        self.text.split_whitespace().count() <= 3
    }

    /// True if it names a source.
    pub(super) fn has_source(&self) -> bool {
        SOURCE.is_match(&self.text)
    }

    /// Number of code blocks that rustdoc compiles.
    pub(super) fn count_examples(&self) -> usize {
        let fences = self
            .text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("```"));
        let openings = fences.step_by(2);
        openings
            .filter(|language| RUST_BLOCKS.contains(language))
            .count()
    }
}

/// The kind of each line, with nothing for lines of tests. `continued` are the lines that are
/// inside a text literal from their first character on.
pub(super) fn sort_lines(
    text: &str,
    cut: &[RangeInclusive<usize>],
    continued: &[RangeInclusive<usize>],
) -> Vec<Option<LineKind>> {
    let lines = (1..).zip(text.lines());
    let kinds = lines.map(|(number, line)| {
        if within(number, cut) {
            None
        } else if within(number, continued) {
            Some(LineKind::Code)
        } else {
            Some(LineKind::of_line(line))
        }
    });
    kinds.collect()
}

/// The comments of a file, by its lines and their kinds.
pub(super) fn join_comments(text: &str, kinds: &[Option<LineKind>]) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    let mut previous = ("", 0);
    for ((number, line), kind) in (1..).zip(text.lines()).zip(kinds) {
        let (Some(LineKind::Comment | LineKind::Doc), Some(opening)) = (kind, line.find("//"))
        else {
            continue;
        };
        let is_doc = *kind == Some(LineKind::Doc);
        let (mark, words) = line[opening..].split_at(if is_doc { 3 } else { 2 });
        if let Some(open) = comments
            .last_mut()
            .filter(|_| previous == (mark, number - 1))
        {
            open.text.push('\n');
            open.text.push_str(words.trim());
        } else {
            let text = words.trim().to_owned();
            comments.push(Comment {
                line: number,
                is_doc,
                text,
            });
        }
        previous = (mark, number);
    }
    comments
}

#[cfg(test)]
mod tests;
