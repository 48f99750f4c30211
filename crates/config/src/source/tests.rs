//! Trees, and the limits on their size.

use super::*;
use proptest::prelude::*;

fn show(node: &YamlNode) -> String {
    match &node.value {
        YamlValue::Null => "null".to_owned(),
        YamlValue::Scalar { text, plain: true } => text.clone(),
        YamlValue::Scalar { text, plain: false } => format!("'{text}'"),
        YamlValue::List(list) => {
            let items: Vec<String> = list.iter().map(show).collect();
            format!("[{}]", items.join(", "))
        }
        YamlValue::Map(entries) => {
            let item = |entry: &YamlEntry| format!("{}: {}", entry.key, show(&entry.node));
            let items: Vec<String> = entries.iter().map(item).collect();
            format!("{{{}}}", items.join(", "))
        }
    }
}

fn tree(text: &str) -> String {
    match tree::parse_yaml(text) {
        Ok(Some(node)) => show(&node),
        Ok(None) => "nothing".to_owned(),
        Err(fault) => {
            let TextPlace { line, column, .. } = fault.place;
            format!("{line}:{column}: {}", fault.message)
        }
    }
}

#[test]
fn yaml_and_json_are_one() {
    assert_eq!(
        tree("a: [1, 'x']\nb:\n  c: ~\n"),
        "{a: [1, 'x'], b: {c: null}}"
    );
    assert_eq!(
        tree(r#"{"a": [1, "x"], "b": {"c": null}}"#),
        "{a: [1, 'x'], b: {c: null}}"
    );
}

#[test]
fn a_text_without_a_value_is_nothing() {
    for text in ["", "\n\n", "# a comment\n", "---\n", "null\n"] {
        assert_eq!(tree(text), "nothing", "{text:?}");
    }
}

#[test]
fn aliases_and_merge_keys_are_followed() {
    assert_eq!(tree("a: &x [1, 2]\nb: *x\n"), "{a: [1, 2], b: [1, 2]}");
    let text = "base: &b {p: 1, q: 2}\nc:\n  <<: *b\n  q: 3\n";
    assert_eq!(tree(text), "{base: {p: 1, q: 2}, c: {q: 3, p: 1}}");
    assert!(tree("a: *nobody\n").starts_with("1:4: not valid YAML"));
    assert_eq!(
        tree("a: &x [*x]\n"),
        "1:8: an alias within what it stands for"
    );
    assert_eq!(tree("<<: 3\n"), "1:5: `<<` needs a map");
}

#[test]
fn aliases_cannot_make_a_small_text_large() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        let before = format!("*a{}", n - 1);
        let list = [before.as_str(); 9].join(", ");
        text += &format!("a{n}: &a{n} [{list}]\n");
    }
    assert!(
        tree(&text).ends_with("more than 50000 keys and values"),
        "{}",
        tree(&text)
    );
}

#[test]
fn depth_is_limited() {
    for text in [
        "[".repeat(20_000),
        "- ".repeat(20_000),
        "{a: ".repeat(20_000),
    ] {
        let complaint = tree(&text);
        assert!(complaint.starts_with("1:"), "{complaint}");
    }
}

#[test]
fn a_second_document_and_odd_keys_are_refused() {
    assert_eq!(
        tree("a: 1\n---\nb: 2\n"),
        "2:1: there is a second YAML document"
    );
    assert_eq!(tree("[a]: 1\n"), "1:1: a key must be a text");
}

#[test]
fn a_byte_order_mark_does_not_count() {
    let source = ConfigText::new("x", "\u{feff}a: 1\n");
    assert_eq!(tree(source.as_text()), "{a: 1}");
}

#[test]
fn a_long_line_is_shown_around_its_place() {
    let line = format!("{}HERE{}", "a".repeat(400), "b".repeat(400));
    let snippet = Snippet::new(&line, 401, 4);
    let marked: String = snippet
        .line
        .chars()
        .skip(snippet.start)
        .take(snippet.width)
        .collect();
    assert_eq!(marked, "HERE");
    assert!(snippet.line.len() <= 100);
    let end = Snippet::new("short", 90, 7);
    assert_eq!((end.start, end.width), (5, 1));
}

proptest! {
    #[test]
    fn never_panics(text in "[-a-c0:{}\\[\\],&*<\"'|>#!%\n\t é]{0,80}") {
        let _ = tree(&text);
    }
}
