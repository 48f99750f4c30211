//! State files that can be read only after the agent has started its work.

use super::{
    keeping::{cordon, left, xid},
    *,
};

#[test]
fn what_is_read_late_counts_where_nothing_newer_is_known() {
    let mut first = inventory();
    see(
        &mut first,
        backend_state(vec![sample_card(0), sample_card(1), sample_card(2)]),
        at(0),
    );
    xid(&mut first, sample_card(0), at(1));
    cordon(&mut first, &sample_card(1), at(1));
    cordon(&mut first, &sample_card(2), at(1));
    first.next_snapshot(at(1));
    let late = left(&mut first, at(2));

    let mut next = inventory();
    see(
        &mut next,
        backend_state(vec![sample_card(0), sample_card(1), sample_card(2)]),
        at(10),
    );
    let expected = ["GPU-0 Healthy", "GPU-1 Healthy", "GPU-2 Healthy"];
    assert_eq!(states(&mut next, at(10)), expected, "nobody knows better");
    let uncordon = DeviceChange::Uncordon {
        devices: vec![sample_card(2).id],
    };
    next.apply_change(&uncordon, at(11));
    next.restore_state(late, at(12));
    let (_, changes) = next_changes(&mut next, at(12));
    let changed: Vec<&str> = changes.iter().map(|c| c.device.as_str()).collect();
    assert_eq!(changed, ["GPU-0", "GPU-1"], "it is news");
    let expected = ["GPU-0 Unhealthy", "GPU-1 Maintenance", "GPU-2 Healthy"];
    assert_eq!(states(&mut next, at(12)), expected);
    let times: Vec<Timestamp> = next.history.iter().map(|change| change.at).collect();
    assert!(times.is_sorted() && times.len() == 5, "{times:?}");
    let kept = next.checkpoint(at(12)).expect("it is another file now");
    assert_eq!(kept.health.devices.len(), 2);
}

#[test]
fn a_card_that_cannot_be_read_is_listed_when_it_is_read_of_late() {
    let without = || {
        let mut without = backend_state(vec![sample_card(0)]);
        without.backend.unreadable.push(Unreadable {
            card: sample_card(1).card_ref().unwrap(),
            failure: lost_call(),
        });
        without
    };
    let mut first = inventory();
    see(
        &mut first,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(0),
    );
    see(&mut first, without(), at(1));
    first.next_snapshot(at(1));
    let late = left(&mut first, at(2));
    let mut next = inventory();
    see(&mut next, without(), at(3));
    assert_eq!(states(&mut next, at(3)), ["GPU-0 Healthy"]);
    next.restore_state(late, at(4));
    let expected = ["GPU-0 Healthy", "GPU-1 Unhealthy"];
    assert_eq!(states(&mut next, at(4)), expected);
}

#[test]
fn a_cordon_that_is_read_late_reaches_a_card_that_went_meanwhile() {
    let mut first = inventory();
    see(
        &mut first,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(0),
    );
    cordon(&mut first, &sample_card(1), at(1));
    let late = left(&mut first, at(2));
    let mut next = inventory();
    see(
        &mut next,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(3),
    );
    see(&mut next, backend_state(vec![sample_card(0)]), at(4));
    assert_eq!(states(&mut next, at(400)), ["GPU-0 Healthy"]);
    next.restore_state(late, at(401));
    see(
        &mut next,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(402),
    );
    let expected = ["GPU-0 Healthy", "GPU-1 Maintenance"];
    assert_eq!(states(&mut next, at(402)), expected);
}

#[test]
fn a_release_that_is_read_late_does_not_come_back_where_an_operator_had_the_card_since() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    assert!(!inventory.has_released("nvidia", "0000:01:00.0"));
    let mut picture = backend_state(vec![sample_card(0)]);
    for (n, own) in [(1, false), (2, true)] {
        let release = probe::ReleaseStatus {
            until: at(9).wall,
            own,
            closed: true,
        };
        let which = CardRef::Pci(sample_card(n).pci.unwrap());
        picture.released.cards.insert(which, release);
    }
    see(&mut inventory, picture, at(1));
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(10),
    );
    assert!(inventory.has_released("nvidia", "0000:01:00.0"));
    let own = inventory.has_released("nvidia", "0000:02:00.0");
    assert!(!own, "it was the agent that had this one");
}

#[test]
fn old_changes_that_are_read_late_are_told() {
    let mut first = inventory();
    see(&mut first, backend_state(vec![sample_card(0)]), at(0));
    xid(&mut first, sample_card(0), at(1));
    first.next_snapshot(at(1));
    let mut late = left(&mut first, at(2));
    late.health.devices.clear();
    let mut next = inventory();
    see(&mut next, backend_state(vec![sample_card(0)]), at(10));
    xid(&mut next, sample_card(0), at(11));
    next.next_snapshot(at(11));
    let told = next.build_details();
    next.restore_state(late, at(12));
    assert!(!next.has_told(&told));
}
