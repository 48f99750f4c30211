//! Machines on which cards cannot be told apart.

use super::*;

#[test]
fn under_wsl_samples_and_events_are_those_of_the_one_device() {
    let rig = Rig::new("wsl");
    let mut backend = rig.backend();
    let mut report = backend.survey_devices();
    assert_eq!(ids(&report), ["all"]);
    let samples = backend.read_samples();
    let names: Vec<&str> = samples.iter().map(|s| s.device.as_str()).collect();
    assert_eq!(names, ["all"]);
    assert!(
        !backend.add_new_links(&mut report, true),
        "one device has no links"
    );

    let mut events = backend.open_events().unwrap();
    assert_eq!(events.wait_events(Duration::from_millis(1)).unwrap(), []);
    rig.node.raise_xid(&target("0"), 79).unwrap();
    let heard = node::wait_for(|| {
        let heard = events.wait_events(Duration::from_millis(200)).unwrap();
        heard.first().cloned()
    });
    assert_eq!(heard.device.as_str(), "all");
    assert_eq!(heard.code.as_str(), "xid:79");
}
