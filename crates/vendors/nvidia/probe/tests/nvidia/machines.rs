//! Machines on which cards cannot be told apart.

use super::*;

#[test]
fn under_wsl_samples_and_events_are_those_of_the_one_device() {
    let rig = Rig::new("wsl");
    let mut backend = rig.backend();
    let mut report = backend.survey();
    assert_eq!(ids(&report), ["all"]);
    let samples = backend.samples();
    let names: Vec<&str> = samples.iter().map(|s| s.device.as_str()).collect();
    assert_eq!(names, ["all"]);
    assert!(!backend.links(&mut report, true), "one device has no links");

    let mut events = backend.events().unwrap();
    assert_eq!(events.wait(Duration::from_millis(1)).unwrap(), []);
    rig.node.xid(&target("0"), 79).unwrap();
    let heard = node::wait_for(|| {
        let heard = events.wait(Duration::from_millis(200)).unwrap();
        heard.first().cloned()
    });
    assert_eq!(heard.device.as_str(), "all");
    assert_eq!(heard.code.as_str(), "xid:79");
}
