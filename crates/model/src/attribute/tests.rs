use proptest::prelude::*;

use super::*;

#[test]
fn each_type_has_a_form_of_its_own_in_json() {
    let version: Version = "8.0".parse().unwrap();
    for (value, text) in [
        (Value::Bool(true), "true"),
        (Value::Int(-3), "-3"),
        (Value::Text("8.0".to_owned()), r#""8.0""#),
        (Value::from(version), r#"{"version":"8.0"}"#),
    ] {
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value);
    }
}

#[test]
fn what_is_no_value_is_refused_with_the_forms() {
    for text in ["1.5", "null", "[]", "{}", r#"{"version":"new"}"#] {
        let error = serde_json::from_str::<Value>(text).unwrap_err();
        assert!(error.to_string().contains("a whole number"), "{error}");
    }
}

#[test]
fn names_are_those_of_dra() {
    for good in ["memory", "gpu_1", "_x", "resource.kubernetes.io/pcieRoot"] {
        assert_eq!(good.parse::<AttributeName>().unwrap().as_str(), good);
    }
    let long = "x".repeat(33);
    for bad in [
        "",
        "1st",
        "a-b",
        "a b",
        "/x",
        "Example.com/x",
        "a/b/c",
        &long,
    ] {
        let error = bad.parse::<AttributeName>().unwrap_err().to_string();
        assert!(error.contains(&format!("`{bad}`")), "{error}");
    }
}

#[test]
fn the_known_names_are_names() {
    for name in [
        names::PRODUCT,
        names::ARCHITECTURE,
        names::BRAND,
        names::DISPLAY,
        names::COHERENT,
        names::INTEGRATED,
        names::COMBINED,
        names::MEMORY,
    ] {
        assert_eq!(name.as_str().parse(), Ok(name));
    }
}

proptest! {
    #[test]
    fn values_survive_json(
        value in prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::Int),
            any::<String>().prop_map(Value::from),
            "[0-9]{1,4}(\\.[0-9]{1,4}){0,2}".prop_map(|text| {
                Value::from(text.parse::<Version>().unwrap())
            }),
        ],
    ) {
        let text = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
