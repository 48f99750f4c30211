//! What a program costs whose wait for events fails at once, again and again.

use std::time::Duration;

use sim::Effect;
use tokio::time::sleep;

use super::{PROFILE, idle, say};
use crate::{
    figures::{Figures, Unit},
    pair::Pair,
    peer::{Launch, Site},
    plan::Plan,
    report::Row,
    running::Running,
    tree::Used,
    value::Value,
};

/// The call that fails, in all its versions, and NVML's code for an unknown error.
const CALL: &str = "nvmlEventSetWait";
const UNKNOWN: u32 = 999;

/// How long the call fails before the program is looked at: a wait that has begun goes on for up to
/// 5 s.
const SETTLE: Duration = Duration::from_secs(7);

/// Watches one program after the other: one that does not pause would be in the other's way.
pub(super) async fn measure(plugins: &Pair<Launch>, plan: Plan) -> anyhow::Result<Row> {
    let watch = async |launch: &Launch| {
        say("an event wait that fails")?;
        let site = Site::make(PROFILE)?;
        let running = Running::start(&site, launch).await?;
        let effect = Effect::Fail { code: UNKNOWN };
        site.node.set_fault(CALL, None, effect)?;
        sleep(SETTLE).await;
        let used = idle::windows(&running, plan.idle / 2).await?;
        site.node.clear_faults(None)?;
        running.stop().await?;
        let shares = used.iter().map(Used::share).collect();
        Ok(Value::Figures(Figures::of(shares, Unit::Share)))
    };
    let values = plugins.as_ref().each(watch).await?;
    Ok(Row::new("CPU with an event wait that fails", values).aim(0.01))
}
