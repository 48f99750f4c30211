//! Commands that reset cards. Like `nvidia-smi --gpu-reset` and `rmmod nvidia` they refuse while a
//! program has a card open.

use std::time::Duration;

use anyhow::bail;
use clap::Subcommand;
use config::Period;
use sim::{CardHolders, DeviceTarget, Node};

/// One command that resets cards.
#[derive(Debug, Subcommand)]
pub(super) enum ResetCommand {
    /// Reset a card: it is away for a moment and comes back with counters at zero, with pending
    /// repairs done, and without MIG devices and processes
    Reset {
        /// The card
        target: DeviceTarget,
        /// Time for which the card is away
        #[arg(long = "for", value_name = "TIME", default_value = "1s")]
        away: Period,
        /// Reset even if a program has the card open
        #[arg(long)]
        force: bool,
    },
    /// Unload the kernel driver and load it again: every card is as after a reset
    ReloadDriver {
        /// Reload even if a program has a card open
        #[arg(long)]
        force: bool,
    },
    /// Reboot the machine: a new boot id, and every card as after a reset
    Reboot,
}

// === impl ResetCommand ===

impl ResetCommand {
    /// Runs the command. Returns the line to print.
    ///
    /// # Errors
    /// A program has a card open and `--force` is not given, or there is no such card.
    pub(super) fn run_reset(self, node: &Node) -> anyhow::Result<String> {
        Ok(match self {
            Self::Reset {
                target,
                away,
                force,
            } => {
                if !force {
                    refuse_if_open(node, Some(&target))?;
                }
                node.reset_cards(&target, away.as_duration())?;
                format!("{target} was reset\n")
            }
            Self::ReloadDriver { force } => {
                if !force {
                    refuse_if_open(node, None)?;
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

/// Fails if a program has one of the cards open. The check is repeated once: a program that has just
/// ended may still hold the card.
fn refuse_if_open(node: &Node, target: Option<&DeviceTarget>) -> anyhow::Result<()> {
    let wanted = |card: &CardHolders| match target {
        None | Some(DeviceTarget::All) => true,
        Some(DeviceTarget::Index(index)) => card.index == *index,
        Some(DeviceTarget::Uuid(uuid)) => card.gpu == *uuid,
        Some(DeviceTarget::Pci(pci)) => node
            .list_gpus()
            .is_ok_and(|gpus| gpus.iter().any(|g| g.uuid == card.gpu && g.pci == *pci)),
        Some(DeviceTarget::Mig(..)) => false,
    };
    let held =
        |cards: Vec<CardHolders>| cards.into_iter().find(|c| wanted(c) && !c.pids.is_empty());
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
