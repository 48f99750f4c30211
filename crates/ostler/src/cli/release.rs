//! `ostler release` and `ostler resume`.

use std::process::ExitCode;

use api::ReleaseOrder;
use config::Period;

use super::control::ControlFlags;

/// Release a card for a while: the agent closes every driver handle and does not read the card.
///
/// Meanwhile a reset, a change of MIG mode or a driver upgrade is possible, and no pod gets the
/// card. The command returns when the handles are closed. The release ends when its time is over,
/// or with `ostler resume`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ReleaseArgs {
    #[command(flatten)]
    which: ReleaseTarget,

    /// Duration of the release
    #[arg(long = "for", value_name = "TIME", default_value = "10m")]
    time: Period,

    #[command(flatten)]
    control: ControlFlags,
}

/// End a release before its time is over.
#[derive(Debug, clap::Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    which: ReleaseTarget,

    #[command(flatten)]
    control: ControlFlags,
}

/// One card or all.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct ReleaseTarget {
    /// UUID or the beginning of one, index, or PCI address
    device: Option<String>,

    /// Every card
    #[arg(long)]
    all: bool,
}

// === impl ReleaseArgs ===

impl ReleaseArgs {
    pub(super) fn send_release(self) -> anyhow::Result<ExitCode> {
        let order = self
            .which
            .make_order(Some(self.time.as_duration().as_secs().max(1)));
        super::block_on(self.control.send_order(api::RELEASE, &order))??;
        Ok(ExitCode::SUCCESS)
    }
}

// === impl ResumeArgs ===

impl ResumeArgs {
    pub(super) fn send_resume(self) -> anyhow::Result<ExitCode> {
        let order = self.which.make_order(None);
        super::block_on(self.control.send_order(api::RESUME, &order))??;
        Ok(ExitCode::SUCCESS)
    }
}

// === impl ReleaseTarget ===

impl ReleaseTarget {
    fn make_order(self, seconds: Option<u64>) -> ReleaseOrder {
        ReleaseOrder {
            device: self.device,
            all: self.all,
            seconds,
        }
    }
}
