//! `ostler cordon` and `ostler uncordon`.

use std::process::ExitCode;

use api::{CordonOrder, UncordonOrder};

use super::control::ControlFlags;

/// Cordon a device: no new pod gets it until it is uncordoned, even after a reboot.
///
/// Pods that use the device already keep it. The MIG devices of a card are cordoned with it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct CordonArgs {
    /// UUID or the beginning of one, index, or PCI address
    device: String,

    /// The reason, which `ostler health` shows
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,

    #[command(flatten)]
    control: ControlFlags,
}

/// Uncordon a device, and end the causes that only an operator can end.
///
/// A cause that a check still finds stays.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct UncordonArgs {
    /// UUID or the beginning of one, index, or PCI address
    device: String,

    #[command(flatten)]
    control: ControlFlags,
}

// === impl CordonArgs ===

impl CordonArgs {
    pub(super) fn send_cordon(self) -> anyhow::Result<ExitCode> {
        let order = CordonOrder {
            device: self.device,
            reason: self.reason,
        };
        super::block_on(self.control.send_order(api::CORDON, &order))??;
        Ok(ExitCode::SUCCESS)
    }
}

// === impl UncordonArgs ===

impl UncordonArgs {
    pub(super) fn send_uncordon(self) -> anyhow::Result<ExitCode> {
        let order = UncordonOrder {
            device: self.device,
        };
        super::block_on(self.control.send_order(api::UNCORDON, &order))??;
        Ok(ExitCode::SUCCESS)
    }
}
