//! The node as a child would describe it: which card is lost, reported, hung, or taken out.

/// The cards of every node here.
const CARDS: usize = 8;

/// The card whose MIG devices come and go.
pub(super) const CUT: usize = 6;

/// The cards that things happen to. Few, so that more than one thing happens to some.
const VICTIMS: [usize; 3] = [1, 3, CUT];

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A card falls off the bus.
    Lose(usize),
    /// It is back.
    Return(usize),
    /// It is back, and nobody saw it come: the agent starts after that.
    ReturnUnseen(usize),
    /// The driver reports an error that wants a reset.
    Xid(usize),
    /// The same of one MIG device.
    XidOnPart,
    /// The driver reports an error of a program.
    Harmless(usize),
    /// Calls on a card do not return.
    Hang(usize),
    /// They do again.
    Answer,
    /// A card goes and comes, three times.
    Flap(usize),
    /// An operator takes a card out.
    Cordon(usize),
    /// And gives it back.
    Uncordon(usize),
    /// An operator wants the agent's hands off a card.
    Release(usize),
    /// And on again.
    Resume(usize),
    /// A card is reset.
    Reset(usize),
    /// The driver is loaded anew.
    Reload,
    /// The same while no agent runs.
    ReloadUnseen,
    /// A MIG device more.
    Cut,
    /// One less.
    Join,
    /// Somebody kills the probe.
    KillProbe,
    /// The kubelet starts anew.
    RestartKubelet,
    /// The agent starts anew.
    RestartAgent,
}

/// What is wrong with the cards.
#[derive(Debug, Default)]
pub(super) struct Model {
    lost: [bool; CARDS],
    reported: [bool; CARDS],
    hung: [bool; CARDS],
    cordoned: [bool; CARDS],
    released: [bool; CARDS],
    /// Whether the MIG device of [`CUT`] that errors are reported of is there, and whether one was.
    part: bool,
    part_reported: bool,
    /// Whether the cards can be cut, and how many pieces were added.
    mig: bool,
    added: usize,
}

/// Numbers that look random and are the same each time.
#[derive(Debug)]
pub(super) struct Dice(u64);

// === impl Dice ===

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// A number below `most`.
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

    /// Whether a card may be handed out.
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

    /// Whether the MIG device that errors are reported of may be handed out if its card may.
    pub(super) fn is_part_well(&self) -> bool {
        !self.part_reported
    }

    /// A step that can happen now.
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

    /// Whether a step can happen, and its outcome does not depend on who is quicker.
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
            // Whether it was seen to be away is chance.
            Step::Flap(n) => in_reach(n) && !self.is_reported(n),
            Step::Harmless(n) => in_reach(n),
            Step::Cordon(n) => !self.cordoned[n],
            Step::Uncordon(n) => self.cordoned[n],
            Step::Resume(n) => self.released[n],
            // Nobody would see that the MIG devices of a released card went with it.
            Step::Reload => !(any_hung || self.mig && self.released.contains(&true)),
            // MIG devices would go with it, and the kubelet would keep those of a resource that
            // the next agent does not offer.
            Step::ReloadUnseen => !any_hung && !self.mig,
            Step::Cut => cut_well && self.added < 2,
            Step::Join => cut_well && self.added > 0,
            // Each new probe sees the card before the call hangs again, and the hold-down is short.
            Step::KillProbe => !any_hung,
            Step::RestartKubelet | Step::RestartAgent => true,
        }
    }

    /// What a step changes.
    pub(super) fn take(&mut self, step: Step) {
        match step {
            Step::Lose(n) => self.lost[n] = true,
            Step::Return(n) | Step::ReturnUnseen(n) => {
                self.lost[n] = false;
                // It was away: a reset is just that.
                self.clear(n);
            }
            Step::Xid(n) => self.reported[n] = true,
            Step::XidOnPart => self.part_reported = true,
            Step::Hang(n) => self.hung[n] = true,
            Step::Answer => self.hung = [false; CARDS],
            Step::Cordon(n) => self.cordoned[n] = true,
            Step::Uncordon(n) => {
                self.cordoned[n] = false;
                // An operator's word.
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

    /// Whether an error of a card, or of a part of it, was reported.
    fn is_reported(&self, card: usize) -> bool {
        self.reported[card] || (card == CUT && self.part_reported)
    }

    /// What was reported of a card has ended.
    fn clear(&mut self, card: usize) {
        self.reported[card] = false;
        if card == CUT {
            self.part_reported = false;
        }
    }

    /// A card is as new, and has no MIG devices.
    fn renew(&mut self, card: usize) {
        self.lost[card] = false;
        self.clear(card);
        if card == CUT {
            self.part = false;
            self.added = 0;
        }
    }
}
