//! Glob patterns of paths: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a literal character. A `/` is
//! matched only by itself. The syntax is that of Go's `filepath.Match`, which NVIDIA's toolkit
//! uses.

/// Characters that make a name a pattern.
const MAGIC: [char; 4] = ['*', '?', '[', '\\'];

/// One element of a pattern.
#[derive(Debug, PartialEq, Eq)]
enum PatternStep {
    /// Any characters, or none.
    Many,
    /// Any one character.
    Any,
    /// This character.
    Letter(char),
    /// One character of these ranges, or outside of them if `none`.
    Class {
        none: bool,
        ranges: Vec<(char, char)>,
    },
}

/// Expands a pattern into at most `most` existing paths, in the order of the folders. `list`
/// returns the names in a folder. A path without a pattern is returned as it is, even if it does
/// not exist.
pub(super) fn expand(
    pattern: &str,
    most: usize,
    mut list: impl FnMut(&str) -> Vec<String>,
) -> Vec<String> {
    let mut found = vec![String::new()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if !part.contains(MAGIC) {
            for path in &mut found {
                *path = format!("{path}/{part}");
            }
            continue;
        }
        let Some(steps) = steps(part) else {
            return Vec::new();
        };
        let mut next = Vec::new();
        for folder in found {
            let names = list(if folder.is_empty() { "/" } else { &folder });
            let names = names.into_iter().filter(|name| is_match(&steps, name));
            let room = most.saturating_sub(next.len());
            next.extend(names.take(room).map(|name| format!("{folder}/{name}")));
        }
        found = next;
    }
    found
}

/// Parses a pattern; `None` if it is incomplete.
fn steps(pattern: &str) -> Option<Vec<PatternStep>> {
    let mut steps = Vec::new();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        steps.push(match letter {
            '*' => PatternStep::Many,
            '?' => PatternStep::Any,
            '\\' => PatternStep::Letter(letters.next()?),
            '[' => {
                let none = letters.next_if_eq(&'^').is_some();
                let mut ranges = Vec::new();
                while ranges.is_empty() || letters.peek() != Some(&']') {
                    let first = next_class_char(&mut letters)?;
                    let last = match letters.next_if_eq(&'-') {
                        Some(_) => next_class_char(&mut letters)?,
                        None => first,
                    };
                    ranges.push((first, last));
                }
                letters.next();
                PatternStep::Class { none, ranges }
            }
            letter => PatternStep::Letter(letter),
        });
    }
    Some(steps)
}

/// Returns the next character of a class.
fn next_class_char(letters: &mut impl Iterator<Item = char>) -> Option<char> {
    match letters.next()? {
        '\\' => letters.next(),
        letter => Some(letter),
    }
}

/// Returns true if a name matches. Only the last `*` is tried again, so the time is at most the
/// pattern's length times the name's.
fn is_match(steps: &[PatternStep], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut step, mut at) = (0, 0);
    let mut last: Option<(usize, usize)> = None;
    while at < name.len() {
        match steps.get(step) {
            Some(PatternStep::Many) => {
                last = Some((step, at));
                step += 1;
            }
            Some(other) if other.matches_char(name[at]) => {
                step += 1;
                at += 1;
            }
            _ => {
                let Some((many, from)) = last else {
                    return false;
                };
                last = Some((many, from + 1));
                (step, at) = (many + 1, from + 1);
            }
        }
    }
    steps[step..].iter().all(|step| *step == PatternStep::Many)
}

// === impl PatternStep ===

impl PatternStep {
    fn matches_char(&self, letter: char) -> bool {
        match self {
            Self::Many => false,
            Self::Any => true,
            Self::Letter(own) => *own == letter,
            Self::Class { none, ranges } => {
                let within = |(first, last): &(char, char)| (*first..=*last).contains(&letter);
                ranges.iter().any(within) != *none
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("nvhost-*", "nvhost-as-gpu", true)]
    #[case("nvhost-*", "nvhost-", true)]
    #[case("nvhost-*", "nvmap", false)]
    #[case("*a*b", "xaybzb", true)]
    #[case("*a*b", "xaybz", false)]
    #[case("video?", "video0", true)]
    #[case("video?", "video10", false)]
    #[case("card[0-9]", "card7", true)]
    #[case("card[^0-9]", "card7", false)]
    #[case("card[^0-9]", "cardx", true)]
    #[case("[]]", "]", true)]
    #[case("a\\*", "a*", true)]
    #[case("a\\*", "ab", false)]
    #[case("[a-", "a", false)]
    #[case("[a", "a", false)]
    #[case("a\\", "a", false)]
    fn names_fit_patterns(#[case] pattern: &str, #[case] name: &str, #[case] fits: bool) {
        let found = steps(pattern).is_some_and(|steps| is_match(&steps, name));
        assert_eq!(found, fits);
    }

    fn list(folder: &str) -> Vec<String> {
        let names: &[&str] = match folder {
            "/dev" => &["nvgpu", "nvmap", "null"],
            "/dev/nvgpu" => &["igpu0", "igpu1"],
            _ => &["as", "ctrl"],
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_pattern_stands_for_what_is_there() {
        let found = expand("/dev/nv*", 9, list);
        assert_eq!(found, ["/dev/nvgpu", "/dev/nvmap"]);
        let found = expand("/dev/nvgpu/igpu?/as", 9, list);
        assert_eq!(found, ["/dev/nvgpu/igpu0/as", "/dev/nvgpu/igpu1/as"]);
        assert_eq!(
            expand("/dev/nvgpu/*/*", 3, list).len(),
            3,
            "no more than asked for"
        );
        assert_eq!(expand("/dev/[", 9, list), [""; 0]);
    }

    #[test]
    fn a_path_stands_for_itself() {
        let found = expand("/dev/nothing", 9, |_| panic!("nothing is looked up"));
        assert_eq!(found, ["/dev/nothing"]);
    }

    proptest! {
        #[test]
        fn any_pattern_is_matched_or_not(pattern in "[a*?\\[\\]^\\\\-]{0,12}", name in "[a^-]{0,12}") {
            let _ = steps(&pattern).is_some_and(|steps| is_match(&steps, &name));
        }

        #[test]
        fn a_name_fits_itself_with_its_letters_taken_literally(name in "[^/]{1,12}") {
            let pattern: String = name.chars().flat_map(|letter| ['\\', letter]).collect();
            prop_assert!(is_match(&steps(&pattern).unwrap(), &name));
        }
    }
}
