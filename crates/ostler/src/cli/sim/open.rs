//! `ostler sim open`: lists the processes that have a card open.

use sim::Node;

use super::super::table::{OutputFormat, new_table, serialize_output};

/// Show the processes that have a card open: a reset or driver reload waits for them.
#[derive(Debug, clap::Args)]
pub(super) struct SimOpenArgs {
    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: OutputFormat,
}

// === impl SimOpenArgs ===

impl SimOpenArgs {
    pub(super) fn show_holders(self, node: &Node) -> anyhow::Result<String> {
        let cards = node.holders()?;
        match self.output {
            OutputFormat::Json => return serialize_output(&cards, false),
            OutputFormat::Yaml => return serialize_output(&cards, true),
            OutputFormat::Table => {}
        }
        let mut rows = new_table(&["INDEX", "ID", "NODE", "OPEN IN"]);
        for card in cards {
            let pids: Vec<_> = card.pids.iter().map(ToString::to_string).collect();
            let pids = match pids.is_empty() {
                true => "-".to_owned(),
                false => pids.join(", "),
            };
            rows.add_row([card.index.to_string(), card.gpu, card.node, pids]);
        }
        Ok(rows.trim_fmt() + "\n")
    }
}
