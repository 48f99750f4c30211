//! Tests of deep checks with a real inventory: their cards, times and results. Tests with a probe and a
//! command are among those of the agent.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic too")]

use std::{ffi::OsString, time::Duration};

use health::HealthPolicy;
use inventory::{ChangeRequests, Inputs, Published, Readers};
use model::{Deep, Device, SinceReset, Telemetry, Values, sample};
use prepare::{DeepCheckChannels, LastRound, command::Runner, run_deep_checks};
use probe::{
    Update,
    protocol::Sample,
    sample::backend_state,
    supervisor::{ChildRegistry, OrdersByBackend, ReleaseScope},
};
use rules::Vendors;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

const HOUR: Duration = Duration::from_secs(3600);

/// An inventory that gets samples of cards all the time, and the task of deep checks.
struct Node {
    begun: Instant,
    orders: OrdersByBackend,
    readers: Readers,
    policy: watch::Sender<HealthPolicy>,
    rounds: LastRound,
    runner: Runner,
    seen: mpsc::Sender<Update>,
    tell: mpsc::Sender<Update>,
    told: mpsc::Receiver<Update>,
    inventory: JoinSet<()>,
    looks: JoinSet<()>,
    checks: JoinSet<()>,
}

fn policy(health: &str) -> HealthPolicy {
    let text = format!("health: {{stateFile: 'off', {health}}}");
    let config = config::parse_native("ostler.yaml", &text).unwrap().config;
    HealthPolicy::from_config(&config, Vendors::default())
}

fn idle() -> Telemetry {
    Telemetry {
        utilization_percent: Some(0),
        processes: Some(Vec::new()),
        ..Telemetry::default()
    }
}

// === impl Node ===

impl Node {
    fn start(health: &str, shim: &[OsString], devices: Vec<(Device, Telemetry)>) -> Self {
        let published = Published::new();
        let readers = published.readers();
        let orders = OrdersByBackend::default();
        let (seen, mut updates) = mpsc::channel(64);
        let (_, mut requests) = ChangeRequests::open_queue();
        let (tell, told) = mpsc::channel(64);
        let policy = watch::Sender::new(policy(health));
        let path = std::env::vars_os().filter(|(name, _)| name == "PATH");
        let mut node = Self {
            begun: Instant::now(),
            orders: orders.clone(),
            readers,
            policy,
            rounds: LastRound::default(),
            runner: Runner::new(shim.iter().cloned(), path, ChildRegistry::default()),
            seen,
            tell,
            told,
            inventory: JoinSet::new(),
            looks: JoinSet::new(),
            checks: JoinSet::new(),
        };
        let policy = node.policy.subscribe();
        node.inventory.spawn(async move {
            let inputs = Inputs {
                policy,
                updates: &mut updates,
                requests: &mut requests,
                orders,
                boot_id: String::new(),
            };
            inventory::run_inventory(inputs, published).await;
        });
        node.look_at(devices);
        node.check();
        node
    }

    /// Reports the devices once, and sends a sample of each every second.
    fn look_at(&mut self, devices: Vec<(Device, Telemetry)>) {
        let seen = self.seen.clone();
        self.looks.spawn(async move {
            let all = devices.iter().map(|(device, _)| device.clone());
            let picture = Update::State(Box::new(backend_state(all)));
            seen.send(picture).await.unwrap();
            loop {
                for (device, telemetry) in &devices {
                    let sample = Sample {
                        device: device.id.clone(),
                        telemetry: telemetry.clone(),
                        since_reset: SinceReset::default(),
                    };
                    let update = Update::Sample {
                        backend: device.vendor.clone(),
                        sample: Box::new(sample),
                    };
                    seen.send(update).await.unwrap();
                }
                sleep(Duration::from_secs(1)).await;
            }
        });
    }

    /// Starts the task of deep checks. A task that runs is ended first.
    fn check(&mut self) {
        self.checks = JoinSet::new();
        let wires = DeepCheckChannels {
            readers: self.readers.clone(),
            orders: self.orders.clone(),
            runner: self.runner.clone(),
            updates: self.tell.clone(),
            rounds: self.rounds.clone(),
        };
        let policy = self.policy.subscribe();
        self.checks.spawn(run_deep_checks(wires, policy));
    }

    /// Waits for the next check-up.
    async fn next(&mut self) -> (String, Deep) {
        match self.told.recv().await.unwrap() {
            Update::Checkup { checkup, .. } => match checkup.reading.values {
                Values::Deep(deep) => (checkup.device.to_string(), deep),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Time since the start, in whole minutes.
    fn clock(&self) -> u64 {
        self.begun.elapsed().as_secs() / 60
    }
}

fn nothing() -> Vec<OsString> {
    vec!["/no/such/shim".into()]
}

#[tokio::test(start_paused = true)]
async fn a_round_is_for_each_card_that_is_seen_and_idle_and_says_why_not() {
    let busy = Telemetry {
        utilization_percent: Some(50),
        ..idle()
    };
    let silent = Telemetry {
        processes: None,
        ..idle()
    };
    let lost = Device {
        failures: vec![sample::lost_call()],
        ..sample::sample_card(4)
    };
    let devices = vec![
        (sample::sample_card(0), idle()),
        (sample::sample_card(1), busy),
        (sample::sample_card(2), silent),
        (sample::sample_card(3), idle()),
        (sample::sample_partition(3, 0), idle()),
        (lost, idle()),
    ];
    let mut node = Node::start("deep: 1h, deepCommand: [memtest]", &nothing(), devices);
    let mut found = Vec::new();
    for _ in 0..4 {
        let (card, deep) = node.next().await;
        assert_eq!(deep.passed, None, "{deep:?}");
        found.push((card, deep.output));
    }
    let outputs: Vec<&str> = found.iter().map(|(_, output)| output.as_str()).collect();
    assert_eq!(found[3].0, "GPU-3", "no partition, and no lost card");
    let absent = "not run: `memtest` cannot be started: No such file or directory (os error 2)";
    let busy = "not run: its engines are busy to 50 %";
    let silent = "not run: it does not tell who is on it";
    assert_eq!(outputs, [absent, busy, silent, absent]);
    assert_eq!(node.clock(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_released_card_has_no_check_and_the_next_one_has() {
    let devices = vec![
        (sample::sample_card(0), idle()),
        (sample::sample_card(1), idle()),
    ];
    let mut node = Node::start("deep: 1h, deepCommand: [memtest]", &nothing(), devices);
    let which = ReleaseScope::Card(sample::sample_card(0).card_ref().unwrap());
    node.orders
        .orders_of("nvidia")
        .release_cards(which, 2 * HOUR);
    let (card, deep) = node.next().await;
    let why = "not run: an operator has it, or it is being reset";
    assert_eq!((card.as_str(), deep.output.as_str()), ("GPU-0", why));
    assert!(node.next().await.1.output.contains("cannot be started"));
}

#[tokio::test(start_paused = true)]
async fn the_rhythm_outlives_the_task_and_follows_the_config() {
    let devices = vec![(sample::sample_card(0), idle())];
    let mut node = Node::start("deep: 1h, deepCommand: [memtest]", &nothing(), devices);
    node.next().await;
    assert_eq!(node.clock(), 60);
    sleep_until(node.begun + Duration::from_secs(5000)).await;
    node.check();
    node.next().await;
    assert_eq!(
        node.clock(),
        120,
        "a task that starts anew has no rhythm of its own"
    );
    // A change of other settings does not end or delay the checks.
    let weights = "deep: 1h, deepCommand: [memtest], weights: {deep: out}";
    node.policy.send_replace(policy(weights));
    sleep_until(node.begun + Duration::from_secs(7500)).await;
    node.policy
        .send_replace(policy("deep: 10m, deepCommand: [other]"));
    let (_, deep) = node.next().await;
    assert!(deep.output.contains("`other`"), "{deep:?}");
    assert_eq!(node.clock(), 130, "ten minutes after the last round");
    node.policy
        .send_replace(policy("deep: 'off', deepCommand: [other]"));
    let none = timeout(3 * HOUR, node.next()).await;
    assert!(none.is_err(), "{none:?}");
    node.policy
        .send_replace(policy("deep: 1h, deepCommand: [memtest]"));
    node.next().await;
}

#[tokio::test(start_paused = true)]
async fn a_round_that_finds_no_card_waits_for_one() {
    let mut node = Node::start("deep: 1h, deepCommand: [memtest]", &nothing(), Vec::new());
    sleep_until(node.begun + 2 * HOUR).await;
    node.look_at(vec![(sample::sample_card(0), idle())]);
    node.next().await;
    assert_eq!(node.clock(), 120);
}

#[tokio::test(start_paused = true)]
async fn a_card_that_no_probe_looks_at_is_not_checked() {
    let devices = vec![(sample::sample_card(0), idle())];
    let mut node = Node::start("deep: 1h, deepCommand: [memtest]", &nothing(), devices);
    let mut samples = node.readers.samples.clone();
    samples
        .wait_for(|samples| samples.sample_count() > 0)
        .await
        .unwrap();
    // The snapshot stays, but no new sample comes.
    node.looks.abort_all();
    let (_, deep) = node.next().await;
    assert_eq!(deep.output, "not run: no probe looked at it in time");
}

/// A test cannot make a process that survives SIGKILL. A fake shim that ignores its order takes its place.
#[tokio::test]
async fn a_command_that_does_not_end_keeps_the_next_off_its_card_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let stays = format!(
        "[ $OSTLER_DEVICE = GPU-1 ] || while [ -e {} ]; do sleep 0.05; done",
        folder.path().display()
    );
    let shim = ["/bin/sh", "-c", &stays].map(OsString::from);
    let devices = vec![
        (sample::sample_card(0), idle()),
        (sample::sample_card(1), idle()),
    ];
    let health = "deep: 100ms, deepLimit: 5s, deepCommand: [memtest]";
    let mut node = Node::start(health, &shim, devices);
    let (card, deep) = node.next().await;
    assert_eq!((card.as_str(), deep.passed), ("GPU-0", Some(false)));
    assert_eq!(deep.output, "ended because it took longer than 5 s");
    let other = node.next().await;
    assert!(other.1.output.contains("`memtest` was lost"), "{other:?}");
    let (card, deep) = node.next().await;
    assert_eq!((card.as_str(), deep.passed), ("GPU-0", None));
    let why = "not run: its last command was killed and has not ended";
    assert_eq!(deep.output, why);
    assert_eq!(node.next().await, other, "it is run again");
    let which = ReleaseScope::Card(sample::sample_card(0).card_ref().unwrap());
    assert!(
        node.orders.orders_of("nvidia").occupy(which).is_none(),
        "the card is not free"
    );
    folder.close().unwrap();
}
