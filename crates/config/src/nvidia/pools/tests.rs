//! Pools that resource names and sharing of NVIDIA's file result in.

use rstest::rstest;

use crate::{Pool, Selector, nvidia::translate::tests::translate};

/// Writes a pool on one line.
fn show(pool: &Pool) -> String {
    let selector = |selector: &Selector| {
        let mut text = match selector.kind {
            Some(crate::KindName::Card) => "cards".to_owned(),
            Some(crate::KindName::Partition) => "parts".to_owned(),
            None => "any".to_owned(),
        };
        let lists = [
            &selector.model,
            &selector.profile,
            &selector.index,
            &selector.uuid,
        ];
        for list in lists.into_iter().filter(|list| !list.is_empty()) {
            text += &format!(" {}", list.join("|"));
        }
        text
    };
    let selectors: Vec<String> = pool.selectors.iter().map(selector).collect();
    let limit = pool
        .limit
        .map_or_else(String::new, |limit| format!(" first {limit}"));
    let replicas = match pool.sharing.replicas {
        1 => String::new(),
        replicas => format!(" ×{replicas}"),
    };
    let resource = pool.resource.0.trim_start_matches("nvidia.com/");
    format!(
        "{}: {}{limit} → {resource}{replicas}",
        pool.name,
        selectors.join(" or ")
    )
}

fn pools(mig: &str, text: &str) -> Vec<String> {
    let flag = format!("--mig-strategy={mig}");
    let resolved = translate(&[&flag], &[], text).unwrap();
    resolved.config.pools.pools.iter().map(show).collect()
}

fn slicing(entries: &str) -> String {
    format!("sharing: {{timeSlicing: {{resources: [{entries}]}}}}")
}

#[rstest]
#[case("none", &["gpu: cards → gpu"])]
#[case("single", &["gpu: cards → gpu", "gpu-2: parts → gpu"])]
#[case("mixed", &["gpu: cards → gpu", "mig: parts → mig-{profile}"])]
fn the_strategy_names_cards_and_mig_devices(#[case] mig: &str, #[case] expected: &[&str]) {
    assert_eq!(pools(mig, ""), expected);
}

#[rstest]
#[case("none", "gpus: [{pattern: '*A100*', name: a100}]",
    &["a100: cards *A100* → a100", "gpu: cards → gpu"])]
#[case("none", "gpus: [{pattern: '*', name: any}]", &["any: cards * → any"])]
#[case("none", "gpus: [{pattern: 'Tesla T4', name: t4}, {pattern: 'Tesla*', name: nvidia.com/tesla}]",
    &["t4: cards Tesla T4 → t4", "tesla: cards Tesla* → tesla", "gpu: cards → gpu"])]
#[case("none", "mig: [{pattern: '*', name: slice}]", &["gpu: cards → gpu"])]
#[case("single", "mig: [{pattern: '1g.*', name: slice}]",
    &["gpu: cards → gpu", "slice: parts 1g.* → slice", "gpu-2: parts → gpu"])]
#[case("mixed", "mig: [{pattern: '1g.10gb+me', name: media}]",
    &["gpu: cards → gpu", "media: parts 1g.10gb+me → media", "mig: parts → mig-{profile}"])]
#[case("mixed", "{gpus: [{pattern: 'A*', name: a}], mig: [{pattern: '*', name: m}]}",
    &["a: cards A* → a", "gpu: cards → gpu", "m: parts * → m"])]
fn patterns_name_devices_and_the_first_that_matches_wins(
    #[case] mig: &str,
    #[case] resources: &str,
    #[case] expected: &[&str],
) {
    let text = match resources.starts_with('{') {
        true => format!("resources: {resources}"),
        false => format!("resources: {{{resources}}}"),
    };
    assert_eq!(pools(mig, &text), expected);
}

#[rstest]
#[case("none", "{name: gpu, replicas: 4}", &["gpu: cards → gpu ×4"])]
#[case("none", "{name: gpu, replicas: 4, rename: cheap}", &["cheap: cards → cheap ×4"])]
#[case("single", "{name: gpu, replicas: 4}", &["gpu: cards → gpu ×4", "gpu-2: parts → gpu ×4"])]
#[case("mixed", "{name: gpu, replicas: 4}", &["gpu: cards → gpu ×4", "mig: parts → mig-{profile}"])]
#[case("mixed", "{name: mig-1g.5gb, replicas: 2}",
    &["gpu: cards → gpu", "mig-1g.5gb: parts 1g.5gb → mig-1g.5gb ×2", "mig: parts → mig-{profile}"])]
#[case("mixed", "{name: mig-1g.10gb.me, replicas: 2}",
    &["gpu: cards → gpu", "mig-1g.10gb.me: parts 1g.10gb.me|1g.10gb+me → mig-1g.10gb.me ×2",
      "mig: parts → mig-{profile}"])]
#[case("none", "{name: gpu, replicas: 10, devices: [3], rename: shared}",
    &["shared: cards 3 → shared ×10", "gpu: cards → gpu"])]
#[case("none", "{name: gpu, replicas: 10, devices: [3]}",
    &["gpu.shared: cards 3 → gpu.shared ×10", "gpu: cards → gpu"])]
#[case("none", "{name: gpu, replicas: 10, devices: 2, rename: shared}",
    &["shared: cards first 2 → shared ×10", "gpu: cards → gpu"])]
#[case("none", "{name: gpu, replicas: 10, devices: [0, GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c], rename: s}",
    &["s: cards 0 or cards GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c → s ×10", "gpu: cards → gpu"])]
#[case("none", "{name: gpu, replicas: 2, devices: [0], rename: a}, {name: gpu, replicas: 8, devices: [1], rename: b}",
    &["a: cards 0 → a ×2", "b: cards 1 → b ×8", "gpu: cards → gpu"])]
#[case("none", "{name: gpu, replicas: 2, devices: [0], rename: a}, {name: gpu, replicas: 8}",
    &["a: cards 0 → a ×2", "gpu: cards → gpu ×8"])]
#[case("mixed", "{name: mig-1g.5gb, replicas: 2, devices: ['0:1'], rename: s}",
    &["gpu: cards → gpu", "s: parts 1g.5gb 0:1 → s ×2", "mig: parts → mig-{profile}"])]
#[case("none", "{name: nothing, replicas: 2}", &["gpu: cards → gpu"])]
fn sharing_makes_pools(#[case] mig: &str, #[case] entries: &str, #[case] expected: &[&str]) {
    assert_eq!(pools(mig, &slicing(entries)), expected);
}

#[test]
fn a_custom_name_can_be_shared() {
    let text = format!(
        "resources: {{gpus: [{{pattern: '*T4*', name: t4}}]}}\n{}",
        slicing("{name: t4, replicas: 4}")
    );
    assert_eq!(
        pools("none", &text),
        ["t4: cards *T4* → t4 ×4", "gpu: cards → gpu"]
    );
}

#[test]
fn rename_by_default_adds_shared() {
    let text = "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: gpu, replicas: 4}, \
                {name: mig-1g.5gb, replicas: 2, rename: small}]}}";
    let expected = [
        "gpu.shared: cards → gpu.shared ×4",
        "small: parts 1g.5gb → small ×2",
        "mig: parts → mig-{profile}",
    ];
    assert_eq!(pools("mixed", text), expected);
}

#[test]
fn a_shared_name_that_is_too_long_is_refused() {
    let name = "a".repeat(50);
    let text = format!(
        "resources: {{gpus: [{{pattern: '*', name: {name}}}]}}\nsharing: {{timeSlicing: \
         {{renameByDefault: true, resources: [{{name: {name}, replicas: 4}}]}}}}"
    );
    let error = translate(&[], &[], &text).unwrap_err().to_string();
    assert!(error.contains(".shared` has 68 characters"), "{error}");
    assert!(
        error.contains("sharing.timeSlicing.resources[0].name"),
        "{error}"
    );
}
