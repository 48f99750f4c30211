//! The cases: which flags, environment and config file, on which simulated node. They are data,
//! in `bench/cases.yaml`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use sim::{NodeProfile, state::NodeState};

use super::node;

/// The cases that come with the program.
const CASES: &str = include_str!("../../cases.yaml");

/// A case for every profile that has NVML.
const EVERY: &str = "*";

/// One config on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// Its name, with its profile: `a100-mig/mixed`.
    pub(crate) name: String,
    /// The node's profile.
    pub(crate) profile: String,
    /// How the cards are cut instead of as the profile says: a list for each card, over and over;
    /// no list is MIG mode off.
    pub(crate) layout: Option<Layout>,
    /// The arguments of NVIDIA's program.
    pub(crate) flags: Vec<String>,
    /// Its environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Its config file.
    pub(crate) config: Option<String>,
    /// What Ostler is started as.
    pub(crate) ours: Ours,
    /// What kind of node it is.
    pub(crate) node: Traits,
}

/// What of a node makes differences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// Whether any card has MIG mode on.
    pub(crate) cut: bool,
    /// The resources of MIG devices whose profile has a plain one in its name, as `1g.5gb+me` has
    /// `1g.5gb`, and the resources of those.
    pub(crate) alike: BTreeSet<String>,
}

/// Nodes that were looked at already, by profile and layout: to make one takes its time.
type Nodes = BTreeMap<(String, Option<String>), Traits>;

/// How cards are cut: a list for each.
pub(crate) type Layout = Vec<Option<Vec<String>>>;

/// What Ostler is started as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ours {
    /// `ostler run`, as it is without a config.
    Native,
    /// `ostler nvidia-device-plugin`, with the same flags, environment and file.
    #[default]
    Same,
    /// Not yet: only NVIDIA's program is recorded.
    Pending,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    layouts: BTreeMap<String, Layout>,
    #[serde(default)]
    configs: BTreeMap<String, String>,
    cases: Vec<Line>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    profile: String,
    #[serde(default)]
    layout: Option<String>,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    config: Option<String>,
    #[serde(default)]
    ours: Ours,
}

// === impl Case ===

impl Case {
    /// All cases, by name.
    pub(crate) fn all() -> anyhow::Result<Vec<Self>> {
        Self::parse(CASES).context("bench/cases.yaml cannot be used")
    }

    /// The cases of a file.
    fn parse(yaml: &str) -> anyhow::Result<Vec<Self>> {
        let file: File = serde_saphyr::from_str(yaml)?;
        let (mut cases, mut nodes) = (BTreeMap::new(), Nodes::new());
        for line in &file.cases {
            for case in line.cases(&file, &mut nodes)? {
                let name = case.name.clone();
                let twice = cases.insert(name.clone(), case).is_some();
                ensure!(!twice, "the case {name} is there twice");
            }
        }
        Ok(cases.into_values().collect())
    }

    /// Whether devices are handed over by index.
    pub(crate) fn indexed(&self) -> bool {
        self.says("device-id-strategy", "deviceIDStrategy", "index")
    }

    /// Whether MIG devices are to be offered as if they were cards.
    pub(crate) fn single(&self) -> bool {
        self.says("mig-strategy", "migStrategy", "single")
    }

    /// Whether devices are handed over by CDI names, alone or beside other ways.
    pub(crate) fn names_cdi(&self) -> bool {
        let (flag, key) = ("device-list-strategy", "deviceListStrategy");
        let words = self
            .flags
            .iter()
            .chain(self.env.values())
            .chain(&self.config);
        self.mentions(flag, key) && words.into_iter().any(|word| word.contains("cdi-"))
    }

    /// Whether an option has a value, by flag, environment or file.
    fn says(&self, flag: &str, key: &str, value: &str) -> bool {
        let variable = flag.to_uppercase().replace('-', "_");
        let config = self.config.as_deref().unwrap_or_default();
        self.flags.contains(&format!("--{flag}={value}"))
            || self.env.get(&variable).is_some_and(|set| set == value)
            || config.contains(&format!("{key}: {value}"))
    }

    /// Whether a flag is given.
    pub(crate) fn flags(&self, flag: &str) -> bool {
        let (alone, with) = (format!("--{flag}"), format!("--{flag}="));
        let is = |set: &String| *set == alone || set.starts_with(&with);
        self.flags.iter().any(is)
    }

    /// Whether an option is set at all, by flag, environment or file.
    pub(crate) fn mentions(&self, flag: &str, key: &str) -> bool {
        let variable = flag.to_uppercase().replace('-', "_");
        let config = self.config.as_deref().unwrap_or_default();
        let flag = format!("--{flag}");
        let flagged = self.flags.iter().any(|set| set.starts_with(&flag));
        flagged || self.env.contains_key(&variable) || config.contains(&format!("{key}:"))
    }

    /// The node's profile with the layout of this case.
    pub(crate) fn machine(&self) -> anyhow::Result<NodeProfile> {
        let mut profile = NodeProfile::find_profile(&self.profile)?;
        if let Some(layout) = &self.layout {
            let cut = layout.iter().cycle();
            for (card, mig) in profile.gpus.iter_mut().zip(cut) {
                card.mig.clone_from(mig);
            }
        }
        Ok(profile)
    }
}

// === impl Traits ===

impl Traits {
    fn of(state: &NodeState) -> Self {
        let mut alike = BTreeSet::new();
        for gpu in &state.gpus {
            let Some(model) = state.models.get(&gpu.model) else {
                continue;
            };
            for mig in &gpu.migs {
                let name = model
                    .find_shape(&mig.profile)
                    .map(|shape| mig.mig_name(shape));
                let name = name.unwrap_or_default();
                let plain = model.mig.iter().map(|shape| &shape.name);
                for plain in plain.filter(|plain| **plain != name && name.contains(*plain)) {
                    alike.extend([&name, plain].map(|name| resource(name)));
                }
            }
        }
        Self {
            cut: state.gpus.iter().any(|gpu| gpu.mig_enabled),
            alike,
        }
    }
}

/// The resource of a MIG profile.
fn resource(profile: &str) -> String {
    format!("nvidia.com/mig-{}", profile.replace('+', "."))
}

// === impl Line ===

impl Line {
    /// The cases that the line stands for: one, or one for each profile.
    fn cases(&self, file: &File, nodes: &mut Nodes) -> anyhow::Result<Vec<Case>> {
        let profiles = match self.profile.as_str() {
            EVERY => node::profiles()?,
            one => vec![one.to_owned()],
        };
        let cases = profiles.into_iter();
        cases
            .map(|profile| self.case(file, profile, nodes))
            .collect()
    }

    fn case(&self, file: &File, profile: String, nodes: &mut Nodes) -> anyhow::Result<Case> {
        let name = format!("{profile}/{}", self.name);
        let layout = self.layout.as_ref().map(|key| {
            let found = file.layouts.get(key).cloned();
            found.with_context(|| format!("{name}: there is no layout `{key}`"))
        });
        let config = self.config.as_ref().map(|key| {
            let found = file.configs.get(key).cloned();
            found.with_context(|| format!("{name}: there is no config `{key}`"))
        });
        let mut case = Case {
            node: Traits::default(),
            layout: layout.transpose()?,
            config: config.transpose()?,
            profile,
            flags: self.flags.clone(),
            env: self.env.clone(),
            ours: self.ours,
            name,
        };
        let key = (case.profile.clone(), self.layout.clone());
        if !nodes.contains_key(&key) {
            let state = case.machine()?.to_state();
            let state = state.with_context(|| format!("{}: no such node", case.name))?;
            nodes.insert(key.clone(), Traits::of(&state));
        }
        case.node = nodes[&key].clone();
        Ok(case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_cases_that_come_with_the_program() {
        let cases = Case::all().unwrap();
        let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
        assert!(names.contains(&"dgx-a100/default"), "{names:?}");
        assert!(names.contains(&"a100-mig/mixed"), "{names:?}");
    }

    #[test]
    fn one_line_stands_for_every_profile_with_nvml() {
        let cases = Case::parse("cases: [{name: all, profile: '*'}]").unwrap();
        let profiles: BTreeSet<_> = cases.iter().map(|case| case.profile.clone()).collect();
        assert_eq!(profiles, node::profiles().unwrap().into_iter().collect());
        assert!(profiles.contains("dgx-a100") && !profiles.contains("tegra"));
    }

    #[test]
    fn a_layout_cuts_the_cards_in_turn() {
        let yaml = "
layouts: {half: [[7g.40gb], null]}
cases: [{name: half, profile: dgx-a100, layout: half}]";
        let cases = Case::parse(yaml).unwrap();
        let state = cases[0].machine().unwrap().to_state().unwrap();
        let enabled: Vec<_> = state.gpus.iter().map(|gpu| gpu.mig_enabled).collect();
        assert_eq!(enabled, [true, false].repeat(4));
    }

    #[test]
    fn knows_which_resources_have_names_alike() {
        let yaml = "
layouts: {odd: [[1g.5gb+me, 1c.3g.20gb, 2g.10gb]]}
cases: [{name: odd, profile: dgx-a100, layout: odd}]";
        let case = Case::parse(yaml).unwrap().remove(0);
        let names = ["1c.3g.20gb", "1g.5gb", "1g.5gb.me", "3g.20gb"];
        let names = names.map(|name| format!("nvidia.com/mig-{name}"));
        assert_eq!(case.node.alike, names.into());
        assert!(case.node.cut);
    }

    #[test]
    fn knows_options_from_flag_environment_and_file() {
        let yaml = "
configs: {index: 'flags: {plugin: {deviceIDStrategy: index}}'}
cases:
  - {name: a, profile: t4, flags: [--device-id-strategy=index]}
  - {name: b, profile: t4, env: {DEVICE_ID_STRATEGY: index}}
  - {name: c, profile: t4, config: index}
  - {name: d, profile: t4}";
        let cases = Case::parse(yaml).unwrap();
        let indexed: Vec<_> = cases.iter().map(Case::indexed).collect();
        assert_eq!(indexed, [true, true, true, false]);
    }

    #[test]
    fn refuses_a_case_that_is_there_twice() {
        let yaml = "cases: [{name: a, profile: t4}, {name: a, profile: t4}]";
        let error = Case::parse(yaml).unwrap_err();
        assert!(error.to_string().contains("t4/a is there twice"), "{error}");
    }

    #[test]
    fn refuses_a_layout_that_does_not_fit() {
        let yaml = "
layouts: {big: [[7g.40gb, 7g.40gb]]}
cases: [{name: big, profile: dgx-a100, layout: big}]";
        let error = Case::parse(yaml).unwrap_err();
        assert!(error.to_string().contains("dgx-a100/big"), "{error}");
    }
}
