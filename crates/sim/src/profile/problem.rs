//! Problems of a profile, with their positions in its text.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{Location, Spanned};

/// One problem of a profile, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileProblem {
    /// Keys and positions that lead to the value: `gpus`, `3`, `mig`, `0`.
    path: Vec<String>,
    /// Description and remedy.
    pub what: String,
    /// Line and column in the text, if known; both count from 1.
    pub at: Option<(u64, u64)>,
}

/// All problems of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileProblems(Vec<ProfileProblem>);

/// Any YAML text, with the positions of all its values.
#[derive(Debug, Default)]
struct LocatedYaml {
    keys: BTreeMap<String, Spanned<LocatedYaml>>,
    items: Vec<Spanned<LocatedYaml>>,
}

/// Reads a [`LocatedYaml`].
#[derive(Debug)]
struct YamlVisitor;

// === impl ProfileProblem ===

impl fmt::Display for ProfileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.at {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.what)
    }
}

// === impl ProfileProblems ===

impl ProfileProblems {
    /// Returns true if there are no problems.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the problems.
    pub fn iter(&self) -> impl Iterator<Item = &ProfileProblem> {
        self.0.iter()
    }

    /// Adds a problem at a path such as `gpus/3/mig/0`.
    pub(super) fn add_problem(&mut self, path: &str, what: impl Into<String>) {
        self.0.push(ProfileProblem {
            path: path.split('/').map(str::to_owned).collect(),
            what: what.into(),
            at: None,
        });
    }

    /// Adds lines and columns to the problems, and sorts by them. A text that is not YAML leaves
    /// them as they are.
    pub(super) fn located(mut self, yaml: &str) -> Self {
        let Ok(tree) = serde_saphyr::from_str::<Spanned<LocatedYaml>>(yaml) else {
            return self;
        };
        for problem in &mut self.0 {
            problem.at = find_location(&tree, &problem.path);
        }
        self.0.sort_by_key(|problem| problem.at);
        self
    }
}

impl fmt::Display for ProfileProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &self.0[..] {
            return write!(f, ": {only}");
        }
        write!(f, ", for {} reasons:", self.0.len())?;
        for problem in &self.0 {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

// === impl LocatedYaml ===

impl<'de> Deserialize<'de> for LocatedYaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

// === impl YamlVisitor ===

/// Visitor methods for scalars, which have no parts.
macro_rules! leaves {
    ($($name:ident: $type:ty),*) => {
        $(fn $name<E>(self, _: $type) -> Result<LocatedYaml, E> {
            Ok(LocatedYaml::default())
        })*
    };
}

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = LocatedYaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    leaves! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }

    fn visit_unit<E>(self) -> Result<LocatedYaml, E> {
        Ok(LocatedYaml::default())
    }

    fn visit_none<E>(self) -> Result<LocatedYaml, E> {
        Ok(LocatedYaml::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<LocatedYaml, D::Error> {
        LocatedYaml::deserialize(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LocatedYaml, A::Error> {
        let mut tree = LocatedYaml::default();
        while let Some(item) = list.next_element()? {
            tree.items.push(item);
        }
        Ok(tree)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LocatedYaml, A::Error> {
        let mut tree = LocatedYaml::default();
        loop {
            match map.next_key::<String>() {
                Ok(Some(key)) => _ = tree.keys.insert(key, map.next_value()?),
                Ok(None) => return Ok(tree),
                Err(_) => _ = map.next_value::<IgnoredAny>()?,
            }
        }
    }
}

/// Position of the value at a path, or of the last part of the path that exists.
fn find_location(tree: &Spanned<LocatedYaml>, path: &[String]) -> Option<(u64, u64)> {
    let mut at = tree;
    for step in path {
        let item = || at.value.items.get(step.parse::<usize>().ok()?);
        match at.value.keys.get(step).or_else(item) {
            Some(next) => at = next,
            None => break,
        }
    }
    let place: Location = at.referenced;
    (place.line() > 0).then(|| (place.line(), place.column()))
}
