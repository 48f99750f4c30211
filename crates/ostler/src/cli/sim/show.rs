//! `ostler sim show`: lists the cards, MIG devices and injected faults of a node.

use comfy_table::Table;
use sim::{
    Effect, Node,
    state::{Gpu, NodeState, NvmlFault},
};

use super::super::table::{OutputFormat, new_table, serialize_output};

/// Show the node's cards, MIG devices and injected faults.
#[derive(Debug, clap::Args)]
pub(super) struct SimShowArgs {
    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: OutputFormat,
}

// === impl SimShowArgs ===

impl SimShowArgs {
    pub(super) fn show_node(self, node: &Node) -> anyhow::Result<String> {
        match self.output {
            OutputFormat::Table => format_node(node),
            OutputFormat::Json => serialize_output(&node.node_state()?, false),
            OutputFormat::Yaml => serialize_output(&node.node_state()?, true),
        }
    }
}

fn format_node(node: &Node) -> anyhow::Result<String> {
    let state = node.node_state()?;
    let driver = &state.driver;
    let (major, minor) = (driver.cuda / 1000, driver.cuda % 1000 / 10);
    let mut page = format!(
        "{} in {}: driver {}, CUDA {major}.{minor}\n",
        state.profile,
        node.node_dir().display(),
        driver.version
    );
    if !node.driver_library().exists() {
        page += "the driver library is taken away; `ostler sim plug-driver` puts it back\n";
    }
    match state.gpus.is_empty() {
        true => page += "no cards; `ostler sim add-gpu` puts one in\n",
        false => page += &(node_table(node, &state)?.trim_fmt() + "\n"),
    }
    for fault in &state.faults {
        page += &(describe_fault(fault) + "\n");
    }
    if !state.faults.is_empty() {
        page += "`ostler sim clear` ends these faults\n";
    }
    Ok(page)
}

fn node_table(node: &Node, state: &NodeState) -> anyhow::Result<Table> {
    let mut rows = new_table(&[
        "INDEX", "ID", "MODEL", "PCI", "NUMA", "MEMORY", "TEMP", "STATE",
    ]);
    let migs = node.list_migs()?;
    for gpu in node.list_gpus()? {
        let card = &state.gpus[gpu.index];
        rows.add_row([
            gpu.index.to_string(),
            gpu.uuid.clone(),
            gpu.name,
            gpu.pci.to_string(),
            gpu.numa.map_or_else(|| "-".to_owned(), |n| n.to_string()),
            format!("{} MiB", gpu.memory_bytes >> 20),
            format!("{} °C", card.sensors.temperature),
            card_condition(card).to_owned(),
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

fn card_condition(card: &Gpu) -> &'static str {
    match (card.lost, card.mig_enabled) {
        (true, _) => "lost",
        (false, true) => "ok, MIG on",
        (false, false) => "ok",
    }
}

fn describe_fault(fault: &NvmlFault) -> String {
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
