//! Measures the agent on a simulated node with a kubelet: start, calls, memory, idle CPU, and the
//! functions behind the calls. Everything is measured from outside, over the sockets and `/proc`,
//! so that other device plugins can be measured by the same client.

mod bed;
mod calls;
mod elf;
mod figures;
mod functions;
mod machine;
mod report;
mod subject;
mod tree;

use std::{
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use clap::Parser;
use tokio::time::sleep;

use self::{
    bed::{Bed, Running},
    calls::Client,
    figures::{Figures, Unit},
    machine::Machine,
    report::{Report, Row, Section},
    subject::Subject,
    tree::{Tree, Usage},
};

/// The machine that is simulated: eight GPUs behind NVSwitches.
const PROFILE: &str = "dgx-a100";

/// How long the agent is left alone before its memory and its idle CPU are looked at.
const SETTLE: Duration = Duration::from_secs(5);

/// Idle CPU is taken in windows of the probe's period, so that each holds one look at the cards.
const WINDOW: Duration = Duration::from_secs(10);

/// Measure the agent on a simulated node.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Args {
    /// A short run that writes no files
    #[arg(long)]
    quick: bool,

    /// How often the agent is started [default: 20, quick: 5]
    #[arg(long, value_name = "N")]
    starts: Option<usize>,

    /// How often it is started before that, without being measured
    #[arg(long, value_name = "N", default_value_t = 3)]
    warmups: usize,

    /// How often each call is made [default: 2000, quick: 200]
    #[arg(long, value_name = "N")]
    calls: Option<usize>,

    /// For how many seconds the idle agent is watched [default: 60, quick: 10]
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,

    /// The program to measure [default: the one that `cargo build --release` makes]
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,

    /// Where RESULTS.md and results.json go
    #[arg(long, value_name = "DIR", default_value = env!("CARGO_MANIFEST_DIR"), hide_default_value = true)]
    output: PathBuf,
}

/// How thoroughly to measure.
#[derive(Clone, Copy, Debug)]
struct Plan {
    starts: usize,
    warmups: usize,
    calls: usize,
    idle: Duration,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(
        !cfg!(debug_assertions),
        "a debug build measures nothing; use `cargo run --release -p bench`"
    );
    let subject = match &args.binary {
        Some(binary) => Subject::ostler(binary)?,
        None => Subject::build()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(measure(&subject, args.plan()))?;
    writeln!(io::stdout(), "\n{}", report.text())?;
    if !args.quick {
        let written = report.write(&args.output)?;
        writeln!(io::stdout(), "\nwritten to {written}")?;
    }
    Ok(())
}

// === impl Args ===

impl Args {
    fn plan(&self) -> Plan {
        let quick = |short, long| if self.quick { short } else { long };
        Plan {
            starts: self.starts.unwrap_or(quick(5, 20)).max(1),
            warmups: self.warmups,
            calls: self.calls.unwrap_or(quick(200, 2000)).max(1),
            idle: Duration::from_secs(self.idle.unwrap_or(if self.quick { 10 } else { 60 }).max(1)),
        }
    }
}

/// Measures everything.
async fn measure(subject: &Subject, plan: Plan) -> anyhow::Result<Report> {
    // At once: the source tree may change while the program is measured.
    let machine = Machine::read(subject)?;
    let bed = Bed::make(PROFILE)?;
    let mut agent = Section::new(&format!("{} on {PROFILE}, {} GPUs", subject.name, bed.gpus));
    agent.rows.extend(starts(&bed, subject, plan).await?);
    agent.rows.extend(at_work(&bed, subject, plan).await?);
    agent.rows.extend([
        Row::new("binary", Figures::one(subject.size()?, Unit::Bytes)),
        Row::new(
            "binary, without symbols",
            Figures::one(subject.loaded()?, Unit::Bytes),
        ),
    ]);
    say("functions")?;
    Ok(Report {
        machine,
        sections: vec![agent, functions::measure(subject)?],
    })
}

/// Starts the agent again and again.
async fn starts(bed: &Bed, subject: &Subject, plan: Plan) -> anyhow::Result<Vec<Row>> {
    let (mut registered, mut listed, mut stopped) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..plan.warmups + plan.starts {
        say(&format!(
            "start {} of {}",
            round + 1,
            plan.warmups + plan.starts
        ))?;
        let running = bed.start(subject).await?;
        let start = running.start;
        let stop = running.stop().await?;
        if round >= plan.warmups {
            registered.push(start.registered);
            listed.push(start.listed);
            stopped.push(stop);
        }
    }
    Ok(vec![
        Row::new("start to registered", Figures::times(&registered)).aim(15e-3),
        Row::new("start to first list", Figures::times(&listed)),
        Row::new("SIGTERM to exit", Figures::times(&stopped)).aim(2.0),
    ])
}

/// Watches one agent: idle first, then at work.
async fn at_work(bed: &Bed, subject: &Subject, plan: Plan) -> anyhow::Result<Vec<Row>> {
    let running = bed.start(subject).await?;
    sleep(SETTLE).await;
    say(&format!("idle for {} s", plan.idle.as_secs()))?;
    let mut rows = idle(&running, plan.idle).await?;
    say("calls")?;
    rows.extend(calls(&running, plan.calls).await?);
    let after = Tree::of(running.pid)?.memory()?;
    rows.push(Row::new(
        "memory after the calls (PSS)",
        Figures::one(after.total().pss, Unit::Bytes),
    ));
    running.stop().await?;
    Ok(rows)
}

/// Watches an agent that nobody asks anything, one window after the other.
async fn idle(running: &Running, time: Duration) -> anyhow::Result<Vec<Row>> {
    let (mut shares, mut wakes) = (Vec::new(), Vec::new());
    let mut tree = Tree::of(running.pid)?;
    let mut before = Usage::of(&tree)?;
    for _ in 0..(time.as_secs() / WINDOW.as_secs()).max(1) {
        sleep(WINDOW).await;
        tree = Tree::of(running.pid)?;
        let now = Usage::of(&tree)?;
        let used = now.since(&before);
        shares.push(used.share());
        wakes.push(used.wakes());
        before = now;
    }
    let memory = tree.memory()?;
    let bytes = |bytes| Figures::one(bytes, Unit::Bytes);
    let mut rows = vec![
        Row::new("idle CPU", Figures::of(shares, Unit::Share)).aim(0.001),
        Row::new("idle wake-ups", Figures::of(wakes, Unit::PerSecond)),
        Row::new("memory, all processes (PSS)", bytes(memory.total().pss)).aim(f64::from(16 << 20)),
    ];
    for process in &memory.processes {
        let name = |what: &str| format!("· {} ({what})", process.name);
        rows.push(Row::new(&name("PSS"), bytes(process.memory.pss)));
        rows.push(Row::new(&name("private"), bytes(process.memory.private)));
        rows.push(Row::new(&name("shared"), bytes(process.memory.shared)));
    }
    Ok(rows)
}

async fn calls(running: &Running, count: usize) -> anyhow::Result<Vec<Row>> {
    let mut client = Client::connect(running).await?;
    let mut rows = Vec::new();
    for size in [1, running.devices.len()] {
        let times = client.allocate(size, count).await;
        let times = times.with_context(|| format!("cannot allocate {size}"))?;
        let name = format!("Allocate {size}");
        rows.push(Row::new(&name, Figures::times(&times)));
    }
    for size in [1, 2, 4, running.devices.len()] {
        let times = client.prefer(size, count).await;
        let times = times.with_context(|| format!("cannot ask for the best {size}"))?;
        let name = format!("GetPreferredAllocation {size} of {}", running.devices.len());
        rows.push(Row::new(&name, Figures::times(&times)));
    }
    Ok(rows)
}

/// Tells a person how far it is.
fn say(what: &str) -> io::Result<()> {
    writeln!(io::stderr(), "bench: {what}")
}
