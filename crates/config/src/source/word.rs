//! Words of a choice. They are the names that serde gives to the variants of an enum, so reader,
//! schema and `explain` cannot differ.

use std::fmt;

use serde::de::{self, DeserializeOwned, value::StrDeserializer};

use super::unlike;

/// Choice among a few words: an enum without data.
pub(crate) trait Word: DeserializeOwned {}

// serde lists the names of an enum's variants in this error alone, so `words` causes one.
/// Error for a text that is none of these words.
#[derive(Debug)]
struct UnknownWord(&'static [&'static str]);

// === impl UnknownWord ===

impl de::Error for UnknownWord {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self(expected)
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not one of {}", self.0.join(", "))
    }
}

impl std::error::Error for UnknownWord {}

/// Parses a word. An error is a message and its remedy.
pub(crate) fn parse_word<T: Word>(text: &str) -> Result<T, (String, String)> {
    deserialize_word(text).map_err(|UnknownWord(words)| unlike(text, words))
}

/// Returns every word of a choice, in the order of its variants.
pub(crate) fn list_words<T: Word>() -> &'static [&'static str] {
    deserialize_word::<T>("")
        .err()
        .map_or(&[], |UnknownWord(words)| words)
}

fn deserialize_word<T: Word>(text: &str) -> Result<T, UnknownWord> {
    T::deserialize(StrDeserializer::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mig, Policy};

    #[test]
    fn a_word_is_what_serde_writes() {
        assert_eq!(parse_word("mixed"), Ok(Mig::Mixed));
        assert_eq!(parse_word("first-fit"), Ok(Policy::FirstFit));
        assert_eq!(list_words::<Mig>(), ["none", "single", "mixed"]);
    }

    #[test]
    fn another_text_is_refused_and_the_words_are_named() {
        let (message, help) = parse_word::<Mig>("mixd").unwrap_err();
        assert_eq!(message, "`mixd` is not one of none, single, mixed");
        assert_eq!(help, "did you mean `mixed`?");
    }
}
