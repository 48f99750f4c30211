//! From the start of the process to the kubelet's knowledge, again after a restart of the kubelet, and
//! from SIGTERM to the end.

use std::time::Duration;

use super::say;
use crate::{
    pair::Pair, peer::Launch, peer::Site, plan::Plan, report::Row, running::Running, value::Value,
};

/// The times of one program.
#[derive(Debug, Default)]
struct Times {
    registered: Vec<Duration>,
    listed: Vec<Duration>,
    again: Vec<Duration>,
    stopped: Vec<Duration>,
}

/// Starts the programs again and again, in turn.
pub(super) async fn measure(
    site: &Site,
    plugins: &Pair<Launch>,
    plan: Plan,
) -> anyhow::Result<Vec<Row>> {
    let mut times = plugins.as_ref().map(|_| Times::default());
    let all = plan.warmups + plan.starts;
    for round in 0..all {
        say(&format!("start {} of {all}", round + 1))?;
        for (launch, times) in plugins.iter().zip(times.iter_mut()) {
            let running = Running::start(site, launch).await?;
            let start = running.start;
            let again = running.restart_kubelet().await?;
            let stopped = running.stop().await?;
            if round >= plan.warmups {
                times.registered.push(start.registered);
                times.listed.push(start.listed);
                times.again.push(again);
                times.stopped.push(stopped);
            }
        }
    }
    let row = |name, of: fn(&Times) -> &Vec<Duration>| {
        let values = times
            .as_ref()
            .map(|times| Value::times(of(times), plan.deadline));
        Row::new(name, values)
    };
    Ok(vec![
        row("start to registered", |times| &times.registered).aim(15e-3),
        row("start to first list", |times| &times.listed),
        row("kubelet restart to registered", |times| &times.again).aim(3.5),
        row("SIGTERM to exit", |times| &times.stopped).aim(2.0),
    ])
}
