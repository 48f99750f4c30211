//! Simple model of the node: a flag for each card that is lost, reported, hung, cordoned, or
//! released.

/// Number of cards of every node here.
const CARDS: usize = 8;

/// Card whose MIG devices come and go.
pub(super) const CUT: usize = 6;

/// Cards that the steps concern. Few, so that several faults meet on one card.
const VICTIMS: [usize; 3] = [1, 3, CUT];

/// Step of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A card falls off the bus.
    Lose(usize),
    /// A lost card is back.
    Return(usize),
    /// A lost card comes back while no agent runs.
    ReturnUnseen(usize),
    /// The driver reports an XID that needs a reset.
    Xid(usize),
    /// The driver reports an XID of one MIG device that needs a reset.
    XidOnPart,
    /// The driver reports an XID that is an error of a program.
    Harmless(usize),
    /// Calls on a card do not return.
    Hang(usize),
    /// The calls that hang return again.
    Answer,
    /// A card is lost and comes back, three times.
    Flap(usize),
    /// An operator cordons a card.
    Cordon(usize),
    /// An operator uncordons a card.
    Uncordon(usize),
    /// An operator releases a card.
    Release(usize),
    /// An operator ends the release of a card.
    Resume(usize),
    /// A card is reset.
    Reset(usize),
    /// The driver is reloaded.
    Reload,
    /// The driver is reloaded while no agent runs.
    ReloadUnseen,
    /// A MIG device is made.
    Cut,
    /// A MIG device is removed.
    Join,
    /// The probe is killed.
    KillProbe,
    /// The kubelet restarts.
    RestartKubelet,
    /// The agent restarts.
    RestartAgent,
}

/// Faults of the cards.
#[derive(Debug, Default)]
pub(super) struct Model {
    lost: [bool; CARDS],
    reported: [bool; CARDS],
    hung: [bool; CARDS],
    cordoned: [bool; CARDS],
    released: [bool; CARDS],
    /// `part`: the MIG device that gets XIDs exists. `part_reported`: it got one.
    part: bool,
    part_reported: bool,
    /// `mig`: the profile has MIG devices. `added`: the number of those that steps have made.
    mig: bool,
    added: usize,
}

/// Pseudo-random numbers: the same for the same seed.
#[derive(Debug)]
pub(super) struct Dice(u64);

// === impl Dice ===

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// Returns a number below `most`, by xorshift64.
    fn roll(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }
}

// === impl Model ===

impl Model {
    pub(super) fn new(mig: bool) -> Self {
        Self {
            mig,
            part: mig,
            ..Self::default()
        }
    }

    /// True if a card should be healthy.
    pub(super) fn is_well(&self, card: usize) -> bool {
        let ills = [
            &self.lost,
            &self.reported,
            &self.hung,
            &self.cordoned,
            &self.released,
        ];
        !ills.iter().any(|ill| ill[card])
    }

    /// True if the MIG device that gets XIDs should be as healthy as its card.
    pub(super) fn is_part_well(&self) -> bool {
        !self.part_reported
    }

    /// Chooses a step that is possible now.
    pub(super) fn choose(&self, dice: &mut Dice) -> Step {
        loop {
            let card = VICTIMS[dice.roll(VICTIMS.len())];
            let step = match dice.roll(22) {
                0 => Step::Lose(card),
                1 => Step::Return(card),
                2 => Step::Xid(card),
                3 => Step::Harmless(card),
                4 => Step::Hang(card),
                5 => Step::Answer,
                6 => Step::Flap(card),
                7 => Step::Cordon(card),
                8 => Step::Uncordon(card),
                9 => Step::Cut,
                10 => Step::Join,
                11 => Step::KillProbe,
                12 => Step::RestartKubelet,
                13 => Step::ReturnUnseen(card),
                14 | 15 => Step::XidOnPart,
                16 => Step::Release(card),
                17 => Step::Resume(card),
                18 => Step::Reset(card),
                19 => Step::Reload,
                20 => Step::ReloadUnseen,
                _ => Step::RestartAgent,
            };
            if self.can(step) {
                return step;
            }
        }
    }

    /// True if a step is possible now, and its outcome does not depend on timing.
    fn can(&self, step: Step) -> bool {
        let any_hung = self.hung.contains(&true);
        let in_reach = |n: usize| !self.lost[n] && !self.hung[n] && !self.released[n];
        let cut_well = self.mig && self.is_well(CUT);
        match step {
            Step::Lose(n) | Step::Reset(n) => in_reach(n),
            Step::Return(n) | Step::ReturnUnseen(n) => self.lost[n],
            Step::Xid(n) => in_reach(n) && !any_hung,
            Step::XidOnPart => self.part && in_reach(CUT) && !any_hung,
            Step::Hang(n) | Step::Release(n) => in_reach(n) && !any_hung,
            Step::Answer => any_hung,
            // It depends on timing if a report sees the card away, which would end an XID's cause.
            Step::Flap(n) => in_reach(n) && !self.is_reported(n),
            Step::Harmless(n) => in_reach(n),
            Step::Cordon(n) => !self.cordoned[n],
            Step::Uncordon(n) => self.cordoned[n],
            Step::Resume(n) => self.released[n],
            // The MIG devices of a released card go with a reload, and no report would say so.
            Step::Reload => !(any_hung || self.mig && self.released.contains(&true)),
            // MIG devices would go with a reload. The kubelet would keep those of a
            // resource that the next agent does not offer.
            Step::ReloadUnseen => !any_hung && !self.mig,
            Step::Cut => cut_well && self.added < 2,
            Step::Join => cut_well && self.added > 0,
            // Each new probe reports the card before the call hangs again. The hold-down is
            // so short that the card could be healthy for a moment.
            Step::KillProbe => !any_hung,
            Step::RestartKubelet | Step::RestartAgent => true,
        }
    }

    /// Applies a step.
    pub(super) fn take(&mut self, step: Step) {
        match step {
            Step::Lose(n) => self.lost[n] = true,
            Step::Return(n) | Step::ReturnUnseen(n) => {
                self.lost[n] = false;
                // A card that was away counts as reset.
                self.clear(n);
            }
            Step::Xid(n) => self.reported[n] = true,
            Step::XidOnPart => self.part_reported = true,
            Step::Hang(n) => self.hung[n] = true,
            Step::Answer => self.hung = [false; CARDS],
            Step::Cordon(n) => self.cordoned[n] = true,
            Step::Uncordon(n) => {
                self.cordoned[n] = false;
                // `uncordon` ends the causes that only an operator can end.
                self.clear(n);
            }
            Step::Release(n) => self.released[n] = true,
            Step::Resume(n) => self.released[n] = false,
            Step::Reset(n) => self.renew(n),
            Step::Reload | Step::ReloadUnseen => (0..CARDS).for_each(|n| self.renew(n)),
            Step::Cut => self.added += 1,
            Step::Join => self.added -= 1,
            Step::Harmless(_)
            | Step::Flap(_)
            | Step::KillProbe
            | Step::RestartKubelet
            | Step::RestartAgent => {}
        }
    }

    /// True if an XID of a card, or of a MIG device of it, was reported.
    fn is_reported(&self, card: usize) -> bool {
        self.reported[card] || (card == CUT && self.part_reported)
    }

    /// Ends what XIDs have done to a card.
    fn clear(&mut self, card: usize) {
        self.reported[card] = false;
        if card == CUT {
            self.part_reported = false;
        }
    }

    /// Applies a reset: no faults, and no MIG devices.
    fn renew(&mut self, card: usize) {
        self.lost[card] = false;
        self.clear(card);
        if card == CUT {
            self.part = false;
            self.added = 0;
        }
    }
}
