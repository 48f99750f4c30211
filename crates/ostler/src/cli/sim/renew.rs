//! The commands that make cards new. Like the real ones they refuse while a program has a card open.

use std::time::Duration;

use anyhow::bail;
use clap::Subcommand;
use config::Period;
use sim::{Holders, Node, Target};

/// One way to make cards new.
#[derive(Debug, Subcommand)]
pub(super) enum Renew {
    /// Reset a card: it is away for a moment and comes back with its counters at zero, with what
    /// waited for a reset done, and without MIG devices and processes
    Reset {
        /// The card
        target: Target,
        /// How long it is away
        #[arg(long = "for", value_name = "TIME", default_value = "1s")]
        away: Period,
        /// Do it even if a program has the card open
        #[arg(long)]
        force: bool,
    },
    /// Unload the kernel driver and load it again: every card is as after a reset
    ReloadDriver {
        /// Do it even if a program has a card open
        #[arg(long)]
        force: bool,
    },
    /// Start the machine again: another boot id, and every card as after a reset
    Reboot,
}

// === impl Renew ===

impl Renew {
    /// Does it. Gives the line that tells of it.
    pub(super) fn make(self, node: &Node) -> anyhow::Result<String> {
        Ok(match self {
            Self::Reset {
                target,
                away,
                force,
            } => {
                if !force {
                    refuse(node, Some(&target))?;
                }
                node.reset(&target, away.get())?;
                format!("{target} was reset\n")
            }
            Self::ReloadDriver { force } => {
                if !force {
                    refuse(node, None)?;
                }
                node.reload_driver()?;
                "the driver was loaded again\n".to_owned()
            }
            Self::Reboot => {
                node.reboot()?;
                "the machine was started again\n".to_owned()
            }
        })
    }
}

/// Fails where a program has one of the cards open for more than a moment.
fn refuse(node: &Node, target: Option<&Target>) -> anyhow::Result<()> {
    let wanted = |card: &Holders| match target {
        None | Some(Target::All) => true,
        Some(Target::Index(index)) => card.index == *index,
        Some(Target::Uuid(uuid)) => card.gpu == *uuid,
        Some(Target::Pci(pci)) => node
            .gpus()
            .is_ok_and(|gpus| gpus.iter().any(|g| g.uuid == card.gpu && g.pci == *pci)),
        Some(Target::Mig(..)) => false,
    };
    let held = |cards: Vec<Holders>| cards.into_iter().find(|c| wanted(c) && !c.pids.is_empty());
    if held(node.holders()?).is_none() {
        return Ok(());
    }
    std::thread::sleep(Duration::from_millis(100));
    let Some(card) = held(node.holders()?) else {
        return Ok(());
    };
    let pids: Vec<_> = card.pids.iter().map(ToString::to_string).collect();
    bail!(
        "{} is in use: {} is open in process {}; end it or let it release the card, or give --force",
        card.gpu,
        card.node,
        pids.join(", ")
    )
}
