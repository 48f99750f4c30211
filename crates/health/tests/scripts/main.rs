//! Runs a thousand random fault scripts on a virtual clock. After each step, the published verdict
//! has to equal the one of a slow, simple model. Bugs planted on purpose have to be caught.

mod oracle;
mod planted;
mod script;
mod subject;

use std::{collections::BTreeMap, time::Duration};

use config::{MonitorLoss, Weight};
use health::{Continuity, DeviceRecord, HealthPolicy};
use model::{Cause, CauseKind, EventCode, Verdict};

use self::{
    oracle::{Oracle, Published, Rules, What},
    script::{Device, Dice, Step},
    subject::{Subject, moment},
};

/// Number of scripts.
const SCRIPTS: u64 = 1000;

/// Seeds that failed once: they are run, too.
const REGRESSIONS: [u64; 0] = [];

#[test]
fn a_thousand_scripts_publish_what_the_model_says() {
    for seed in (0..SCRIPTS).chain(REGRESSIONS) {
        if let Err(difference) = run::<DeviceRecord>(seed) {
            panic!("{difference}");
        }
    }
}

#[test]
fn the_scripts_meet_every_state_every_kind_of_cause_and_every_condition() {
    let name = |cause: &Cause| match cause.kind {
        CauseKind::Condition => cause.evidence.split(':').next().unwrap_or("").to_owned(),
        kind => format!("{kind:?}"),
    };
    let mut met = BTreeMap::new();
    for seed in 0..SCRIPTS / 4 {
        let mut play = Play::<DeviceRecord>::new(seed);
        for step in script::write(seed) {
            play.take(&step);
            for (record, _) in play.devices.values() {
                let verdict = record.verdict(&play.policy, play.now());
                *met.entry(verdict.state.to_string()).or_insert(0u32) += 1;
                for cause in verdict.causes.iter().chain(&verdict.warnings) {
                    *met.entry(name(cause)).or_insert(0) += 1;
                }
            }
        }
    }
    let rare: Vec<_> = met.iter().filter(|(_, times)| **times < 50).collect();
    assert_eq!(met.len(), 4 + 17 + 6, "{met:?}");
    assert!(rare.is_empty(), "{rare:?}");
}

/// A script, played to a subject and to the model.
struct Play<S> {
    policy: HealthPolicy,
    rules: Rules,
    /// Wall clock, total run time of all agents, and the run time at which this agent started; all
    /// in seconds.
    wall: u64,
    run: u64,
    started: u64,
    devices: BTreeMap<Device, (S, Oracle)>,
}

/// Plays a script. The error describes the first difference.
fn run<S: Subject>(seed: u64) -> Result<(), String> {
    let mut play = Play::<S>::new(seed);
    let steps = script::write(seed);
    for (at, step) in steps.iter().enumerate() {
        play.take(step);
        if let Some(difference) = play.difference() {
            let so_far = &steps[..=at];
            return Err(format!(
                "seed {seed}, step {at}: {difference}\nafter {so_far:#?}"
            ));
        }
    }
    Ok(())
}

impl<S: Subject> Play<S> {
    fn new(seed: u64) -> Self {
        let (policy, rules) = laws(seed);
        let mut play = Self {
            policy,
            rules,
            wall: 1_000_000,
            run: 0,
            started: 0,
            devices: BTreeMap::new(),
        };
        play.create(Device::Card);
        play.create(Device::Instance(0));
        play
    }

    fn create(&mut self, device: Device) {
        let oracle = Oracle::new(device == Device::Card, self.rules);
        let new = || (S::default(), oracle);
        self.devices.entry(device).or_insert_with(new);
    }

    fn now(&self) -> health::Now {
        moment(self.wall, self.run - self.started)
    }

    fn take(&mut self, step: &Step) {
        let (now, until) = (self.now(), |seconds: u64| self.wall + seconds);
        match step.clone() {
            Step::Wait(seconds) => {
                self.wall += seconds;
                self.run += seconds;
            }
            Step::Create(instance) => self.create(Device::Instance(instance)),
            Step::Dissolve(instance) => drop(self.devices.remove(&Device::Instance(instance))),
            Step::Restart(away) => self.restart(away, true),
            Step::Reboot(away) => self.restart(away, false),
            Step::Look(view) => self.each(None, What::Look(view), |subject, policy, device| {
                subject.see(view, device == Device::Card, policy, now);
            }),
            Step::Reload => self.each(None, What::Reload, |subject, policy, _| {
                subject.record().record_driver_reload(policy);
            }),
            Step::Xid(device, xid) => {
                self.each(Some(device), What::Xid(xid), |subject, policy, _| {
                    subject.happen(nvidia_rules::xid::xid_code(xid), policy, now);
                });
            }
            Step::Ecc(device) => self.each(Some(device), What::Ecc, |subject, policy, _| {
                subject.happen(EventCode::ECC_UNCORRECTED, policy, now);
            }),
            Step::Read(device, read) => self.one(device, What::Read(read.clone()), |s, policy| {
                s.read(&read, policy, now);
            }),
            Step::Cordon(device) => self.one(device, What::Cordon, |s, _| {
                s.record().add_cordon("why not", now);
            }),
            Step::Uncordon(device) => {
                self.one(device, What::Uncordon, |s, _| s.record().end_cordon());
            }
            Step::Release(device, seconds) => {
                let end = until(seconds);
                self.one(device, What::Release(end), |s, _| {
                    s.record().release_to_operator(moment(end, 0).wall, now);
                });
            }
            Step::Resume(device) => self.one(device, What::Resume, |s, _| s.record().end_release()),
            Step::Residue(device) => self.one(device, What::Residue, |s, policy| {
                s.record().residue("process 7", policy, now);
            }),
            Step::Clean(device) => self.one(device, What::Clean, |s, _| s.record().clear_residue()),
            Step::Count(counts) => self.each(None, What::Count(counts), |subject, policy, _| {
                subject.count(counts, policy);
            }),
        }
    }

    /// Applies an event of the card to all its instances, too, and an event of an instance only to
    /// that.
    fn each(
        &mut self,
        to: Option<Device>,
        what: What,
        tell: impl Fn(&mut S, &HealthPolicy, Device),
    ) {
        for (device, (subject, oracle)) in &mut self.devices {
            if to.is_none_or(|to| to == Device::Card || to == *device) {
                tell(subject, &self.policy, *device);
                oracle.note(self.wall, self.run, what.clone());
            }
        }
    }

    fn one(&mut self, device: Device, what: What, tell: impl Fn(&mut S, &HealthPolicy)) {
        if let Some((subject, oracle)) = self.devices.get_mut(&device) {
            tell(subject, &self.policy);
            oracle.note(self.wall, self.run, what);
        }
    }

    fn restart(&mut self, away: u64, same: bool) {
        let stop = self.now();
        self.wall += away;
        self.started = self.run;
        let start = self.now();
        let continuity = Continuity {
            same_boot: same,
            same_driver: same,
        };
        for (subject, oracle) in self.devices.values_mut() {
            subject.restart(continuity, &self.policy, stop, start);
            oracle.note(self.wall, self.run, What::Restart);
            if !same {
                oracle.note(self.wall, self.run, What::Reload);
                oracle.note(self.wall, self.run, What::Resume);
            }
        }
    }

    fn expected(&self) -> impl Iterator<Item = (Device, Published)> {
        let devices = self.devices.iter();
        devices.map(|(device, (_, oracle))| (*device, oracle.published(self.run)))
    }

    fn difference(&self) -> Option<String> {
        self.expected().find_map(|(device, expected)| {
            let (subject, _) = &self.devices[&device];
            let verdict = subject.verdict(&self.policy, self.now());
            let published = publish(&verdict);
            (published != expected).then(|| {
                format!("{device:?} is\n{published:?}, and should be\n{expected:?}\n{verdict:#?}")
            })
        })
    }
}

fn publish(verdict: &Verdict) -> Published {
    let kinds = |causes: &[Cause]| {
        let mut kinds: Vec<CauseKind> = causes.iter().map(|cause| cause.kind).collect();
        kinds.sort();
        kinds
    };
    Published {
        state: verdict.state,
        causes: kinds(&verdict.causes),
        warnings: kinds(&verdict.warnings),
    }
}

/// Returns the policy of a script, and the same as rules for the model.
fn laws(seed: u64) -> (HealthPolicy, Rules) {
    let mut policy = HealthPolicy {
        health: config::Health {
            deep_command: vec!["check".to_owned()],
            ..config::Health::default()
        },
        vendors: nvidia_rules::VENDORS,
        ..HealthPolicy::default()
    };
    let mut rules = Rules {
        unanswered: 30,
        drain_after: None,
        passes: 3,
        first: 20,
        limit: 900,
        memory: 3600,
        performing_out: false,
        trend_out: false,
        deep_out: false,
        ecc_warns: false,
        fan: None,
    };
    let mut dice = Dice::new(!seed);
    if dice.roll(2) == 0 {
        policy.health.on_monitor_loss = MonitorLoss::Drain;
        policy.health.monitor_loss_grace = Duration::from_secs(60);
        rules.drain_after = Some(60);
    }
    if dice.roll(2) == 0 {
        policy.health.passes = 2;
        policy.health.hold_down = Duration::from_secs(5);
        policy.health.hold_down_limit = Duration::from_secs(45);
        policy.health.hold_down_memory = Duration::from_secs(300);
        (rules.passes, rules.first, rules.limit, rules.memory) = (2, 5, 45, 300);
    }
    if dice.roll(2) == 0 {
        policy.health.weights.performing = Weight::Out;
        policy.health.weights.deep = Weight::Out;
        policy.health.weights.trend = Weight::Out;
        (rules.performing_out, rules.deep_out, rules.trend_out) = (true, true, true);
    }
    if dice.roll(3) == 0 {
        policy.health.weights.causes = [(CauseKind::Ecc, Weight::Warn)].into();
        policy.health.unanswered_grace = Duration::from_secs(5);
        (rules.ecc_warns, rules.unanswered) = (true, 5);
    }
    let weights = [Weight::Out, Weight::Warn, Weight::Off];
    if let Some(weight) = weights.get(usize::try_from(dice.roll(6)).expect("less than six")) {
        let fan = "fan".parse().expect("it is a name");
        policy.health.weights.conditions = [(fan, *weight)].into();
        rules.fan = Some(*weight);
    }
    (policy, rules)
}
