//! Checks that `docs/conformance.md` names only tests that exist, and has all checks of Kubernetes.

use std::collections::BTreeMap;

use e2e::scenarios::ALL;

/// First and last column of each row of the table.
fn rows() -> BTreeMap<String, String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/conformance.md");
    let text = fs_err::read_to_string(file).expect("the page is in the repository");
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        Some((cells.first()?.to_string(), cells.get(2)?.to_string()))
    });
    rows.skip(2).collect()
}

/// Words between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_named_test_exists() {
    let rows = rows();
    let names: Vec<&str> = rows.values().flat_map(|cell| quoted(cell)).collect();
    assert!(names.len() > 10, "the table was not understood: {rows:?}");
    for name in names {
        assert!(
            ALL.iter().any(|scenario| scenario.name == name),
            "docs/conformance.md names `{name}`, which is no test of e2e/"
        );
    }
}

#[test]
fn every_check_of_kubernetes_is_answered() {
    let rows = rows();
    let plugin = (1..=11).map(|number| format!("DP{number}"));
    for check in plugin.chain((1..=7).map(|number| format!("DF{number}"))) {
        let Some(cell) = rows.get(&check) else {
            panic!("docs/conformance.md has no row for {check}");
        };
        let is_answered = !quoted(cell).is_empty() || cell.starts_with("Does not apply");
        assert!(
            is_answered,
            "docs/conformance.md says neither which test makes {check} nor why none does"
        );
    }
}
