//! What a program costs that nobody asks anything: CPU time, wake-ups, memory.

use std::time::Duration;

use anyhow::ensure;
use tokio::time::sleep;

use super::{bytes, say};
use crate::{
    calls::Client,
    figures::{Figures, Unit},
    pair::Pair,
    peer::{Launch, Site},
    plan::Plan,
    report::{Row, Section},
    running::Running,
    tree::{Tree, TreeMemory, Usage, Used},
    value::Value,
};

/// How long a program is left alone before it is looked at.
const SETTLE: Duration = Duration::from_secs(5);

/// CPU time is taken in windows of our probe's period, so that each holds one look at the cards.
const WINDOW: Duration = Duration::from_secs(10);

/// What was seen of one program.
#[derive(Debug)]
struct Seen {
    shares: Vec<f64>,
    wakes: Vec<f64>,
    memory: TreeMemory,
    /// The memory (PSS) after it was busy.
    after: f64,
}

/// Watches one program after the other; with both at a time, each would make the other's share of
/// common pages smaller. Also gives the memory of each process of ours.
pub(super) async fn measure(
    site: &Site,
    plugins: &Pair<Launch>,
    plan: Plan,
) -> anyhow::Result<(Vec<Row>, Section)> {
    let watch = async |launch: &Launch| {
        say(&format!("idle for {} s", plan.idle.as_secs()))?;
        let running = Running::start(site, launch).await?;
        let seen = watch(&running, plan).await?;
        running.stop().await?;
        Ok(seen)
    };
    let seen = plugins.as_ref().each(watch).await?;
    let figures = |values: &[f64], unit| Value::Figures(Figures::of(values.to_vec(), unit));
    let row = |name, value: &dyn Fn(&Seen) -> Value| Row::new(name, seen.as_ref().map(value));
    let rows = vec![
        row("memory, all processes (PSS)", &|s| {
            bytes(s.memory.total().pss)
        })
        .aim(f64::from(16 << 20)),
        row("memory after the calls (PSS)", &|s| bytes(s.after)),
        row("idle CPU", &|s| figures(&s.shares, Unit::Share)).aim(0.001),
        row("idle wake-ups", &|s| figures(&s.wakes, Unit::PerSecond)),
    ];
    Ok((rows, processes(&seen.ours.memory)))
}

/// Watches a program, and then keeps it busy for a while.
async fn watch(running: &Running, plan: Plan) -> anyhow::Result<Seen> {
    sleep(SETTLE).await;
    let used = windows(running, plan.idle).await?;
    let memory = Tree::of(running.pid())?.memory()?;
    let mut client = Client::connect(running).await?;
    for size in 1..=running.devices.len() {
        client.allocate(size, plan.calls).await?;
        client.prefer(size, plan).await?;
    }
    let after = Tree::of(running.pid())?.memory()?;
    Ok(Seen {
        shares: used.iter().map(Used::share).collect(),
        wakes: used.iter().map(Used::wakes).collect(),
        memory,
        after: after.total().pss,
    })
}

/// What a program uses up, one window after the other.
///
/// # Errors
/// If a process of it comes or goes: what that one used would not be counted.
pub(super) async fn windows(running: &Running, time: Duration) -> anyhow::Result<Vec<Used>> {
    let tree = Tree::of(running.pid())?;
    let mut before = Usage::of(&tree)?;
    let mut windows = Vec::new();
    for _ in 0..(time.as_secs() / WINDOW.as_secs()).max(1) {
        sleep(WINDOW).await;
        ensure!(
            tree == Tree::of(running.pid())?,
            "a process of the program came or went while it was watched"
        );
        let now = Usage::of(&tree)?;
        windows.push(now.since(&before));
        before = now;
    }
    Ok(windows)
}

/// The memory of each process of ours.
fn processes(memory: &TreeMemory) -> Section {
    let mut section = Section::new("Ostler's processes");
    for process in &memory.processes {
        let used = process.memory;
        for (what, value) in [
            ("PSS", used.pss),
            ("private", used.private),
            ("shared", used.shared),
        ] {
            let name = format!("{}, {what}", process.name);
            let figures = Figures::one(value, Unit::Bytes);
            section.rows.push(Row::own(&name, figures));
        }
    }
    section
}
