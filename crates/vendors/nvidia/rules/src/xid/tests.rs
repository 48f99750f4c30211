use config::{XidBase, XidSet, Xids};
use rstest::rstest;

use super::*;

/// Expected actions of the commonest XIDs, taken from NVIDIA's catalogue and not from the table.
const EXPECTED: [(u64, Action); 27] = [
    (8, Action::Application),
    (13, Action::Application),
    (31, Action::Application),
    (32, Action::Application),
    (39, Action::Application),
    (43, Action::Ignore),
    (44, Action::Ignore),
    (45, Action::Ignore),
    (46, Action::Reset),
    (48, Action::Reset),
    (54, Action::Permanent),
    (62, Action::Reset),
    (63, Action::Ignore),
    (64, Action::Reset),
    (68, Action::Application),
    (69, Action::Application),
    (74, Action::Reset),
    (79, Action::Reset),
    (92, Action::Ignore),
    (94, Action::Application),
    (95, Action::Reset),
    (109, Action::Reset),
    (119, Action::Reset),
    (120, Action::Reset),
    (140, Action::Reset),
    (149, Action::Drain),
    (154, Action::Ignore),
];

#[test]
fn every_line_of_the_table_is_a_row() {
    let strange: Vec<&str> = table_lines()
        .filter(|line| parse_xid_row(line).is_none())
        .collect();
    assert_eq!(strange, Vec::<&str>::new());
}

#[test]
fn the_table_is_sorted_has_each_number_once_and_uses_every_action() {
    let numbers: Vec<u64> = ROWS.iter().map(|row| row.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert!(numbers.len() >= 170, "{} rows", numbers.len());
    for action in [
        Action::Ignore,
        Action::Application,
        Action::Reset,
        Action::Drain,
        Action::Permanent,
    ] {
        let used = ROWS.iter().any(|row| row.action == action);
        assert!(used, "no row says {action:?}");
    }
}

#[test]
fn the_table_names_its_source_and_when_it_was_looked_up() {
    let header: String = TABLE.lines().take_while(|l| l.starts_with('#')).collect();
    for word in [
        "NVIDIA XID errors catalogue",
        "docs.nvidia.com",
        "looked up",
    ] {
        assert!(header.contains(word), "{word}");
    }
}

#[test]
fn the_xids_that_are_met_most_mean_what_the_catalogue_says() {
    let policy = Xids::default();
    for (number, expected) in EXPECTED {
        assert_eq!(xid_action(&policy, number), expected, "XID {number}");
    }
}

#[test]
fn every_row_is_found_by_its_number_and_described_by_its_name() {
    for row in ROWS.iter() {
        assert_eq!(super::find_xid_row(row.number), Some(row));
        let described = describe_xid(row.number);
        assert_eq!(described, format!("XID {} ({})", row.number, row.name));
        assert_eq!(xid_action(&Xids::default(), row.number), row.action);
    }
    assert_eq!(describe_xid(79), "XID 79 (GPU has fallen off the bus)");
    assert_eq!(describe_xid(4242), "XID 4242");
}

#[test]
fn an_unknown_xid_does_what_the_policy_says() {
    let mut policy = Xids::default();
    assert_eq!(xid_action(&policy, u64::MAX), Action::Reset);
    policy.unknown = Action::Ignore;
    assert_eq!(xid_action(&policy, u64::MAX), Action::Ignore);
}

#[test]
fn an_override_beats_the_table_and_is_beaten_by_both_lists() {
    let mut policy = Xids {
        actions: [(13, Action::Drain), (79, Action::Permanent)].into(),
        ..Xids::default()
    };
    assert_eq!(xid_action(&policy, 13), Action::Drain);
    policy.ignore = XidSet::Some([13].into());
    assert_eq!(xid_action(&policy, 13), Action::Ignore);
    policy.heed = XidSet::All;
    assert_eq!(xid_action(&policy, 13), Action::Drain);
    assert_eq!(xid_action(&policy, 79), Action::Permanent);
    assert_eq!(xid_action(&policy, 31), Action::Reset);
}

/// Cases of NVIDIA's device plugin for `DP_DISABLE_HEALTHCHECKS` and `DP_ENABLE_HEALTHCHECKS`. The
/// last row but one is as the plugin's comment promises, and not as its code does.
#[rstest]
#[case("", "", false, true)]
#[case("all", "", false, false)]
#[case("", "all", true, true)]
#[case("79", "", false, false)]
#[case("79", "79", false, true)]
#[case("", "13", true, true)]
#[case("all", "79", false, true)]
#[case("all", "all", true, true)]
fn lists_keep_the_meaning_they_have_upstream(
    #[case] disable: &str,
    #[case] enable: &str,
    #[case] thirteen: bool,
    #[case] seventy_nine: bool,
) {
    let policy = Xids {
        base: XidBase::Nvidia,
        ignore: numbers(disable),
        heed: numbers(enable),
        ..Xids::default()
    };
    assert_eq!(xid_action(&policy, 13).takes_out(), thirteen);
    assert_eq!(xid_action(&policy, 79).takes_out(), seventy_nine);
}

#[test]
fn upstream_leaves_out_six_and_takes_a_card_out_for_every_other() {
    let policy = Xids {
        base: XidBase::Nvidia,
        ..Xids::default()
    };
    let out = |number: &u64| !xid_action(&policy, *number).takes_out();
    let left: Vec<u64> = (0..1000).filter(out).collect();
    assert_eq!(left, [13, 31, 43, 45, 68, 109]);
}

fn numbers(text: &str) -> XidSet {
    match text {
        "" => XidSet::default(),
        "all" => XidSet::All,
        number => XidSet::Some([number.parse().unwrap()].into()),
    }
}
