use super::*;

fn scan(text: &str) -> Vec<Comment> {
    join_comments(text, &sort_lines(text, &[], &[]))
}

fn doc(text: &str) -> Comment {
    Comment {
        line: 1,
        is_doc: true,
        text: text.to_owned(),
    }
}

#[test]
fn joins_lines_of_one_kind_and_leaves_markers_out() {
    let text = "//! A.\n//! B.\n/// C.\n// D.\nfn f() {} // E\n\n// F.\n// === impl G ===\n";
    let comments = scan(text);
    let found: Vec<_> = comments
        .iter()
        .map(|c| (c.line, c.is_doc, &*c.text))
        .collect();
    let expected = [
        (1, true, "A.\nB."),
        (3, true, "C."),
        (4, false, "D."),
        (7, false, "F."),
    ];
    assert_eq!(found, expected);
}

#[test]
fn lines_of_tests_and_of_literals_are_no_comments() {
    let text = "let a = \"\n// not\n\";\n// test\n// yes";
    let kinds = sort_lines(text, &[4..=4], &[2..=3]);
    let code = Some(LineKind::Code);
    assert_eq!(kinds, [code, code, code, None, Some(LineKind::Comment)]);
    assert_eq!(join_comments(text, &kinds).len(), 1);
}

#[test]
fn riddles_open_with_a_question_word() {
    for text in ["What it is.", "Whose card this is.", "What's left."] {
        assert!(doc(text).is_riddle(), "{text}");
    }
    for text in [
        "Whatever is left.",
        "Reads what is left.",
        "When the event came.",
        "",
    ] {
        assert!(!doc(text).is_riddle(), "{text}");
    }
}

#[test]
fn short_docs_have_three_words_at_most() {
    assert!(doc("The card's\nname.").is_short());
    assert!(!doc("The name of it.").is_short());
}

#[test]
fn sources_are_files_issues_functions_and_releases() {
    let sourced = "register (handler.go, connectClient)|see #12345|https://example.org|RFC 9562|\
        `nvmlDeviceGetNumaNodeId` is not asked|driver 535 answers late|up to kubelet 1.36|\
        containerd since 2.0|kubernetes#117|a kubelet\nbefore 1.29|R535 or driver 580.95.05";
    for text in sourced.split('|') {
        assert!(doc(text).has_source(), "{text}");
    }
    let others = "The driver's version, e.g. `580.95.05`.|The first of #2.|`0000:07:00.0`|\
        Reads `libcuda.so.1`.|The kubelet's folder.|nvml answers|the driver takes 500 ms|from 0.5 to 1.0";
    for text in others.split('|') {
        assert!(!doc(text).has_source(), "{text}");
    }
}

#[test]
fn examples_are_blocks_that_rustdoc_compiles() {
    let text = "A.\n```\nlet a;\n```\n```text\nb\n```\n```no_run\nc();\n```";
    assert_eq!(doc(text).count_examples(), 2);
}
