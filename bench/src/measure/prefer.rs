//! GetPreferredAllocation for every size, on whole cards and on shared ones.

use std::time::Duration;

use super::{bytes, say, sharing};
use crate::{
    calls::Client,
    pair::Pair,
    peer::{Launch, Site},
    plan::Plan,
    report::{Row, Section},
    running::Running,
    tree::Tree,
    value::Value,
};

/// How many units a shared card becomes.
const REPLICAS: usize = 16;

/// What was seen of one program: for each size its times, and the most memory after one.
#[derive(Debug)]
struct Seen {
    sizes: Vec<Vec<Duration>>,
    memory: f64,
}

/// Whole cards.
pub(super) async fn whole(
    profile: &str,
    plugins: &Pair<Launch>,
    plan: Plan,
) -> anyhow::Result<Section> {
    let site = Site::make(profile)?;
    let gpus = site.node.list_gpus()?.len();
    say(&format!("GetPreferredAllocation, {gpus} GPUs"))?;
    let ask = async |launch: &Launch| {
        let start = async || Running::start(&site, launch).await;
        Ok(Some(sweep(start, gpus, plan).await?))
    };
    let seen = plugins.as_ref().each(ask).await?;
    let title = format!("GetPreferredAllocation on {profile}, {gpus} GPUs");
    Ok(section(&title, gpus, &seen, plan))
}

/// Cards that are shared in time.
pub(super) async fn shared(
    profile: &str,
    plugins: &Pair<Launch>,
    plan: Plan,
) -> anyhow::Result<Section> {
    let site = Site::make(profile)?;
    let gpus = site.node.list_gpus()?.len();
    let units = gpus * REPLICAS;
    say(&format!(
        "GetPreferredAllocation, {units} shares of {gpus} GPUs"
    ))?;
    let ask = async |launch: &Launch| {
        let Some(launch) = sharing::launch(launch, &plugins.ours)? else {
            return Ok(None);
        };
        let start = async || sharing::start(&site, &launch, REPLICAS).await;
        Ok(Some(sweep(start, gpus, plan).await?))
    };
    let seen = plugins.as_ref().each(ask).await?;
    let title = format!("GetPreferredAllocation on {profile}, {gpus} GPUs as {units} shares");
    Ok(section(&title, units, &seen, plan))
}

/// Asks a program for the best of each size up to `sizes`. One that is stuck is replaced.
async fn sweep(
    mut start: impl AsyncFnMut() -> anyhow::Result<Running>,
    sizes: usize,
    plan: Plan,
) -> anyhow::Result<Seen> {
    let mut running = start().await?;
    let mut client = Client::connect(&running).await?;
    let mut seen = Seen {
        sizes: Vec::with_capacity(sizes),
        memory: 0.0,
    };
    for size in 1..=sizes {
        let asked = client.prefer(size, plan).await?;
        seen.sizes.push(asked.times);
        let memory = Tree::of(running.pid())?.memory()?;
        seen.memory = seen.memory.max(memory.total().pss);
        if asked.stuck {
            drop(running);
            running = start().await?;
            client = Client::connect(&running).await?;
        }
    }
    running.stop().await?;
    Ok(seen)
}

/// The rows: one for each size, and the memory.
fn section(title: &str, units: usize, seen: &Pair<Option<Seen>>, plan: Plan) -> Section {
    let mut section = Section::new(title);
    let sizes = seen.iter().flatten().map(|seen| seen.sizes.len()).max();
    for size in 1..=sizes.unwrap_or(0) {
        let values = seen.as_ref().map(|seen| match seen {
            Some(seen) => Value::times(&seen.sizes[size - 1], plan.deadline),
            None => Value::NOT_YET,
        });
        let name = format!("best {size} of {units}");
        section.rows.push(Row::new(&name, values));
    }
    let values = seen.as_ref().map(|seen| match seen {
        Some(seen) => bytes(seen.memory),
        None => Value::NOT_YET,
    });
    section
        .rows
        .push(Row::new("memory after the calls (PSS)", values));
    section
}
