//! The crypto cards of the guide for authors of probes, on this node: the probe of the guide as it is
//! documented, and the config of the guide with shorter times.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    agent::Agent,
    device, kubelet,
    node::Node,
    pod::{Container, Pod},
    process::{self, Id},
    report::{Answer, Report},
    root,
};

/// The resource of the cards.
pub(super) const CRYPTO: &str = "company.com/crypto-accelerator";
/// The cards.
pub(super) const CARDS: [Card; 2] = [
    Card {
        id: "CC-0001",
        slot: "crypto0",
        numa: 0,
        minor: 300,
    },
    Card {
        id: "CC-0002",
        slot: "crypto1",
        numa: 1,
        minor: 301,
    },
];

/// The probe that the guide shows.
const PROBE: &str = include_str!("../../../../docs/examples/crypto-probe.py");
/// The guide, whose config is used.
const GUIDE: &str = include_str!("../../../../docs/probe-guide.md");
/// The path of the probe in the guide's config.
const PROGRAM: &str = "/opt/company/crypto-probe.py";
/// The folder that the guide's config mounts.
const LIBRARIES: &str = "/opt/company/lib";
/// The folder of cards in the guide's config, where the kernel lets nobody make a folder.
const DOCUMENTED: &str = "/sys/class/crypto-cards";
/// The folder of cards here.
const FOLDER: &str = "/run/e2e/crypto-cards";
/// A card that fails is seen soon and is back soon, and so is a probe that fails.
const TIMES: &str = "probe: {period: 1s, retryPause: 1s}
health: {passes: 2, holdDown: 1s, holdDownLimit: 1s, working: 1s}
";

/// A probe that writes lines as fast as they are taken.
const FLOOD: &str = r#"#!/usr/bin/env python3
import os
os.write(3, b'{"type":"hello","protocol":2,"probe":"crypto","version":"1.0"}\n')
line = b'{"type":"sample","device":"CC-0001","telemetry":{}}\n'
while True:
    os.write(3, line * 50)
"#;

/// A crypto card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Card {
    /// Its serial number, which is its id.
    pub(super) id: &'static str,
    /// The name of its folder and of its device node.
    slot: &'static str,
    /// Its NUMA node.
    pub(super) numa: u32,
    /// The minor number of its device node.
    minor: u32,
}

// === impl Card ===

impl Card {
    /// The card with this id.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn named(id: &str) -> Result<Self> {
        let card = CARDS.into_iter().find(|card| card.id == id);
        card.with_context(|| format!("{id} is no crypto card"))
    }

    /// The path of its device node.
    fn node(self) -> String {
        format!("/dev/{}", self.slot)
    }

    fn file(self, name: &str) -> PathBuf {
        Path::new(FOLDER).join(self.slot).join(name)
    }

    /// Writes what its self-test says.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn set_health(self, health: &str) -> Result<()> {
        write_whole(&self.file("health"), health)
    }

    /// Makes it silent: it does not tell who it is.
    ///
    /// # Errors
    /// If its file cannot be removed.
    pub(super) fn silence(self) -> Result<()> {
        Ok(fs_err::remove_file(self.file("serial"))?)
    }

    /// Makes it as it was at the start.
    ///
    /// # Errors
    /// If its files cannot be written.
    pub(super) fn mend(self) -> Result<()> {
        fs_err::create_dir_all(Path::new(FOLDER).join(self.slot))?;
        write_whole(&self.file("serial"), self.id)?;
        write_whole(&self.file("numa"), &self.numa.to_string())?;
        self.set_health("good")
    }
}

/// Puts the cards on the node, and an agent in place that serves them beside the GPUs. Waits until
/// the kubelet has both.
///
/// # Errors
/// If it does not come to that.
pub(super) async fn serve(node: &mut Node) -> Result<()> {
    let major = device::major()?;
    for card in CARDS {
        card.mend()?;
        let path = card.node();
        if !fs_err::exists(&path)? {
            root::make_node(path.as_ref(), major, card.minor)?;
        }
    }
    fs_err::create_dir_all(LIBRARIES)?;
    install_probe()?;
    let config = config()?;
    node.replace_agent(|| Agent::on_host(&config)).await?;
    node.all_allocatable().await?;
    node.offers(CRYPTO, CARDS.len()).await.map(drop)
}

/// The guide's config for this node.
fn config() -> Result<String> {
    let config = GUIDE.split("```yaml\n").nth(1);
    let config = config.and_then(|rest| Some(rest.split_once("```")?.0));
    let config = config.context("the guide has no config")?;
    for words in [PROGRAM, LIBRARIES, DOCUMENTED, CRYPTO] {
        ensure!(config.contains(words), "the guide's config has no {words}");
    }
    Ok(TIMES.to_owned() + &config.replace(DOCUMENTED, FOLDER))
}

/// Installs the probe of the guide.
///
/// # Errors
/// If it cannot be written.
pub(super) fn install_probe() -> Result<()> {
    install(PROBE)
}

/// Installs a probe that floods the agent in the place of the guide's. The one that runs goes on.
///
/// # Errors
/// If it cannot be written.
pub(super) fn install_flood() -> Result<()> {
    install(FLOOD)
}

fn install(program: &str) -> Result<()> {
    let draft = format!("{PROGRAM}.draft");
    fs_err::write(&draft, program)?;
    fs_err::set_permissions(&draft, PermissionsExt::from_mode(0o755))?;
    Ok(fs_err::rename(draft, PROGRAM)?)
}

/// Writes a file that nobody sees half-written.
fn write_whole(file: &Path, text: &str) -> Result<()> {
    let draft = Path::new(FOLDER).with_extension("draft");
    fs_err::write(&draft, format!("{text}\n"))?;
    Ok(fs_err::rename(draft, file)?)
}

/// The process of the probe.
///
/// # Errors
/// If there is none, or more than one.
pub(super) fn probe() -> Result<Id> {
    let is_it = |words: &[String]| {
        let program = words.first().is_some_and(|word| word.contains("python3"));
        program && words.iter().any(|word| word == PROGRAM)
    };
    match *process::find(is_it)?.as_slice() {
        [one] => Ok(one),
        ref all => anyhow::bail!("there are {} crypto probes", all.len()),
    }
}

/// A pod with one container that asks for so many units and tries the nodes of all GPUs and crypto cards.
pub(super) fn pod(name: String, resource: &str, units: u32) -> Pod {
    let container = Container::new("main", units).of(resource);
    Pod::new(name).container(container.tries(CARDS.map(|card| card.minor)))
}

/// Runs a pod with crypto cards and checks that it has them, with all that the guide's config gives, and
/// nothing else. Gives their ids.
///
/// # Errors
/// With the first difference.
pub(super) async fn run(node: &Node, pod: &Pod) -> Result<BTreeSet<String>> {
    node.place(pod)?;
    node.running(pod).await?;
    let held = kubelet::held().await?;
    let ids = held.get(&(pod.full_name(), "main".to_owned()));
    let ids = ids.with_context(|| format!("{} holds nothing", pod.name))?;
    let at = || format!("{} with {ids:?}", pod.name);
    has(&pod.report("main")?, ids).with_context(at)?;
    Ok(ids.clone())
}

/// Checks what a container has against the ids that the kubelet says it holds.
fn has(report: &Report, ids: &BTreeSet<String>) -> Result<()> {
    let cards: Vec<Card> = ids
        .iter()
        .map(|id| Card::named(id))
        .collect::<Result<_>>()?;
    let major = device::major()?;
    let wanted: BTreeMap<String, (u32, u32)> = cards
        .iter()
        .map(|card| (card.node(), (major, card.minor)))
        .collect();
    let seen = nodes(report);
    ensure!(seen == wanted, "it has {seen:?} and not {wanted:?}");
    ensure!(
        report.nodes.is_empty(),
        "it has NVIDIA's {:?}",
        report.nodes
    );
    for (minor, answer) in &report.tried {
        let expected = match cards.iter().any(|card| card.minor == *minor) {
            true => Answer::NoDevice,
            false => Answer::Forbidden,
        };
        ensure!(
            *answer == expected,
            "a node {minor} of its own making answered {answer:?}, not {expected:?}"
        );
    }
    // The kubelet chooses the order of the cards; it is the same in both variables.
    let values = |name: &str| report.env.get(name).map(|value| value.split(','));
    let (numbers, slots) = values("CRYPTO_CARD")
        .zip(values("CRYPTO_SLOT"))
        .context("it has not both variables")?;
    let mut seen: Vec<(&str, &str)> = numbers.zip(slots).collect();
    seen.sort_unstable();
    let wanted: Vec<(&str, &str)> = cards.iter().map(|card| (card.id, card.slot)).collect();
    ensure!(seen == wanted, "its variables say {seen:?}, not {wanted:?}");
    let foreign = report.env.keys().find(|name| name.starts_with("NVIDIA"));
    ensure!(foreign.is_none(), "it has {foreign:?}");
    let mount = report.mounts.get(LIBRARIES);
    let mount = mount.with_context(|| format!("{LIBRARIES} is not mounted"))?;
    ensure!(mount.options.contains("ro"), "it may write to {LIBRARIES}");
    Ok(())
}

/// Checks that a container has nothing of the crypto cards.
///
/// # Errors
/// With what it has.
pub(super) fn has_nothing(report: &Report) -> Result<()> {
    let seen = nodes(report);
    ensure!(seen.is_empty(), "it has {seen:?}");
    let foreign = report.env.keys().find(|name| name.starts_with("CRYPTO"));
    ensure!(foreign.is_none(), "it has {foreign:?}");
    let mounted = report.mounts.contains_key(LIBRARIES);
    ensure!(!mounted, "{LIBRARIES} is mounted");
    Ok(())
}

/// The nodes of crypto cards in a container, and the numbers of each.
fn nodes(report: &Report) -> BTreeMap<String, (u32, u32)> {
    let all = report.dev.iter();
    let ours = all.filter(|(path, _)| path.starts_with("/dev/crypto"));
    ours.map(|(path, node)| (path.clone(), node.numbers))
        .collect()
}
