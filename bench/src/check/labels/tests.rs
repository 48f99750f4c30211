//! Which labels must be there, on profiles that come with the simulator.

use super::*;
use sim::NodeProfile;

fn of(profile: &str, strategy: Strategy) -> Labels {
    let state = NodeProfile::find_profile(profile)
        .unwrap()
        .to_state()
        .unwrap();
    labels(&state, strategy).remove(0)
}

#[test]
fn whole_cards_are_described() {
    let labels = of("dgx-a100", Strategy::None);
    assert_eq!(labels["gpu.product"], "NVIDIA-A100-SXM4-40GB");
    assert_eq!(labels["gpu.count"], "8");
    assert_eq!(labels["gpu.family"], "ampere");
    assert_eq!(labels["cuda.driver-version.full"], "580.95.05");
    assert_eq!(labels["cuda.runtime-version.full"], "13.0");
    assert_eq!(labels["mig.capable"], "true");
    assert!(!labels.contains_key("mig.strategy"));
}

#[test]
fn partitions_are_described_by_profile() {
    let labels = of("a100-mig", Strategy::Mixed);
    assert_eq!(
        labels["mig-1g.5gb.product"],
        "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"
    );
    assert_eq!(labels["mig-3g.20gb.memory"], "20096");
    assert_eq!(labels["gpu.count"], "8");
    assert_eq!(labels["gpu.replicas"], "1");
}

#[test]
fn cards_that_are_cut_unevenly_are_invalid_as_single() {
    let labels = of("a100-mig", Strategy::Single);
    assert_eq!(labels["gpu.product"], "NVIDIA-A100-SXM4-40GB-MIG-INVALID");
    assert_eq!(labels["gpu.count"], "0");
    assert_eq!(labels["gpu.family"], "ampere");
}

#[test]
fn a_label_that_differs_is_named() {
    let mut seen = of("t4", Strategy::None);
    let expected = [seen.clone()];
    seen.insert("gfd.timestamp".to_owned(), "1760000000".to_owned());
    assert!(matches!(judge(&expected, &seen), Verdict::Well(_)));
    seen.insert("gpu.count".to_owned(), "2".to_owned());
    seen.remove("gpu.family");
    let wrong = [
        "gpu.count is `2`, not `1`",
        "gpu.family is absent, not `turing`",
    ];
    let wrong = wrong.iter().map(|&text| text.to_owned()).collect();
    assert_eq!(judge(&expected, &seen), Verdict::Wrong(wrong));
}

#[test]
fn a_product_loses_what_a_label_cannot_hold() {
    assert_eq!(sanitised("NVIDIA  H100 (80GB)"), "NVIDIA-H100-80GB");
}
