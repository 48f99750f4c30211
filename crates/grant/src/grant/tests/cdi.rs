//! CDI names, and the annotation with the names.

use super::*;

fn plain(_: &mut Handover) {}

/// Rows of the test of CDI answers in NVIDIA's plugin, and the cases between them.
#[rstest]
#[case::no_strategy(&[], &["GPU-a"], plain, &[])]
#[case::only_the_variable(&[Envvar], &["GPU-a"], plain, &[])]
#[case::annotations(&[CdiAnnotations], &["GPU-a"], plain, &["gpu=GPU-a"])]
#[case::cri(&[CdiCri], &["GPU-a"], plain, &["gpu=GPU-a"])]
#[case::both(&[CdiAnnotations, CdiCri], &["GPU-a"], plain, &["gpu=GPU-a"])]
#[case::beside_the_variable(&[Envvar, CdiCri], &["GPU-a"], plain, &["gpu=GPU-a"])]
#[case::several(&[CdiCri], &["GPU-b", "GPU-a"], plain, &["gpu=GPU-b", "gpu=GPU-a"])]
#[case::by_index(&[CdiCri], &["GPU-b", "GPU-a", "GPU-d"], |h: &mut Handover| h.ids = IdStrategy::Index, &["gpu=0", "gpu=2", "gpu=3"])]
#[case::gds(&[CdiCri], &["GPU-a"], |h: &mut Handover| h.nvidia.gds = true, &["gpu=GPU-a", "gds=all"])]
#[case::gdrcopy(&[CdiCri], &["GPU-a"], |h: &mut Handover| h.nvidia.gdrcopy = true, &["gpu=GPU-a", "gdrcopy=all"])]
#[case::mofed(&[CdiCri], &["GPU-a"], |h: &mut Handover| h.nvidia.mofed = true, &["gpu=GPU-a", "mofed=all"])]
#[case::a_channel(&[CdiCri], &["GPU-a"], |h: &mut Handover| h.nvidia.imex = vec![0], &["gpu=GPU-a", "imex-channel=0"])]
#[case::channels(&[CdiCri], &["GPU-a"], |h: &mut Handover| h.nvidia.imex = vec![1, 0, 1], &["gpu=GPU-a", "imex-channel=0", "imex-channel=1"])]
#[case::no_such_channel(&[CdiCri], &["GPU-a"], |h: &mut Handover| h.nvidia.imex = vec![7], &["gpu=GPU-a"])]
#[case::all_together(
    &[CdiAnnotations, CdiCri], &["GPU-a", "GPU-b"],
    |h: &mut Handover| { (h.nvidia.gds, h.nvidia.mofed, h.nvidia.gdrcopy) = (true, true, true); h.nvidia.imex = vec![0]; },
    &["gpu=GPU-a", "gpu=GPU-b", "imex-channel=0", "gdrcopy=all", "gds=all", "mofed=all"],
)]
fn cdi_names(
    #[case] lists: &[ListStrategy],
    #[case] names: &[&str],
    #[case] change: impl Fn(&mut Handover),
    #[case] expected: &[&str],
) {
    let given = asked(all_extras(), lists, names, change);
    let full = |name: &&str| format!("k8s.device-plugin.nvidia.com/{name}");
    let expected: Vec<String> = expected.iter().map(full).collect();
    let value = |strategy, value: Vec<String>| match lists.contains(&strategy) {
        true => value,
        false => Vec::new(),
    };
    assert_eq!(given.cdi_devices, value(CdiCri, expected.clone()));
    let annotations: Vec<String> = given.annotations.into_values().collect();
    assert_eq!(annotations, value(CdiAnnotations, vec![expected.join(",")]));
}

#[test]
fn what_the_host_has_not_is_not_named_but_asked_of_the_runtime() {
    let change = |handover: &mut Handover| {
        (
            handover.nvidia.gds,
            handover.nvidia.gdrcopy,
            handover.nvidia.mofed,
        ) = (true, true, true);
        handover.nvidia.imex = vec![0];
    };
    let given = asked(
        Extras::default(),
        &[Envvar, VolumeMounts, CdiCri],
        &["GPU-a"],
        change,
    );
    insta::assert_snapshot!(show(&given), @r"
    env NVIDIA_GDRCOPY=enabled
    env NVIDIA_GDS=enabled
    env NVIDIA_MOFED=enabled
    env NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices
    mount /dev/null -> /var/run/nvidia-container-devices/GPU-a
    node /dev/nvidia-uvm rw
    node /dev/nvidia3 rw
    node /dev/nvidiactl rw
    cdi k8s.device-plugin.nvidia.com/gpu=GPU-a
    ");
}

#[test]
fn the_annotation_has_the_prefix_of_the_pool_and_differs_by_resource() {
    let offer = |resource: &str| {
        let pool = handover_pool(|handover| {
            handover.lists = vec![CdiAnnotations];
            handover.nvidia.annotation_prefix = "example.com/".to_owned();
        });
        offer_of_devices(resource, pool, vec![indexed_card(0)])
    };
    let key = |resource: &str| {
        let given = grant_ids(&offer(resource), &to_ids(&["GPU-d"])).unwrap();
        given.annotations.into_keys().next().unwrap()
    };
    let gpu = key("nvidia.com/gpu");
    assert!(
        gpu.starts_with("example.com/nvidia-device-plugin_"),
        "{gpu}"
    );
    assert_ne!(gpu, key("nvidia.com/other"));
}
