//! Random fault scripts: events of a card and its instances, step by step.

use model::{ConditionState, RecoveryAction};

/// State of the card in one look. Its instances are in the same state, unless the variant says
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Well,
    /// The card is well, but one of its calls failed: its instances are not reported.
    Untold,
    Lost,
    /// The card is listed, and a call reports that it needs a reset.
    Fatal,
    Missing,
    Stuck,
    Failed,
    NoDriver,
    Unwatched,
}

impl View {
    /// True if the look could tell the state.
    pub(crate) fn tells(self) -> bool {
        let blind = [Self::Untold, Self::Stuck, Self::Failed, Self::Unwatched];
        !blind.contains(&self)
    }
}

/// A device of the script: the card or one of its instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Device {
    Card,
    Instance(u64),
}

/// Values that a check-up of a device read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Ecc(Option<u64>),
    RepairPending(Option<bool>),
    RepairFailed(Option<bool>),
    /// Fabric, as NVIDIA's probe reports it, in two conditions.
    Fabric(Option<Fabric>),
    Recovery(Option<RecoveryAction>),
    Throttled(Option<bool>),
    Lanes(Option<u32>),
    /// PCIe generation out of four, and utilization in percent.
    Generation(Option<u32>, u32),
    LinkErrors(Option<u64>),
    LinksDown(Option<u32>),
    Temperature(Option<u32>),
    Corrected(Option<u64>),
    Deep(Option<bool>),
    Condition(Named, ConditionState),
    /// A check-up in which a call reports the device as lost.
    Fatal,
}

/// The state of a card in its fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fabric {
    Joining,
    Joined,
    Refused,
}

/// Conditions of a vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// In the tier *working*; only `ok` ends it.
    Block,
    /// In the tier *working*; a reload of the driver ends it, too.
    Cache,
    /// In the tier *performing*; some policies have a weight for it.
    Fan,
    /// In the tier *working*; it counts after a minute.
    Slow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Wait(u64),
    Look(View),
    Xid(Device, u64),
    Ecc(Device),
    Read(Device, Read),
    Create(u64),
    Dissolve(u64),
    /// The agent is stopped for so many seconds.
    Restart(u64),
    Reboot(u64),
    Reload,
    Cordon(Device),
    Uncordon(Device),
    Release(Device, u64),
    Resume(Device),
    Residue(Device),
    Clean(Device),
    /// The counters since the card's last reset were read.
    Count(Counts),
}

/// Energy in joules, PCIe replays and memory errors; `None` if not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) energy: Option<u64>,
    pub(crate) replays: Option<u64>,
    pub(crate) ecc: Option<u64>,
}

/// XIDs of every action: ignore, application, reset, drain, permanent, unknown.
pub(crate) const XIDS: [u64; 8] = [43, 13, 94, 48, 79, 149, 54, 9999];

/// Returns the script of a seed, always the same one.
pub(crate) fn write(seed: u64) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let length = 20 + dice.roll(60);
    let mut steps = Vec::new();
    let mut view = View::Well;
    // A script reads one kind of value more often than others, so that the value changes several
    // times.
    let often = dice.roll(KINDS_READ);
    for _ in 0..length {
        match dice.roll(21) {
            0..=4 => {
                view = *dice.pick(&VIEWS);
                steps.push(Step::Look(view));
            }
            5..=7 => {
                view = View::Well;
                stay(&mut steps, view, dice.roll(6), 5 + dice.roll(15));
            }
            8 => stay(&mut steps, view, dice.roll(4), 10),
            9 => {
                for _ in 0..1 + dice.roll(4) {
                    stay(&mut steps, View::Lost, 1, 1 + dice.roll(20));
                    stay(&mut steps, View::Well, 1 + dice.roll(5), 10);
                }
                view = View::Well;
            }
            10..=12 => {
                let device = device(&mut dice);
                let what = if dice.roll(2) == 0 {
                    often
                } else {
                    dice.roll(KINDS_READ)
                };
                let read = read(what, &mut dice);
                steps.push(Step::Read(device, read));
            }
            13 => steps.push(Step::Xid(device(&mut dice), *dice.pick(&XIDS))),
            14 => steps.push(wait(&mut dice)),
            15 => {
                let device = device(&mut dice);
                for _ in 0..2 + dice.roll(5) {
                    steps.push(Step::Read(device, read(often, &mut dice)));
                    steps.push(Step::Wait(dice.roll(90)));
                }
            }
            _ => steps.push(rare(&mut dice)),
        }
    }
    steps
}

/// Number of kinds of values to read.
const KINDS_READ: u64 = 18;

const VIEWS: [View; 9] = [
    View::Well,
    View::Untold,
    View::Lost,
    View::Fatal,
    View::Missing,
    View::Stuck,
    View::Failed,
    View::NoDriver,
    View::Unwatched,
];

fn stay(steps: &mut Vec<Step>, view: View, times: u64, every: u64) {
    for _ in 0..times {
        steps.push(Step::Look(view));
        steps.push(Step::Wait(every));
    }
}

fn wait(dice: &mut Dice) -> Step {
    Step::Wait(match dice.roll(6) {
        0 => 3000 + dice.roll(2000),
        1 | 2 => 100 + dice.roll(900),
        _ => dice.roll(60),
    })
}

fn rare(dice: &mut Dice) -> Step {
    let device = device(dice);
    match dice.roll(17) {
        0 | 1 => Step::Create(dice.roll(3)),
        2 => Step::Dissolve(dice.roll(3)),
        3 | 4 => Step::Restart(dice.roll(90)),
        5 => Step::Reboot(30 + dice.roll(200)),
        6 => Step::Reload,
        7 => Step::Cordon(device),
        8 => Step::Uncordon(device),
        9 => Step::Release(device, 30 + dice.roll(600)),
        10 => Step::Resume(device),
        11 => Step::Residue(device),
        12 => Step::Clean(device),
        13..=15 => Step::Count(counts(dice)),
        _ => Step::Ecc(device),
    }
}

fn read(what: u64, dice: &mut Dice) -> Read {
    // Good and bad values are equally likely, so that scripts meet beginnings and ends.
    let bad = dice.roll(2) == 0;
    let told = dice.roll(6) > 0;
    let flag = told.then_some(bad);
    match what {
        0 => Read::Ecc(told.then_some(u64::from(bad))),
        1 => Read::RepairPending(flag),
        2 => Read::RepairFailed(flag),
        3 => Read::Fabric(told.then(|| fabric(dice))),
        4 | 5 => Read::Recovery(told.then(|| recovery(bad, dice))),
        6 => Read::Throttled(flag),
        7 => Read::Lanes(told.then_some(if bad { 8 } else { 16 })),
        8 => Read::Generation(
            told.then_some(if bad { 1 } else { 4 }),
            dice.roll_u32(2) * 90,
        ),
        9 => Read::LinkErrors(told.then(|| dice.roll(3))),
        10 => Read::LinksDown(told.then(|| dice.roll_u32(2))),
        11 => Read::Temperature(told.then_some(if bad { 88 } else { 40 })),
        12 => Read::Corrected(told.then(|| dice.roll(4) * 90)),
        13 => Read::Condition(Named::Block, condition(bad, dice)),
        14 => Read::Condition(Named::Cache, condition(bad, dice)),
        15 => Read::Condition(Named::Fan, condition(bad, dice)),
        16 => Read::Condition(Named::Slow, condition(bad, dice)),
        _ if dice.roll(6) == 0 => Read::Fatal,
        _ => Read::Deep(flag),
    }
}

/// Returns random counters. Each is missing at times, and some scripts never read the best one.
fn counts(dice: &mut Dice) -> Counts {
    let mut counter = |values: &[u64]| {
        let value = *dice.pick(values);
        (dice.roll(3) > 0).then_some(value)
    };
    Counts {
        energy: counter(&[0, 50, 2000, 500_000]),
        replays: counter(&[0, 1, 7]),
        ecc: counter(&[0, 1, 7]),
    }
}

fn condition(bad: bool, dice: &mut Dice) -> ConditionState {
    match (dice.roll(6), bad) {
        (0, _) => ConditionState::Unknown,
        (_, false) => ConditionState::Ok,
        (1 | 2, true) => ConditionState::Warning,
        (_, true) => ConditionState::Critical,
    }
}

fn fabric(dice: &mut Dice) -> Fabric {
    *dice.pick(&[Fabric::Joining, Fabric::Joined, Fabric::Refused])
}

fn recovery(bad: bool, dice: &mut Dice) -> RecoveryAction {
    match dice.roll(3) {
        _ if !bad => RecoveryAction::None,
        0 => RecoveryAction::Reset,
        1 => RecoveryAction::Reboot,
        _ => RecoveryAction::DrainAndReset,
    }
}

fn device(dice: &mut Dice) -> Device {
    match dice.roll(8) {
        0..=3 => Device::Card,
        4..=5 => Device::Instance(0),
        _ => Device::Instance(dice.roll(3)),
    }
}

/// Pseudo-random numbers, the same for the same seed (splitmix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number from 0 to `sides` - 1.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn roll_u32(&mut self, sides: u32) -> u32 {
        u32::try_from(self.roll(u64::from(sides))).expect("less than its u32 sides")
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.roll(from.len() as u64);
        &from[usize::try_from(at).expect("less than a length")]
    }
}
