//! Broken configs: each problem names file, line, column and key, and has a remedy.

mod health;
mod pools;

use rstest::rstest;

use crate::{ConfigProblem, Error, ValueOrigin};

/// Returns the text without the mark `«`, and the line and column of the mark.
pub(crate) fn split_mark(text: &str) -> (String, usize, usize) {
    let before = text.split('«').next().unwrap();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    (text.replace('«', ""), line, column)
}

/// Checks that a config has one problem, at the marked place, with these words in its key, message
/// and remedy. Returns the problem.
pub(crate) fn the_problem(
    text: &str,
    load: impl Fn(&std::path::Path) -> Result<Vec<ConfigProblem>, Error>,
    [key, message, help]: [&str; 3],
) -> ConfigProblem {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.yaml");
    let (text, line, column) = split_mark(text);
    fs_err::write(&path, &text).unwrap();
    let problems = match load(&path) {
        Ok(warnings) => warnings,
        Err(error) => error.problems().to_vec(),
    };
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 1, "{all:#?}");
    let problem = problems.into_iter().next().unwrap();
    let expected = ValueOrigin::File { path, line, column };
    assert_eq!(problem.at, expected, "{problem}");
    assert_eq!(problem.key, key);
    assert!(problem.message.contains(message), "{problem}");
    assert!(problem.help.contains(help), "{problem}");
    problem
}

fn load_warnings(path: &std::path::Path) -> Result<Vec<ConfigProblem>, Error> {
    crate::load_native(path).map(|resolved| resolved.warnings)
}

#[rstest]
#[case(
    "backends:\n  crypto: «{allow: /dev/crypto0}\n",
    "backends.crypto.exec",
    "`exec` is missing",
    "exec: [/opt/company/probe]"
)]
#[case(
    "backends:\n  «Crypto: {exec: /probe}\n",
    "backends.Crypto",
    "not the name of a backend",
    "lower-case letters"
)]
#[case(
    "backends:\n  crypto: {exec: «[\"\"]}\n",
    "backends.crypto.exec",
    "is empty",
    "a program and its arguments"
)]
#[case(
    "backends:\n  crypto: {exec: /probe, allow: [/dev/crypto0, «/etc/shadow]}\n",
    "backends.crypto.allow[1]",
    "not a path under /dev/",
    "/dev/crypto*"
)]
#[case(
    "backends:\n  crypto: {exec: /probe, «alow: /dev/crypto0}\n",
    "backends.crypto.alow",
    "unknown key",
    "`allow`"
)]
#[case(
    "«kublet:\n  dir: /a\n",
    "kublet",
    "unknown key",
    "did you mean `kubelet`?"
)]
#[case("probe:\n  «perod: 3s\n", "probe.perod", "unknown key", "`period`")]
#[case(
    "probe:\n  «zzz: 3s\n",
    "probe.zzz",
    "unknown key",
    "period, callLimit, driverCallLimit"
)]
#[case("probe:\n  period: «soon\n", "probe.period", "`soon`", "500ms")]
#[case(
    "probe:\n  period: «48h\n",
    "probe.period",
    "between 1ms and 24h",
    "10s"
)]
#[case(
    "probe: «[1, 2]\n",
    "probe",
    "expected a map, found a list",
    "key: value"
)]
#[case(
    "hostRoot: /a\n«hostRoot: /b\n",
    "hostRoot",
    "line 1 already",
    "remove one"
)]
#[case("hostRoot: «\"\"\n", "hostRoot", "empty", "leave the key out")]
#[case(
    "kubelet:\n  register: «\"yes\"\n",
    "kubelet.register",
    "true or false",
    "without quotes"
)]
#[case(
    "backends: {nvidia: {mig: «mixd}}\n",
    "backends.nvidia.mig",
    "`mixd` is not one of none, single, mixed",
    "`mixed`"
)]
#[case(
    "kubelet:\n  dir: «/a/very/long/path/that/leaves/no/room/for/the/names/of/any/sockets/in/it\n",
    "kubelet.dir",
    "limit of 107",
    "at most 66 bytes"
)]
#[case("«driverPath: /a\n", "driverPath", "unknown key", "the keys here are")]
#[case("a: [1\nb«: 2\n", "", "not valid YAML", "brackets")]
#[case(
    "hostRoot: /a\n«---\nhostRoot: /b\n",
    "",
    "second YAML document",
    "remove"
)]
#[case("«just a text\n", "", "expected a map", "key: value")]
fn a_broken_file_is_refused_at_its_place(
    #[case] text: &str,
    #[case] key: &str,
    #[case] message: &str,
    #[case] help: &str,
) {
    let problem = the_problem(text, load_warnings, [key, message, help]);
    assert!(problem.is_error(), "{problem}");
}

#[test]
fn everything_that_is_wrong_is_told_at_once_in_the_order_of_the_file() {
    let text = "probe:\n  perod: 3s\n  callLimit: soon\nbackends: {nvidia: {mig: mixd}}\npools:\n  - name: a\n    \
                resource: gpu\n    sharing: {replicas: 4, methd: mps}\n  - resource: x\n";
    let error = crate::parse_native("ostler.yaml", text).unwrap_err();
    insta::assert_snapshot!(error);
}
