//! Whether every share of a card is taken back when the card breaks.

use std::time::Duration;

use sim::{DeviceTarget, kubelet::PluginDevices};
use tokio::time::sleep;

use super::{
    PROFILE,
    faults::{LISTEN, XID},
    say, sharing,
};
use crate::{
    figures::{Figures, Unit},
    pair::Pair,
    peer::{Launch, Site},
    plan::Plan,
    report::Row,
    running::{RESOURCE, Running},
    value::Value,
};

/// How many shares a card has.
const REPLICAS: usize = 10;

/// How long a program that took one share back is given for the others.
const SETTLE: Duration = Duration::from_secs(3);

/// Breaks a shared card and counts the shares of it that are still offered.
pub(super) async fn measure(plugins: &Pair<Launch>, plan: Plan) -> anyhow::Result<Row> {
    say(&format!("XID {XID} on a card with {REPLICAS} replicas"))?;
    let site = Site::make(PROFILE)?;
    let start = async |launch: &Launch| {
        let launch = sharing::launch(launch, &plugins.ours)?;
        Ok(match launch {
            Some(launch) => Some(sharing::start(&site, &launch, REPLICAS).await?),
            None => None,
        })
    };
    let running = plugins.as_ref().each(start).await?;
    sleep(LISTEN).await;
    site.node.raise_xid(&DeviceTarget::Index(0), XID)?;
    let card = &site.node.list_gpus()?[0].uuid;
    let count = async |running| match running {
        Some(running) => offered(running, card, plan).await,
        None => Ok(Value::NOT_YET),
    };
    let values = running.each(count).await?;
    let name = format!("of {REPLICAS} replicas, offered after XID {XID}");
    Ok(Row::new(&name, values).aim(0.0))
}

/// How many shares of a card are offered once one is not; then the program is stopped.
#[expect(clippy::cast_precision_loss, reason = "a few shares")]
async fn offered(running: Running, card: &str, plan: Plan) -> anyhow::Result<Value> {
    let kubelet = running.kubelet();
    let healthy = |devices: &PluginDevices| {
        let shares = devices.iter().filter(|(id, _)| id.starts_with(card));
        shares.filter(|(_, share)| share.healthy).count()
    };
    let begun = |devices: &PluginDevices| healthy(devices) < REPLICAS;
    let value = match kubelet.wait_devices(RESOURCE, begun, plan.never).await {
        Ok(_) => {
            sleep(SETTLE).await;
            let count = healthy(&kubelet.resource_devices(RESOURCE));
            Value::Figures(Figures::one(count as f64, Unit::Count))
        }
        Err(_) => Value::Never {
            seconds: plan.never.as_secs_f64(),
        },
    };
    running.stop().await?;
    Ok(value)
}
