//! How long the kubelet believes in a broken card, and how long not in one that works again.

use std::time::Duration;

use kubelet_api::{HEALTHY, deviceplugin::Device};
use sim::{DeviceTarget, Effect, Node, kubelet::PluginDevices};
use tokio::time::{Instant, sleep};

use super::{PROFILE, say};
use crate::{
    pair::Pair,
    peer::{Launch, Site},
    plan::Plan,
    report::Row,
    running::{RESOURCE, Running},
    value::Value,
};

/// GPU has fallen off the bus.
pub(super) const XID: u64 = 79;

/// A call that hangs: every look of ours makes it.
const HUNG_CALL: &str = "nvmlDeviceGetTemperature";

/// How long a program is given to listen to events: it may register before it does.
pub(super) const LISTEN: Duration = Duration::from_secs(5);

/// How long a card is away while it is reset: longer than our probe's period, so that the probe
/// sees it.
const RESET: Duration = Duration::from_secs(12);

/// What our medians should be at most, in seconds: after an event, without one, and on the way back.
const SOON: f64 = 1.0;
const TWO_PERIODS: f64 = 20.0;
const BACK: f64 = 30.0;
/// A look each 10 s, whose calls may each take 10 s.
const HUNG: f64 = 25.0;

/// What is added to a pause in each round, so that the rounds do not fall into step with our
/// probe's period of 10 s.
const STAGGER: Duration = Duration::from_millis(2300);

/// What one program told its kubelet, round by round.
#[derive(Debug, Default)]
struct Told {
    unhealthy: Track,
    healthy: Track,
}

/// How long one change took, each time.
#[derive(Debug, Default)]
struct Track {
    times: Vec<Duration>,
    /// It did not happen once, and is not waited for again.
    never: bool,
}

/// A change that is waited for.
#[derive(Clone, Copy, Debug)]
struct Change<'a> {
    device: &'a str,
    healthy: bool,
    since: Instant,
    limit: Duration,
}

/// How a card breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The driver raises an XID; afterwards the card is reset.
    Xid,
    /// The driver loses the card without a word; afterwards it is there again.
    Lost,
    /// A call about the card does not return; afterwards it does.
    Hung,
}

/// Breaks cards and repairs them. The ways go on at the same time, each on a node of its own:
/// most of it is waiting.
pub(super) async fn measure(plugins: &Pair<Launch>, plan: Plan) -> anyhow::Result<Vec<Row>> {
    let names = ["XID 79 to Unhealthy", "reset to Healthy"];
    let events = rows(Fault::Xid, names, plugins, plan);
    let names = ["lost card to Unhealthy", "lost card back to Healthy"];
    let losses = rows(Fault::Lost, names, plugins, plan);
    let names = ["hung card to Unhealthy", "hung card back to Healthy"];
    let hangs = rows(Fault::Hung, names, plugins, plan);
    let (events, losses, hangs) = tokio::try_join!(events, losses, hangs)?;
    let ([told, reset], [noticed, back], [named, freed]) = (events, losses, hangs);
    Ok(vec![
        told.aim(SOON),
        reset.aim(BACK),
        noticed.aim(TWO_PERIODS),
        back.aim(BACK),
        named.aim(HUNG),
        freed,
    ])
}

/// The rows of one way to break cards, with both programs on one node.
async fn rows(
    fault: Fault,
    [broken, repaired]: [&str; 2],
    plugins: &Pair<Launch>,
    plan: Plan,
) -> anyhow::Result<[Row; 2]> {
    let site = Site::make(PROFILE)?;
    let start = async |launch| Running::start(&site, launch).await;
    let running = plugins.as_ref().each(start).await?;
    sleep(LISTEN).await;
    let told = rounds(fault, &site.node, &running, plan).await?;
    running.each(async |running| running.stop().await).await?;
    let told = told.as_ref();
    Ok([
        Row::new(broken, told.map(|told| told.unhealthy.value(plan.never))),
        Row::new(repaired, told.map(|told| told.back(plan.never))),
    ])
}

/// One card after the other.
async fn rounds(
    fault: Fault,
    node: &Node,
    running: &Pair<Running>,
    plan: Plan,
) -> anyhow::Result<Pair<Told>> {
    let mut told = running.as_ref().map(|_| Told::default());
    for round in 0..plan.faults {
        say(&format!("{fault:?}, card {} of {}", round + 1, plan.faults))?;
        let card = DeviceTarget::Index(round);
        let device = &node.list_gpus()?[round].uuid;
        let pause = STAGGER * u32::try_from(round)?;
        if fault != Fault::Xid {
            sleep(pause).await;
        }
        let mut change = Change {
            device,
            healthy: false,
            since: Instant::now(),
            limit: plan.never,
        };
        match fault {
            Fault::Xid => node.raise_xid(&card, XID)?,
            Fault::Lost => node.lose_cards(&card)?,
            Fault::Hung => {
                let forever = Effect::Hang { millis: None };
                node.set_fault(HUNG_CALL, Some(&card), forever)?;
            }
        }
        wait(running, told.each_mut(|told| &mut told.unhealthy), change).await;
        if fault == Fault::Xid {
            node.lose_cards(&card)?;
            sleep(RESET + pause).await;
        }
        change.healthy = true;
        change.since = Instant::now();
        match fault {
            // It is away already.
            Fault::Xid => node.reset_cards(&card, Duration::ZERO)?,
            Fault::Lost => node.restore_cards(&card)?,
            Fault::Hung => drop(node.clear_faults(None)?),
        }
        wait(running, told.each_mut(|told| &mut told.healthy), change).await;
    }
    Ok(told)
}

/// Waits until both have told of a change, or the time is up.
async fn wait(running: &Pair<Running>, tracks: Pair<&mut Track>, change: Change<'_>) {
    let theirs = async {
        if let (Some(running), Some(track)) = (&running.theirs, tracks.theirs) {
            track.add(running, change).await;
        }
    };
    tokio::join!(tracks.ours.add(&running.ours, change), theirs);
}

// === impl Told ===

impl Told {
    /// The way back, of a program that noticed that there was something to come back from.
    fn back(&self, limit: Duration) -> Value {
        match self.unhealthy.never {
            true => Value::Nothing {
                reason: "not noticed",
            },
            false => self.healthy.value(limit),
        }
    }
}

// === impl Track ===

impl Track {
    async fn add(&mut self, running: &Running, change: Change<'_>) {
        if self.never {
            return;
        }
        match change.told(running).await {
            Some(time) => self.times.push(time),
            None => self.never = true,
        }
    }

    fn value(&self, limit: Duration) -> Value {
        match self.never {
            true => Value::Never {
                seconds: limit.as_secs_f64(),
            },
            false => Value::times(&self.times, limit),
        }
    }
}

// === impl Change ===

impl Change<'_> {
    /// How long it took until the kubelet was told, by the list that told it.
    async fn told(self, running: &Running) -> Option<Duration> {
        let kubelet = running.kubelet();
        let condition = |devices: &PluginDevices| {
            let device = devices.get(self.device);
            device.is_some_and(|device| device.healthy == self.healthy)
        };
        let waited = kubelet.wait_devices(RESOURCE, condition, self.limit).await;
        waited.ok()?;
        let lists = kubelet.device_lists(RESOURCE);
        let list = lists.iter().find(|list| {
            let health = |d: &Device| d.id == self.device && (d.health == HEALTHY) == self.healthy;
            list.at >= self.since && list.devices.iter().any(health)
        });
        list.map(|list| list.at.duration_since(self.since))
    }
}
