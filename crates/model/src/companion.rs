//! Companions: device nodes, channels and daemons of a driver beside its devices, as plain data.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Companions of a driver by class. A class lists paths of device nodes, names or numbers, each as
/// a text, in the order of the probe's report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Companions(BTreeMap<String, Vec<String>>);

// === impl Companions ===

impl Companions {
    /// Adds a class. An empty list is left out.
    #[must_use]
    pub fn with_class<T: ToString>(
        mut self,
        class: &str,
        list: impl IntoIterator<Item = T>,
    ) -> Self {
        let list: Vec<String> = list.into_iter().map(|one| one.to_string()).collect();
        if !list.is_empty() {
            self.0.insert(class.to_owned(), list);
        }
        self
    }

    /// Returns the list of a class; empty if the class is absent.
    pub fn list_class(&self, class: &str) -> &[String] {
        self.0.get(class).map_or(&[], Vec::as_slice)
    }

    /// Lists the numbers of a class. Texts that are not numbers are left out.
    pub fn list_numbers(&self, class: &str) -> impl Iterator<Item = u32> {
        self.list_class(class)
            .iter()
            .filter_map(|text| text.parse().ok())
    }

    /// Returns true if there are no companions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_map_of_lists_in_json() {
        let all = Companions::default()
            .with_class("imex-channel", [0, 10])
            .with_class("gds", ["/dev/nvidia-fs0"])
            .with_class("mps", Vec::<String>::new());
        let text = r#"{"gds":["/dev/nvidia-fs0"],"imex-channel":["0","10"]}"#;
        assert_eq!(serde_json::to_string(&all).unwrap(), text);
        assert_eq!(serde_json::from_str::<Companions>(text).unwrap(), all);
        assert!(all.list_numbers("imex-channel").eq([0, 10]));
        assert!(all.list_class("mps").is_empty());
    }
}
