//! `ostler cordon` and `ostler uncordon`.

use std::process::ExitCode;

use api::{Cordon, Uncordon};

use super::control::Control;

/// Take a device out: no pod gets it until it is uncordoned, not even after a reboot.
///
/// Pods that have it keep it. A card takes its MIG devices with it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// A UUID or its beginning, an index, or a PCI address
    device: String,

    /// Why; `ostler health` shows it
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,

    #[command(flatten)]
    control: Control,
}

/// Give a device back, and vouch for it: what only an operator ends, ends.
///
/// What a check still finds stands.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Back {
    /// A UUID or its beginning, an index, or a PCI address
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
