//! Resets between two looks: the counters that show them, and the events that they end.

use model::SinceReset;
use rstest::rstest;

use super::*;

impl Bench {
    fn count(&mut self, counts: SinceReset) -> bool {
        self.record.record_counters(&counts, &self.policy)
    }
}

fn energy(joules: u64) -> SinceReset {
    SinceReset {
        energy_millijoules: Some(joules * 1000),
        ..SinceReset::default()
    }
}

fn counts(energy: Option<u64>, replays: Option<u64>, ecc: Option<u64>) -> SinceReset {
    SinceReset {
        energy_millijoules: energy,
        pcie_replays: replays,
        ecc_errors: ecc,
        ..SinceReset::default()
    }
}

#[test]
fn a_reset_between_two_looks_ends_an_xid() {
    let mut bench = Bench::new();
    bench.well();
    assert!(!bench.count(energy(90_000)));
    assert!(bench.wait(5).xid(79));
    bench.count(energy(90_400));
    // The first look after the event finds the card present and its counter set back.
    assert!(bench.wait(4).count(energy(200)));
    bench.well();
    assert_eq!(bench.state(), State::Healthy);
}

#[test]
fn an_xid_stands_while_the_counter_grows() {
    let mut bench = Bench::new();
    bench.well();
    bench.count(energy(90_000));
    bench.xid(79);
    for joules in [90_000, 90_001, 200_000] {
        assert!(!bench.wait(60).count(energy(joules)));
        assert_eq!(bench.well().state(), State::Unhealthy);
    }
}

/// Holds for any time between reset and event, and for any energy drawn since.
#[rstest]
#[case::at_once(0, 1)]
#[case::later(40, 2400)]
fn an_xid_that_was_told_since_the_last_count_stands(#[case] later: u64, #[case] joules: u64) {
    let mut bench = Bench::new();
    bench.well();
    bench.count(energy(90_000));
    // The card was reset and failed again before its counter was read.
    bench.wait(later).xid(48);
    assert!(bench.count(energy(joules)));
    assert_eq!(bench.well().state(), State::Unhealthy);
    assert!(!bench.wait(30).count(energy(joules + 100)));
    assert_eq!(bench.well().state(), State::Unhealthy);
    // The next reset ends the event, too.
    assert!(bench.wait(30).count(energy(joules)));
    assert_eq!(bench.state(), State::Healthy);
}

/// Without persistence mode, a card is initialized again when a probe opens it, and counts from
/// zero.
#[rstest]
#[case::set_up_anew(false, false, State::Unhealthy)]
#[case::set_up_anew_since_persistence_went(true, false, State::Unhealthy)]
#[case::kept_set_up(true, true, State::Healthy)]
fn a_card_that_was_opened_anew_was_reset_only_if_it_was_kept_set_up(
    #[case] before: bool,
    #[case] after: bool,
    #[case] state: State,
) {
    let opened = |second, persistent, joules| SinceReset {
        opened: Some(at(second).wall),
        persistent,
        ..energy(joules)
    };
    let mut bench = Bench::new();
    bench.well();
    bench.xid(79);
    bench.count(opened(0, before, 90_000));
    bench.restart(SAME);
    bench.well();
    assert_eq!(bench.count(opened(9, after, 5)), state == State::Healthy);
    assert_eq!(bench.state(), state);
    // A reset is seen while the new probe has the card open.
    assert!(bench.count(opened(9, after, 4)));
    assert_eq!(bench.state(), State::Healthy);
}

#[test]
fn a_permanent_xid_outlives_a_reset_between_two_looks() {
    let mut bench = Bench::new();
    bench.well();
    bench.count(energy(90_000));
    assert!(bench.xid(54));
    bench.count(energy(90_001));
    assert!(bench.wait(10).count(energy(1)));
    assert_eq!(bench.state(), State::Unhealthy);
}

/// Only the most reliable counter decides; memory errors can be cleared without a reset.
#[rstest]
#[case::energy(counts(Some(9), None, None), counts(Some(8), None, None), true)]
#[case::energy_grew(
    counts(Some(9), Some(5), Some(5)),
    counts(Some(9), Some(0), Some(0)),
    false
)]
#[case::energy_not_read(
    counts(Some(9), Some(5), Some(5)),
    counts(None, Some(0), Some(0)),
    false
)]
#[case::replays(counts(None, Some(5), Some(5)), counts(None, Some(0), Some(9)), true)]
#[case::replays_say_no(counts(None, Some(5), Some(5)), counts(None, Some(5), Some(0)), false)]
#[case::replays_not_read(counts(None, Some(5), Some(5)), counts(None, None, Some(0)), false)]
#[case::only_errors(counts(None, None, Some(5)), counts(None, None, Some(0)), true)]
#[case::errors_grew(counts(None, None, Some(5)), counts(None, None, Some(6)), false)]
#[case::energy_is_new(counts(None, Some(5), None), counts(Some(1), None, None), false)]
#[case::nothing(counts(None, None, None), counts(None, None, None), false)]
fn a_counter_that_fell_tells_of_a_reset(
    #[case] before: SinceReset,
    #[case] after: SinceReset,
    #[case] reset: bool,
) {
    let mut bench = Bench::new();
    bench.well();
    bench.xid(79);
    bench.count(before);
    assert_eq!(bench.wait(10).count(after), reset);
    assert_eq!(bench.state() == State::Healthy, reset);
}

#[test]
fn what_was_not_read_once_is_compared_with_what_was_read_before() {
    let mut bench = Bench::new();
    bench.well();
    bench.xid(79);
    bench.count(energy(500));
    assert!(!bench.wait(10).count(SinceReset::default()));
    assert!(bench.wait(10).count(energy(499)));
    assert_eq!(bench.state(), State::Healthy);
}

/// Holds for any energy drawn since: no agent looked meanwhile.
#[rstest]
#[case::little(1)]
#[case::much(89_999)]
fn a_reset_while_no_agent_runs_ends_an_xid(#[case] joules: u64) {
    let mut bench = Bench::new();
    bench.well();
    bench.xid(79);
    bench.count(energy(90_000));
    bench.restart(SAME);
    assert_eq!(bench.well().state(), State::Unhealthy);
    assert!(bench.count(energy(joules)));
    assert_eq!(bench.state(), State::Healthy);
}

#[test]
fn a_restart_without_a_reset_ends_nothing() {
    let mut bench = Bench::new();
    bench.well();
    bench.count(energy(90_000));
    bench.xid(79);
    bench.restart(SAME);
    assert!(!bench.count(energy(90_001)));
    assert_eq!(bench.well().state(), State::Unhealthy);
}

#[test]
fn what_is_read_late_of_an_agent_before_has_ended_if_the_card_was_reset_since() {
    for (joules, state) in [(100, State::Healthy), (90_001, State::Unhealthy)] {
        let mut bench = Bench::new();
        bench.well();
        bench.xid(79);
        bench.count(energy(90_000));
        let saved = bench.record.to_saved(bench.now());
        let mut next = Bench::new();
        next.well();
        next.count(energy(joules));
        next.record.merge_saved(saved, SAME, &next.policy, at(1));
        assert_eq!(next.state(), state);
    }
}

/// The absence was seen, so an XID that comes before the counters are read is a new one.
#[test]
fn a_return_that_was_seen_is_not_taken_for_a_second_reset() {
    let mut bench = Bench::new();
    bench.well();
    bench.count(counts(None, Some(5), None));
    bench.lose().wait(5).well();
    bench.xid(79);
    assert!(!bench.count(counts(None, Some(0), None)));
    assert!(bench.kinds().contains(&CauseKind::Event));
}

#[test]
fn an_agent_that_ends_before_the_counters_are_read_takes_no_guess_with_it() {
    let mut bench = Bench::new();
    bench.well();
    bench.count(energy(90_000));
    bench.xid(79);
    bench.restart(SAME);
    assert!(bench.well().count(energy(5)));
    assert_eq!(bench.state(), State::Unhealthy);
}

#[test]
fn what_was_counted_is_to_be_kept_beside_what_a_reset_ends() {
    let mut bench = Bench::new();
    bench.well();
    bench.xid(79);
    let mut kept = |counts| {
        bench.record.take_unsaved();
        bench.count(counts);
        bench.record.take_unsaved()
    };
    assert!(!kept(SinceReset::default()), "there is nothing to keep");
    assert!(kept(energy(5)));
    assert!(!kept(energy(6)), "not at every look");
    assert!(kept(energy(12)), "a reset shows below twice as much, too");
    let mut well = Bench::new();
    well.well().count(energy(5));
    assert!(well.record.to_saved(well.now()).is_blank());
}
