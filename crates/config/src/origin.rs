//! Origins of effective values.

use std::collections::BTreeMap;

use crate::ValueOrigin;

/// Origins of values by key. A value without an entry is a default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, ValueOrigin>);

// === impl Origins ===

impl Origins {
    /// Returns the origin of a key's value. Without one: the origin of the innermost map or list
    /// around it that has one.
    pub fn find_origin(&self, key: &str) -> ValueOrigin {
        let mut key = key;
        loop {
            if let Some(origin) = self.0.get(key) {
                return origin.clone();
            }
            match key.rfind(['.', '[']) {
                Some(end) => key = &key[..end],
                None => return ValueOrigin::Default,
            }
        }
    }

    /// Copies the origin of each key below `from` to the same key below `to`, if that has none.
    pub(crate) fn inherit_origins(&mut self, from: &str, to: &str) {
        let below = |(key, origin): (&String, &ValueOrigin)| {
            let rest = key.strip_prefix(from)?.strip_prefix('.')?;
            Some((format!("{to}.{rest}"), origin.clone()))
        };
        let inherited: Vec<(String, ValueOrigin)> = self.0.iter().filter_map(below).collect();
        for (key, origin) in inherited {
            self.0.entry(key).or_insert(origin);
        }
    }

    pub(crate) fn set_origin(&mut self, key: impl Into<String>, origin: ValueOrigin) {
        self.0.insert(key.into(), origin);
    }
}

impl FromIterator<(String, ValueOrigin)> for Origins {
    fn from_iter<I: IntoIterator<Item = (String, ValueOrigin)>>(origins: I) -> Self {
        Self(origins.into_iter().collect())
    }
}
