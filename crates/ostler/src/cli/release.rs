//! `ostler release` and `ostler resume`.

use std::process::ExitCode;

use api::Release;
use config::Period;

use super::control::Control;

/// Give a card up for a while: nobody looks at it, and every driver handle is closed.
///
/// Now a reset, a change of MIG mode or a new driver can be had. Returns when the handles are
/// closed. No pod gets the card meanwhile; it is taken back by itself, or by `ostler resume`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,

    /// For how long
    #[arg(long = "for", value_name = "TIME", default_value = "10m")]
    time: Period,

    #[command(flatten)]
    control: Control,
}

/// Take back what was released, before its time.
#[derive(Debug, clap::Args)]
pub(super) struct Back {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    control: Control,
}

/// One card or all.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// A UUID or its beginning, an index, or a PCI address
    device: Option<String>,

    /// Every card
    #[arg(long)]
    all: bool,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        let order = self.which.order(Some(self.time.get().as_secs().max(1)));
        super::block_on(self.control.order(api::RELEASE, &order))??;
        Ok(ExitCode::SUCCESS)
    }
}

// === impl Back ===

impl Back {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        let order = self.which.order(None);
        super::block_on(self.control.order(api::RESUME, &order))??;
        Ok(ExitCode::SUCCESS)
    }
}

// === impl Which ===

impl Which {
    fn order(self, seconds: Option<u64>) -> Release {
        Release {
            device: self.device,
            all: self.all,
            seconds,
        }
    }
}
