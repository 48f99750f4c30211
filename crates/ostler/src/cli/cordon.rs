//! `ostler cordon` and `ostler uncordon`.

use std::process::ExitCode;

use api::{Cordon, Uncordon};

use super::control::Control;

/// Cordon a device: no new pod gets it until it is uncordoned, even after a reboot.
///
/// Pods that use the device already keep it. The MIG devices of a card are cordoned with it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// UUID or the beginning of one, index, or PCI address
    device: String,

    /// The reason, which `ostler health` shows
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,

    #[command(flatten)]
    control: Control,
}

/// Uncordon a device, and end the causes that only an operator can end.
///
/// A cause that a check still finds stays.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Back {
    /// UUID or the beginning of one, index, or PCI address
    device: String,

    #[command(flatten)]
    control: Control,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        let order = Cordon {
            device: self.device,
            reason: self.reason,
        };
        super::block_on(self.control.order(api::CORDON, &order))??;
        Ok(ExitCode::SUCCESS)
    }
}

// === impl Back ===

impl Back {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        let order = Uncordon {
            device: self.device,
        };
        super::block_on(self.control.order(api::UNCORDON, &order))??;
        Ok(ExitCode::SUCCESS)
    }
}
