//! `ostler release` and `ostler resume`.

use std::process::ExitCode;

use api::Release;
use config::Period;

use super::control::Control;

/// Release a card for a while: the agent closes every driver handle and does not read the card.
///
/// Meanwhile a reset, a change of MIG mode or a driver upgrade is possible, and no pod gets the
/// card. The command returns when the handles are closed. The release ends when its time is over,
/// or with `ostler resume`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,

    /// Duration of the release
    #[arg(long = "for", value_name = "TIME", default_value = "10m")]
    time: Period,

    #[command(flatten)]
    control: Control,
}

/// End a release before its time is over.
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
    /// UUID or the beginning of one, index, or PCI address
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
