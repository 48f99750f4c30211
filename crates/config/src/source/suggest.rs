//! "Did you mean …?"

/// The candidate that is nearest to `text`, if one is near enough to be what was meant.
pub(crate) fn nearest<'c>(text: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let text = text.to_lowercase();
    let far = |candidate: &&str| distance(&text, &candidate.to_lowercase());
    let best = candidates.iter().copied().min_by_key(far)?;
    (far(&best) <= best.len().div_ceil(3).min(3)).then_some(best)
}

/// A remedy that names what was meant, or everything that is allowed.
pub(crate) fn among(text: &str, what: &str, candidates: &[&str]) -> String {
    match nearest(text, candidates) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{what}: {}", candidates.join(", ")),
    }
}

/// What is wrong with a text that should be one of a few, and the remedy.
pub(crate) fn unlike(text: &str, candidates: &[&str]) -> (String, String) {
    let help = match nearest(text, candidates) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write one of them".to_owned(),
    };
    let message = format!("`{text}` is not one of {}", candidates.join(", "));
    (message, help)
}

/// How many letters must be changed, added or left out (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(200).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("perod", Some("period"))]
    #[case("Period", Some("period"))]
    #[case("callLimits", Some("callLimit"))]
    #[case("somethingElse", None)]
    #[case("", None)]
    fn finds_what_was_meant(#[case] text: &str, #[case] meant: Option<&str>) {
        assert_eq!(nearest(text, &["period", "callLimit"]), meant);
    }

    #[test]
    fn counts_letters() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
