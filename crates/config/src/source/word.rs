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
struct NoneOf(&'static [&'static str]);

// === impl NoneOf ===

impl de::Error for NoneOf {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self(expected)
    }
}

impl fmt::Display for NoneOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not one of {}", self.0.join(", "))
    }
}

impl std::error::Error for NoneOf {}

/// Parses a word. An error is a message and its remedy.
pub(crate) fn word<T: Word>(text: &str) -> Result<T, (String, String)> {
    read(text).map_err(|NoneOf(words)| unlike(text, words))
}

/// Returns every word of a choice, in the order of its variants.
pub(crate) fn words<T: Word>() -> &'static [&'static str] {
    read::<T>("").err().map_or(&[], |NoneOf(words)| words)
}

fn read<T: Word>(text: &str) -> Result<T, NoneOf> {
    T::deserialize(StrDeserializer::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mig, Policy};

    #[test]
    fn a_word_is_what_serde_writes() {
        assert_eq!(word("mixed"), Ok(Mig::Mixed));
        assert_eq!(word("first-fit"), Ok(Policy::FirstFit));
        assert_eq!(words::<Mig>(), ["none", "single", "mixed"]);
    }

    #[test]
    fn another_text_is_refused_and_the_words_are_named() {
        let (message, help) = word::<Mig>("mixd").unwrap_err();
        assert_eq!(message, "`mixd` is not one of none, single, mixed");
        assert_eq!(help, "did you mean `mixed`?");
    }
}
