//! Shell scripts as probes.

use std::{path::Path, time::Duration};

use model::{CardRef, Phase};
use probe::{
    BackendState,
    protocol::{Command, Configure, Scope},
    supervisor::{ChildRegistry, Limits, Orders, Program, SupervisorSettings},
};

use crate::agent::Agent;

/// Reads the settings and writes `hello`.
pub(crate) const HELLO: &str = r#"read -r settings
    echo '{"type":"hello","protocol":2,"probe":"test","version":"1"}'"#;
pub(crate) const BEAT: &str = r#"echo '{"type":"beat"}'"#;
pub(crate) const LIVE: &str = "while true; do echo '{\"type\":\"beat\"}'; sleep 0.1; done";

/// Reports the two cards 0000:01:00.0 and 0000:02:00.0, or those of them that the settings ask for.
pub(crate) const CARDS: &str = r#"
    card() { printf '{"id":"GPU-%s","vendor":"test","pci":"0000:0%s:00.0"}' $1 $1; }
    case "$settings" in
    *'"skip":["0000:01:00.0"]'*) echo '{"type":"report","devices":['$(card 2)'],"skipped":["0000:01:00.0"]}' ;;
    *'"only":"0000:01:00.0"'*) echo '{"type":"report","devices":['$(card 1)']}' ;;
    *) echo '{"type":"report","devices":['$(card 1),$(card 2)']}' ;;
    esac
"#;

/// Starts a supervisor that runs the script as its probe.
pub(crate) fn start(folder: &Path, script: &str) -> Agent {
    Agent::start(settings(folder, script))
}

/// Starts a supervisor with changed settings.
pub(crate) fn start_with(
    folder: &Path,
    script: &str,
    change: impl FnOnce(&mut SupervisorSettings),
) -> Agent {
    let mut settings = settings(folder, script);
    change(&mut settings);
    Agent::start(settings)
}

/// Returns settings that run the script, with short time limits.
pub(crate) fn settings(folder: &Path, script: &str) -> SupervisorSettings {
    let path = folder.join("probe.sh");
    fs_err::write(&path, script).expect("a temporary folder is writable");
    SupervisorSettings {
        name: "test".to_owned(),
        program: Program {
            path: "/bin/sh".into(),
            args: vec![path.display().to_string()],
        },
        allow: None,
        configure: Configure::default(),
        limits: Limits {
            call: Duration::from_secs(1),
            driver_call: Duration::from_secs(3),
            silence: Duration::from_secs(2),
            pause: Duration::from_millis(200),
            ..Limits::default()
        },
        children: ChildRegistry::default(),
        orders: Orders::default(),
    }
}

pub(crate) fn ids(sighting: &BackendState) -> Vec<&str> {
    sighting.devices.iter().map(|d| d.id.as_str()).collect()
}

pub(crate) fn runs_with_both(sighting: &BackendState) -> bool {
    sighting.backend.phase == Phase::Running && ids(sighting) == ["GPU-1", "GPU-2"]
}

/// Returns a script that logs the start and the end of each process.
pub(crate) fn logged(folder: &Path) -> String {
    let log = folder.join("log");
    format!(
        r#"{HELLO}
        echo "begin $settings" >> {log}
        trap 'echo "end $settings" >> {log}; exit 0' EXIT
        {CARDS}
        (while true; do {BEAT}; sleep 0.1; done) & beats=$!
        while read line; do case "$line" in *refresh*) {CARDS} ;; esac; done
        kill $beats"#,
        log = log.display(),
    )
}

pub(crate) fn log(folder: &Path) -> String {
    fs_err::read_to_string(folder.join("log")).unwrap_or_default()
}

/// Returns the settings of each process that began (`begin `) or ended (`end `), from the log.
pub(crate) fn logged_settings(folder: &Path, word: &str) -> Vec<Configure> {
    let log = log(folder);
    let lines = log.lines().filter_map(|line| line.strip_prefix(word));
    lines
        .map(
            |line| match serde_json::from_str(line).expect("a command") {
                Command::Configure(configure) => *configure,
                other => panic!("{other:?} is not the settings"),
            },
        )
        .collect()
}

/// Returns the scope without the test's card.
pub(crate) fn without_card() -> Scope {
    Scope::Skip(vec![card()])
}

pub(crate) fn card() -> CardRef {
    "0000:01:00.0".parse().expect("an address")
}

pub(crate) const LONG: Duration = Duration::from_secs(600);
