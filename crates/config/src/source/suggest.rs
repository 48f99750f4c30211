//! "Did you mean …?"

use strsim::levenshtein;

/// The most of a text that is compared.
const TEXT_LIMIT: usize = 200;

/// The candidate that is nearest to `text`, if one is near enough to be what was meant.
pub(crate) fn nearest<'c>(text: &str, candidates: &[&'c str]) -> Option<&'c str> {
    // No key is that long; a text from outside may be.
    let text: String = text.to_lowercase().chars().take(TEXT_LIMIT).collect();
    let far = |candidate: &&str| levenshtein(&text, &candidate.to_lowercase());
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

/// Tells what is wrong with a text that should be one of a few, and the remedy.
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
