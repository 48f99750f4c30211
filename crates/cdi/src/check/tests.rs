//! Tests with broken specs.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn good() -> Value {
    json!({
        "cdiVersion": "0.5.0",
        "kind": "example.com/gpu",
        "devices": [{
            "name": "0",
            "containerEdits": {
                "env": ["A=b"],
                "deviceNodes": [{"path": "/dev/x", "hostPath": "/dev/y", "type": "c", "permissions": "rw"}],
                "mounts": [{"hostPath": "/a", "containerPath": "/b", "options": ["ro"]}],
                "hooks": [{"hookName": "createContainer", "path": "/bin/true", "timeout": 1}],
            },
        }],
        "containerEdits": {"env": ["C="]},
    })
}

/// Problems of the good spec after a change.
fn said(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut spec = good();
    change(&mut spec);
    check_spec(&spec).iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_spec_has_no_problem() {
    assert_eq!(said(|_| ()), [""; 0]);
}

#[test]
fn all_that_is_wrong_is_said_at_once_with_its_place() {
    let spec = json!({
        "cdiVersion": "0.2.9",
        "kind": "example.com",
        "extra": 1,
        "annotations": {"a": 1},
        "devices": [
            {"name": "a/b", "containerEdits": {"env": ["=x"], "deviceNodes": [{"type": "d"}]}},
            {"name": "a", "containerEdits": {}},
            {"name": "a", "containerEdits": {"mounts": [{"hostPath": "", "containerPath": "b"}]}},
            {"containerEdits": {"hooks": [{"hookName": "later", "path": "/x"}], "env": "A=b"}},
        ],
        "containerEdits": {"deviceNodes": [{"path": "/x", "major": -1, "permissions": "rx"}]},
    });
    let problems: Vec<String> = check_spec(&spec).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(problems.join("\n"));
}

#[test]
fn a_spec_must_declare_the_version_that_it_needs() {
    let problems = said(|spec| spec["cdiVersion"] = json!("0.3.0"));
    assert_eq!(
        problems,
        ["cdiVersion: the spec uses what CDI has since 0.5.0, but declares 0.3.0"]
    );
    let gids = |spec: &mut Value| spec["containerEdits"]["additionalGids"] = json!([1]);
    assert_eq!(said(gids).len(), 1);
    assert_eq!(said(|spec| spec["cdiVersion"] = json!("1.0.0")), [""; 0]);
}

#[test]
fn what_is_no_map_or_has_no_device_is_no_spec() {
    assert_eq!(check_spec(&json!([])).len(), 1);
    let problems = said(|spec| spec["devices"] = json!([]));
    assert_eq!(problems, ["devices: there is no device in it"]);
}

/// Strategy for any value. Its keys are often keys of specs.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z/=0-9.]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let key = "(cdiVersion|kind|devices|name|containerEdits|env|deviceNodes|mounts|hooks|path|[a-z]{1,3})";
        let pairs = prop::collection::btree_map(key, inner.clone(), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::from),
            pairs.prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_value_without_a_problem_is_a_spec_that_can_be_read(value in any_value()) {
        let errors = check_spec(&value).iter().filter(|p| p.severity == SpecSeverity::Error).count();
        if errors == 0 {
            prop_assert!(serde_json::from_value::<CdiSpec>(value).is_ok());
        }
    }
}
