//! Crypto cards of the guide for probe authors on this node: the probe as documented, and the
//! guide's config with shorter times.

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

/// Resource of the cards.
pub(super) const CRYPTO: &str = "company.com/crypto-accelerator";
/// Cards of the node.
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

/// Probe of the guide.
const PROBE: &str = include_str!("../../../../docs/examples/crypto-probe.py");
/// Text of the guide, whose config is used.
const GUIDE: &str = include_str!("../../../../docs/probe-guide.md");
/// Path of the probe in the guide's config.
const PROGRAM: &str = "/opt/company/crypto-probe.py";
/// Folder that the guide's config mounts.
const LIBRARIES: &str = "/opt/company/lib";
/// Folder of cards in the guide's config. It is in sysfs, where folders cannot be created.
const DOCUMENTED: &str = "/sys/class/crypto-cards";
/// Folder of cards on this node.
const FOLDER: &str = "/run/e2e/crypto-cards";
/// Short times: a failed card or probe is noticed soon and is back soon.
const TIMES: &str = "probe: {period: 1s, retryPause: 1s}
health: {passes: 2, holdDown: 1s, holdDownLimit: 1s, working: 1s}
";

/// Probe that writes lines as fast as the agent reads them.
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
    /// Serial number, which is the card's id.
    pub(super) id: &'static str,
    /// Name of the card's folder and device node.
    slot: &'static str,
    /// NUMA node.
    pub(super) numa: u32,
    /// Minor number of the device node.
    minor: u32,
}

// === impl Card ===

impl Card {
    /// Card with this id.
    ///
    /// # Errors
    /// If there is no such card.
    pub(super) fn named(id: &str) -> Result<Self> {
        let card = CARDS.into_iter().find(|card| card.id == id);
        card.with_context(|| format!("{id} is no crypto card"))
    }

    /// Path of the device node.
    fn node(self) -> String {
        format!("/dev/{}", self.slot)
    }

    fn file(self, name: &str) -> PathBuf {
        Path::new(FOLDER).join(self.slot).join(name)
    }

    /// Writes the result of the self-test.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn set_health(self, health: &str) -> Result<()> {
        write_whole(&self.file("health"), health)
    }

    /// Removes the card's identity, so that the probe cannot report it.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub(super) fn silence(self) -> Result<()> {
        Ok(fs_err::remove_file(self.file("serial"))?)
    }

    /// Restores the initial files.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub(super) fn mend(self) -> Result<()> {
        fs_err::create_dir_all(Path::new(FOLDER).join(self.slot))?;
        write_whole(&self.file("serial"), self.id)?;
        write_whole(&self.file("numa"), &self.numa.to_string())?;
        self.set_health("good")
    }
}

/// Creates the cards on the node and replaces the agent by one that serves them beside the GPUs.
/// Waits until the kubelet has both.
///
/// # Errors
/// If the kubelet does not get both within the timeout.
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

/// Config of the guide, adapted to this node.
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
/// If the file cannot be written.
pub(super) fn install_probe() -> Result<()> {
    install(PROBE)
}

/// Installs a probe that floods the agent. The running probe goes on.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn install_flood() -> Result<()> {
    install(FLOOD)
}

fn install(program: &str) -> Result<()> {
    let draft = format!("{PROGRAM}.draft");
    fs_err::write(&draft, program)?;
    fs_err::set_permissions(&draft, PermissionsExt::from_mode(0o755))?;
    Ok(fs_err::rename(draft, PROGRAM)?)
}

/// Replaces a file atomically, so that no reader sees a part.
fn write_whole(file: &Path, text: &str) -> Result<()> {
    let draft = Path::new(FOLDER).with_extension("draft");
    fs_err::write(&draft, format!("{text}\n"))?;
    Ok(fs_err::rename(draft, file)?)
}

/// Process of the probe.
///
/// # Errors
/// If there is no process, or more than one.
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

/// Pod with one container that requests units and tries the nodes of all GPUs and crypto cards.
pub(super) fn pod(name: String, resource: &str, units: u32) -> Pod {
    let container = Container::new("main", units).of(resource);
    Pod::new(name).container(container.tries(CARDS.map(|card| card.minor)))
}

/// Runs a pod with crypto cards and checks that the container has them, all edits of the guide's
/// config, and nothing else. Returns the ids.
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

/// Checks a container's report against the ids that the kubelet holds for it.
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
    // The kubelet chooses the order of the cards; both variables have the same order.
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

/// Checks that a container has no part of the crypto cards.
///
/// # Errors
/// Names the parts that it has.
pub(super) fn has_nothing(report: &Report) -> Result<()> {
    let seen = nodes(report);
    ensure!(seen.is_empty(), "it has {seen:?}");
    let foreign = report.env.keys().find(|name| name.starts_with("CRYPTO"));
    ensure!(foreign.is_none(), "it has {foreign:?}");
    let mounted = report.mounts.contains_key(LIBRARIES);
    ensure!(!mounted, "{LIBRARIES} is mounted");
    Ok(())
}

/// Nodes of crypto cards in a container, with their numbers.
fn nodes(report: &Report) -> BTreeMap<String, (u32, u32)> {
    let all = report.dev.iter();
    let ours = all.filter(|(path, _)| path.starts_with("/dev/crypto"));
    ours.map(|(path, node)| (path.clone(), node.numbers))
        .collect()
}
