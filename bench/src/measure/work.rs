//! Allocate, as the kubelet calls it.

use std::time::Duration;

use super::say;
use crate::{
    calls::Client, pair::Pair, peer::Launch, peer::Site, plan::Plan, report::Row, running::Running,
    value::Value,
};

/// How many calls one program gets before it is the other's turn.
const TURN: usize = 50;

/// Asks both programs in turn, so that whatever else the machine does meets both.
pub(super) async fn measure(
    site: &Site,
    plugins: &Pair<Launch>,
    plan: Plan,
) -> anyhow::Result<Vec<Row>> {
    say("allocations")?;
    let start = async |launch| Running::start(site, launch).await;
    let running = plugins.as_ref().each(start).await?;
    let connect = async |running| Client::connect(running).await;
    let mut clients = running.as_ref().each(connect).await?;
    let mut rows = Vec::new();
    for size in [1, site.node.list_gpus()?.len()] {
        let mut times = clients.as_ref().map(|_| Vec::<Duration>::new());
        for turn in 0..=plan.calls.div_ceil(TURN) {
            for (client, times) in clients.iter_mut().zip(times.iter_mut()) {
                let took = client.allocate(size, TURN).await?;
                // The first turn is to warm up.
                if turn > 0 {
                    times.extend(took);
                }
            }
        }
        let values = times.map(|times| Value::times(&times, plan.deadline));
        rows.push(Row::new(&format!("Allocate {size}"), values));
    }
    running.each(async |running| running.stop().await).await?;
    Ok(rows)
}
