//! Key of a spec file in the store, and the file name made from it.

use std::fmt;

/// Key of a spec file. A kind has one file, or one for each claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecKey {
    kind: String,
    claim: Option<String>,
}

// === impl SpecKey ===

impl SpecKey {
    /// Key of the file with the devices of a kind, `vendor/class`.
    pub fn of_kind(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            claim: None,
        }
    }

    /// Key of the file with one claim's devices of a kind. `None` if the uid is empty or has other bytes than
    /// letters, digits and `-`, because it becomes a part of the file name.
    pub fn of_claim(kind: &str, uid: &str) -> Option<Self> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        (!uid.is_empty() && uid.bytes().all(fits)).then(|| Self {
            kind: kind.to_owned(),
            claim: Some(uid.to_owned()),
        })
    }

    /// Kind of the devices in the file.
    pub fn cdi_kind(&self) -> &str {
        &self.kind
    }

    /// Name of the file.
    pub(super) fn file_name(&self) -> String {
        // NVIDIA's plugin uses the same name for a kind. CDI allows no `@` in a kind, so that no kind has
        // the file name of a claim.
        let kind = self.kind.replace('/', "-");
        match &self.claim {
            None => format!("{kind}.json"),
            Some(uid) => format!("{kind}@{uid}.json"),
        }
    }

    /// Finds the key that has this file name, for one of these kinds.
    pub(super) fn from_file_name(name: &str, kinds: &[&str]) -> Option<Self> {
        let stem = name.strip_suffix(".json")?;
        kinds.iter().find_map(|kind| {
            let rest = stem.strip_prefix(&kind.replace('/', "-"))?;
            match rest.strip_prefix('@') {
                None => rest.is_empty().then(|| Self::of_kind(kind)),
                Some(uid) => Self::of_claim(kind, uid),
            }
        })
    }
}

impl fmt::Display for SpecKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.claim {
            None => f.write_str(&self.kind),
            Some(uid) => write!(f, "{} of the claim {uid}", self.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [&str; 2] = ["example.com/npu", "example.com/npu-x"];

    #[test]
    fn a_file_tells_its_key_by_its_name() {
        let keys = [
            SpecKey::of_kind(KINDS[0]),
            SpecKey::of_kind(KINDS[1]),
            SpecKey::of_claim(KINDS[0], "0a1b-2c").unwrap(),
            SpecKey::of_claim(KINDS[1], "0").unwrap(),
        ];
        for key in keys {
            let name = key.file_name();
            assert_eq!(SpecKey::from_file_name(&name, &KINDS), Some(key), "{name}");
        }
        for name in [
            "example.com-npu",
            "example.com-npu@.json",
            "a.json",
            "example.com-npu_a.json",
        ] {
            assert_eq!(SpecKey::from_file_name(name, &KINDS), None, "{name}");
        }
    }

    #[test]
    fn a_uid_cannot_lead_out_of_the_folder() {
        for uid in ["", "..", "a/b", "a_b", "a b"] {
            assert_eq!(SpecKey::of_claim(KINDS[0], uid), None, "{uid}");
        }
    }
}
