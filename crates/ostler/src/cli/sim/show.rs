//! `ostler sim show`: lists the cards, MIG devices and injected faults of a node.

use comfy_table::Table;
use sim::{
    Effect, Node,
    state::{Fault, Gpu, State},
};

use super::super::table::{Output, table, text};

/// Show the node's cards, MIG devices and injected faults.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Output,
}

// === impl Args ===

impl Args {
    pub(super) fn show(self, node: &Node) -> anyhow::Result<String> {
        match self.output {
            Output::Table => page(node),
            Output::Json => text(&node.state()?, false),
            Output::Yaml => text(&node.state()?, true),
        }
    }
}

fn page(node: &Node) -> anyhow::Result<String> {
    let state = node.state()?;
    let driver = &state.driver;
    let (major, minor) = (driver.cuda / 1000, driver.cuda % 1000 / 10);
    let mut page = format!(
        "{} in {}: driver {}, CUDA {major}.{minor}\n",
        state.profile,
        node.dir().display(),
        driver.version
    );
    if !node.library().exists() {
        page += "the driver library is taken away; `ostler sim plug-driver` puts it back\n";
    }
    match state.gpus.is_empty() {
        true => page += "no cards; `ostler sim add-gpu` puts one in\n",
        false => page += &(rows(node, &state)?.trim_fmt() + "\n"),
    }
    for fault in &state.faults {
        page += &(describe(fault) + "\n");
    }
    if !state.faults.is_empty() {
        page += "`ostler sim clear` ends these faults\n";
    }
    Ok(page)
}

fn rows(node: &Node, state: &State) -> anyhow::Result<Table> {
    let mut rows = table(&[
        "INDEX", "ID", "MODEL", "PCI", "NUMA", "MEMORY", "TEMP", "STATE",
    ]);
    let migs = node.migs()?;
    for gpu in node.gpus()? {
        let card = &state.gpus[gpu.index];
        rows.add_row([
            gpu.index.to_string(),
            gpu.uuid.clone(),
            gpu.name,
            gpu.pci.to_string(),
            gpu.numa.map_or_else(|| "-".to_owned(), |n| n.to_string()),
            format!("{} MiB", gpu.memory_bytes >> 20),
            format!("{} °C", card.sensors.temperature),
            condition(card).to_owned(),
        ]);
        for mig in migs.iter().filter(|mig| mig.gpu == gpu.uuid) {
            rows.add_row([
                mig.index.clone(),
                mig.uuid.clone(),
                format!("  {}", mig.profile),
            ]);
        }
    }
    Ok(rows)
}

fn condition(card: &Gpu) -> &'static str {
    match (card.lost, card.mig_enabled) {
        (true, _) => "lost",
        (false, true) => "ok, MIG on",
        (false, false) => "ok",
    }
}

fn describe(fault: &Fault) -> String {
    let call = match fault.call.as_str() {
        "*" => "every call",
        call => call,
    };
    let device = fault.device.as_deref().unwrap_or("all devices");
    match fault.effect {
        Effect::Hang { millis: None } => format!("fault: {call} hangs on {device}"),
        Effect::Hang { millis: Some(time) } => {
            format!("fault: {call} hangs for {time} ms on {device}")
        }
        Effect::Fail { code } => format!("fault: {call} fails with code {code} on {device}"),
    }
}
