//! Restarts of the agent neither heal nor break a device.

use model::{Performing, RecoveryAction, Working};
use rstest::rstest;

use super::*;

const REBOOT: Continuity = Continuity {
    same_boot: false,
    same_driver: false,
};
const RELOAD: Continuity = Continuity {
    same_boot: true,
    same_driver: false,
};

#[test]
fn a_healthy_card_stays_healthy() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.well().restart(SAME).well().verdict(),
        Verdict::default()
    );
}

#[test]
fn a_lost_card_stays_lost_until_it_was_seen_well_often_enough() {
    for continuity in [SAME, RELOAD, REBOOT] {
        let mut bench = Bench::new();
        bench
            .lose()
            .wait(10)
            .well()
            .wait(10)
            .well()
            .restart(continuity);
        assert_eq!(bench.state(), State::Unhealthy);
        assert_eq!(bench.back_after(), 20, "the looks are counted anew");
    }
}

#[rstest]
#[case(SAME, true)]
#[case(RELOAD, false)]
#[case(REBOOT, false)]
fn an_xid_that_wants_a_reset_survives_unless_node_or_driver_was_started_anew(
    #[case] continuity: Continuity,
    #[case] stands: bool,
) {
    let mut bench = Bench::new();
    bench.xid(48);
    bench
        .record
        .happen(EventCode::ECC_UNCORRECTED, &bench.policy, at(0));
    bench.restart(continuity).well();
    assert_eq!(bench.state() == State::Unhealthy, stands);
}

#[test]
fn a_permanent_xid_and_a_cordon_survive_a_reboot() {
    let mut bench = Bench::new();
    bench.xid(54);
    bench.record.add_cordon("slot 3", at(5));
    bench.restart(REBOOT).well();
    assert_eq!(bench.kinds(), [CauseKind::Cordoned, CauseKind::Event]);
    assert_eq!(
        bench.verdict().causes[0].evidence,
        "an operator cordoned it: slot 3"
    );
}

#[test]
fn a_release_ends_with_the_first_look_after_its_time_and_with_a_start_of_the_node() {
    let mut bench = Bench::new();
    bench.record.release_to_operator(at(600).wall, at(0));
    bench.wait(500).restart(SAME);
    assert_eq!(bench.state(), State::Maintenance);
    assert_eq!(bench.well().state(), State::Maintenance);
    assert_eq!(bench.wait(100).well().state(), State::Healthy);
    bench.record.release_to_operator(at(900).wall, bench.now());
    let rebooted = Continuity {
        same_boot: false,
        same_driver: false,
    };
    assert_eq!(bench.restart(rebooted).state(), State::Healthy);
}

#[test]
fn flapping_is_remembered() {
    let mut bench = Bench::new();
    bench
        .lose()
        .wait(1)
        .well()
        .wait(1)
        .lose()
        .restart(SAME)
        .wait(1);
    assert_eq!(bench.back_after(), 40);
}

#[test]
fn a_card_that_was_well_for_a_moment_before_the_restart_flaps_when_it_is_lost_after_it() {
    let mut bench = Bench::new();
    bench.lose().wait(1).well().restart(SAME).wait(1).lose();
    assert_eq!(bench.back_after(), 40);
}

#[test]
fn a_card_that_did_not_answer_does_not_get_another_grace() {
    let mut bench = Bench::new();
    bench.see(Observation::Stuck(&hung())).wait(40);
    assert_eq!(bench.state(), State::Unhealthy);
    bench.restart(SAME);
    assert_eq!(bench.state(), State::Unhealthy);
    assert_eq!(bench.back_after(), 20);
}

#[test]
fn a_grace_of_less_than_a_second_is_not_given_twice_either() {
    let mut bench = Bench::new();
    bench.policy.health.unanswered_grace = Duration::from_millis(500);
    bench.see(Observation::Stuck(&hung()));
    let soon = Now {
        uptime: Duration::from_millis(600),
        ..at(0)
    };
    let saved = bench.record.to_saved(soon);
    let record = DeviceRecord::from_saved(saved, SAME, &bench.policy, at(7));
    assert_eq!(record.verdict(&bench.policy, at(7)).state, State::Unhealthy);
}

#[test]
fn a_clock_that_starts_at_zero_loses_no_time() {
    let mut bench = Bench::new();
    bench.see(Observation::Stuck(&hung())).wait(20).xid(13);
    let saved = bench.record.to_saved(bench.now());
    let started = |uptime| Now {
        uptime: Duration::from_secs(uptime),
        ..at(21)
    };
    let record = DeviceRecord::from_saved(saved, SAME, &bench.policy, started(0));
    let state = |uptime| record.verdict(&bench.policy, started(uptime)).state;
    assert_eq!([state(9), state(10)], [State::Unknown, State::Unhealthy]);
    let warns = |uptime| {
        record
            .verdict(&bench.policy, started(uptime))
            .warnings
            .len()
    };
    assert_eq!([warns(299), warns(300)], [1, 0]);
}

#[test]
fn an_event_ends_when_the_card_comes_back_though_the_agent_was_away() {
    let mut bench = Bench::new();
    bench.xid(79);
    bench.lose().restart(SAME);
    assert_eq!(bench.back_after(), 20);
}

#[test]
fn what_was_asked_for_before_is_known_after() {
    let asks = |recovery| {
        Values::Working(Working {
            recovery: Some(recovery),
            ..Working::default()
        })
    };
    let mut bench = Bench::new();
    bench.xid(95);
    bench.read(asks(RecoveryAction::Reset)).restart(SAME);
    assert_eq!(bench.state(), State::Unhealthy);
    bench.read(asks(RecoveryAction::None));
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn what_checks_found_stands_until_they_pass_and_what_a_reset_ends_is_gone_after_one() {
    let broken = Values::Working(Working {
        ecc_uncorrected: Some(1),
        repair_pending: Some(true),
        repair_failed: Some(true),
        ..Working::default()
    });
    let mut bench = Bench::new();
    bench.read(broken).restart(SAME);
    assert_eq!(bench.verdict().causes.len(), 3);
    bench.restart(REBOOT);
    assert_eq!(bench.verdict().join_evidence(), "a memory repair failed");
}

#[test]
fn whether_somebody_looked_is_not_kept() {
    let mut bench = Bench::new();
    bench.see(Observation::Unmonitored("down")).restart(SAME);
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn a_verdict_reads_the_same_after_a_restart() {
    let mut bench = Bench::new();
    bench.xid(48);
    bench.wait(3).lose();
    bench.record.residue("process 7", &bench.policy, at(3));
    bench.record.add_cordon("", at(4));
    let before = bench.verdict();
    assert_eq!(bench.restart(SAME).verdict(), before);
}

#[test]
fn what_another_version_wrote_and_this_one_does_not_know_is_left_out() {
    let text = r#"{
        "standing": [
            {"check": "quantum", "evidence": "odd", "since": "2026-01-01T00:00:00Z"},
            {"check": 7},
            {"check": "lost", "evidence": "x", "since": "2026-01-01T00:00:00Z", "colour": "red"}
        ],
        "events": [{"code": "xid:48", "since": "2026-01-01T00:00:00Z"}, "new"],
        "begun": [{"what": "quantum", "times": 2, "last": "2026-01-01T00:00:00Z"}],
        "mood": "calm"
    }"#;
    let saved: SavedDevice = serde_json::from_str(text).unwrap();
    let mut bench = Bench::new();
    bench.record = DeviceRecord::from_saved(saved, SAME, &bench.policy, at(0));
    assert_eq!(bench.kinds(), [CauseKind::Event, CauseKind::Lost]);
}

#[rstest]
#[case(r#"{"xid": 48, "since": "2026-01-01T00:00:00Z"}"#, xid::xid_code(48))]
#[case(r#"{"since": "2026-01-01T00:00:00Z"}"#, EventCode::ECC_UNCORRECTED)]
fn events_that_were_kept_without_a_code_are_still_read(
    #[case] event: &str,
    #[case] code: EventCode,
) {
    let text = format!(r#"{{"events": [{event}]}}"#);
    let saved: SavedDevice = serde_json::from_str(&text).unwrap();
    let record = DeviceRecord::from_saved(saved, SAME, &Bench::new().policy, at(0));
    assert!(record.events.keys().eq([&code]), "{record:?}");
}

#[rstest]
#[case("remap-pending", Check::RepairPending)]
#[case("retirement-pending", Check::RepairPending)]
#[case("remap-failed", Check::RepairFailed)]
#[case("nvlink-errors", Check::LinkErrors)]
#[case("nvlinks-down", Check::LinksDown)]
#[case("remap-rate", Check::RepairRate)]
#[case("fabric", Check::Condition(Tier::Working, "fabric".parse().unwrap()))]
#[case("fabric-joining", Check::Condition(Tier::Working, "fabric-joining".parse().unwrap()))]
fn trouble_that_was_kept_under_an_older_name_is_still_read(
    #[case] name: &str,
    #[case] check: Check,
) {
    let text = format!(
        r#"{{"standing": [{{"check": "{name}", "evidence": "x", "since": "2026-01-01T00:00:00Z"}}],
            "begun": [{{"what": "{name}", "times": 3, "last": "2026-01-01T00:00:00Z"}}],
            "nvlink_errors": 7}}"#
    );
    let saved: SavedDevice = serde_json::from_str(&text).unwrap();
    let record = DeviceRecord::from_saved(saved, SAME, &Bench::new().policy, at(0));
    assert!(record.standing.keys().eq([&check]), "{record:?}");
    assert_eq!(record.begun[&RecurrenceKey::Check(check.clone())].times, 3);
    assert_eq!(record.counters.link_errors, Some(7));
    let again = serde_json::to_value(record.to_saved(at(0))).unwrap();
    assert_eq!(again["standing"][0]["check"], *check.saved_name());
    assert_eq!(again["begun"][0]["what"], *check.saved_name());
    assert_eq!(again["link_errors"], 7);
}

#[test]
fn a_fabric_that_was_kept_as_checks_of_their_own_is_what_it_was() {
    let refused = r#"{"check": "fabric", "evidence": "x", "since": "2026-01-01T00:00:00Z"}"#;
    let joining = r#"{"check": "fabric-joining", "evidence": "y", "since": "2026-01-01T00:00:00Z",
        "lasted_ms": 500000}"#;
    let read = |continuity| {
        let text = format!(r#"{{"standing": [{refused}, {joining}]}}"#);
        let saved: SavedDevice = serde_json::from_str(&text).unwrap();
        let mut bench = Bench::new();
        bench.record = DeviceRecord::from_saved(saved, continuity, &bench.policy, at(0));
        bench
    };
    let mut bench = read(SAME);
    assert_eq!(bench.verdict().join_evidence(), "x");
    assert_eq!(bench.wait(99).warnings(), []);
    assert_eq!(bench.wait(1).warnings(), [CauseKind::Condition]);
    assert_eq!(bench.kinds(), [CauseKind::Condition]);
    let reload = Continuity {
        same_driver: false,
        ..SAME
    };
    assert_eq!(read(reload).wait(1000).verdict(), Verdict::default());
}

#[test]
fn rows_and_pages_that_waited_are_one_trouble_that_passes_only_if_both_did() {
    let pages = r#"{"check": "retirement-pending", "evidence": "pages",
        "since": "2026-01-02T00:00:00Z"}"#;
    let rows = r#"{"check": "remap-pending", "evidence": "rows", "since": "2026-01-01T00:00:00Z",
        "well": "2026-01-03T00:00:00Z"}"#;
    for both in [[pages, rows], [rows, pages]] {
        let text = format!(r#"{{"standing": [{}]}}"#, both.join(","));
        let saved: SavedDevice = serde_json::from_str(&text).unwrap();
        let mut bench = Bench::new();
        bench.record = DeviceRecord::from_saved(saved, SAME, &bench.policy, at(0));
        assert_eq!(bench.kinds(), [CauseKind::MemoryRepair]);
        assert_eq!(bench.verdict().join_evidence(), "pages");
    }
}

/// Saved state of an earlier agent, to be merged late.
fn late(act: impl FnOnce(&mut Bench)) -> SavedDevice {
    let mut before = Bench::new();
    act(&mut before);
    before.record.to_saved(before.now())
}

impl Bench {
    fn inherit(&mut self, saved: SavedDevice, continuity: Continuity) -> &mut Self {
        let now = self.now();
        self.record
            .merge_saved(saved, continuity, &self.policy, now);
        self
    }
}

#[test]
fn what_comes_to_hand_late_counts_where_nothing_newer_is_known() {
    let saved = late(|before| {
        before.xid(79);
        before.record.add_cordon("a new fan", at(0));
    });
    let mut bench = Bench::new();
    bench.wait(5).well().inherit(saved, SAME);
    assert_eq!(bench.kinds(), [CauseKind::Cordoned, CauseKind::Event]);
    assert_eq!(bench.verdict().causes[1].since, at(0).wall);
}

#[test]
fn a_cordon_and_an_event_that_are_newer_than_what_comes_to_hand_late_stay() {
    let saved = late(|before| {
        before.xid(79);
        before.record.add_cordon("old", at(0));
    });
    let mut bench = Bench::new();
    bench.wait(5).xid(79);
    bench.record.add_cordon("new", at(6));
    bench.wait(5).inherit(saved, SAME);
    let causes = bench.verdict().causes;
    assert!(causes[0].evidence.ends_with("new"), "{causes:?}");
    assert_eq!(causes[1].since, at(5).wall);
}

#[test]
fn a_card_that_was_seen_well_is_not_lost_by_what_comes_to_hand_late() {
    let saved = late(|before| {
        before.lose().xid(79);
    });
    let mut bench = Bench::new();
    bench.wait(5).well().inherit(saved, SAME);
    assert_eq!(bench.verdict(), Verdict::default(), "it left and came back");
    bench.wait(5).lose();
    assert_eq!(bench.back_after(), 40, "that it flaps is known");
}

#[rstest]
#[case::a_reset_since(SAME)]
#[case::a_reload(RELOAD)]
#[case::a_reboot(REBOOT)]
fn what_a_reset_ends_does_not_come_back_late(#[case] continuity: Continuity) {
    let saved = late(|before| {
        before.xid(79);
    });
    let mut bench = Bench::new();
    if continuity == SAME {
        bench.lose().wait(1).back_after();
    }
    bench.inherit(saved, continuity);
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn a_finding_that_comes_to_hand_late_stands_until_it_is_read() {
    let errors = |count| {
        Values::Working(Working {
            ecc_uncorrected: Some(count),
            ..Working::default()
        })
    };
    let saved = late(|before| {
        before.read(errors(3));
    });
    let mut bench = Bench::new();
    bench.well().inherit(saved.clone(), SAME);
    assert_eq!(bench.kinds(), [CauseKind::Ecc]);
    assert_eq!(bench.read(errors(0)).verdict(), Verdict::default());
    let mut bench = Bench::new();
    bench.well().read(errors(0)).inherit(saved, SAME);
    assert_eq!(bench.verdict(), Verdict::default(), "it was read already");
}

/// Errors that were counted and tolerated before a restart are no news after it.
#[test]
fn how_many_link_errors_were_counted_is_kept_when_there_are_more() {
    let errors = |count| {
        Values::Performing(Performing {
            link_errors: Some(count),
            ..Performing::default()
        })
    };
    let mut bench = Bench::new();
    bench.policy.health.thresholds.link_errors = 10;
    for (count, news) in [(1, false), (1, false), (9, true), (9, false)] {
        bench.wait(300).read(errors(count));
        assert_eq!(bench.record.take_unsaved(), news, "{count}");
    }
    bench.restart(SAME).read(errors(12));
    assert_eq!(bench.verdict(), Verdict::default());
}
