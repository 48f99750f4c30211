//! Suggestions for misspelled words.

use strsim::levenshtein;

/// Longest part of a text that is compared, in characters.
const TEXT_LIMIT: usize = 200;

/// Returns the candidate that is most similar to `text`, if `text` can be a misspelling of it.
pub(crate) fn nearest<'c>(text: &str, candidates: &[&'c str]) -> Option<&'c str> {
    // The comparison takes time in proportion to the length. No key is that long, but a text from
    // a file can be.
    let text: String = text.to_lowercase().chars().take(TEXT_LIMIT).collect();
    let far = |candidate: &&str| levenshtein(&text, &candidate.to_lowercase());
    let best = candidates.iter().copied().min_by_key(far)?;
    // A misspelling changes at most a third of the letters, and at most three.
    (far(&best) <= best.len().div_ceil(3).min(3)).then_some(best)
}

/// Returns a remedy that names the most similar candidate, or else all candidates.
pub(crate) fn among(text: &str, what: &str, candidates: &[&str]) -> String {
    match nearest(text, candidates) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{what}: {}", candidates.join(", ")),
    }
}

/// Returns the message and the remedy for a text that is not one of the candidates.
pub(crate) fn unlike(text: &str, candidates: &[&str]) -> (String, String) {
    let help = match nearest(text, candidates) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write one of them".to_owned(),
    };
    let message = format!("`{text}` is not one of {}", candidates.join(", "));
    (message, help)
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
}
