//! `ostler sim open`: lists the processes that have a card open.

use sim::Node;

use super::super::table::{Output, table, text};

/// Show the processes that have a card open: a reset or driver reload waits for them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Output,
}

// === impl Args ===

impl Args {
    pub(super) fn show(self, node: &Node) -> anyhow::Result<String> {
        let cards = node.holders()?;
        match self.output {
            Output::Json => return text(&cards, false),
            Output::Yaml => return text(&cards, true),
            Output::Table => {}
        }
        let mut rows = table(&["INDEX", "ID", "NODE", "OPEN IN"]);
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
