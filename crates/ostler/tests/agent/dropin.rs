//! The agent in the place of NVIDIA's device plugin: with its name, flags, variables and config file.

mod extras;
mod handover;
mod mig;
mod platform;
mod sharing;

use std::{path::PathBuf, process::Command};

use model::Phase;
use rstest::rstest;
use sim::kubelet::Era;

use crate::{
    process::{Agent, LOG, control, isolated, ostler},
    rig::{DGX, GPU, MIG, Rig, Running},
};

/// Name of NVIDIA's program.
const PLUGIN: &str = "nvidia-device-plugin";
/// NVIDIA's variables that the tests use. The tests inherit none of them.
const VARIABLES: [&str; 8] = [
    "CONFIG_FILE",
    "DEVICE_LIST_STRATEGY",
    "FAIL_ON_INIT_ERROR",
    "IMEX_CHANNEL_IDS",
    "IMEX_REQUIRED",
    "KUBELET_SOCKET",
    "MIG_STRATEGY",
    "PASS_DEVICE_SPECS",
];

/// Arguments, variables and config file of the plugin.
#[derive(Default)]
struct Plugin<'a> {
    args: &'a [&'a str],
    variables: &'a [(&'a str, &'a str)],
    /// Contents of the config file, if there is one.
    file: Option<&'a str>,
}

// === impl Plugin ===

impl<'a> Plugin<'a> {
    fn args(args: &'a [&'a str]) -> Self {
        Self {
            args,
            ..Self::default()
        }
    }

    fn variable(variable: &'a [(&'a str, &'a str)]) -> Self {
        Self {
            variables: variable,
            ..Self::default()
        }
    }

    fn file(file: &'a str) -> Self {
        Self {
            file: Some(file),
            ..Self::default()
        }
    }

    /// Starts a kubelet, and the plugin by the name of a link.
    async fn on(self, profile: &str) -> Running {
        self.on_prepared(profile, |_| ()).await
    }

    /// Starts a kubelet and the plugin, on a node that `prepare` changes first.
    async fn on_prepared(self, profile: &str, prepare: impl FnOnce(&Rig)) -> Running {
        let rig = Rig::new(profile);
        prepare(&rig);
        let kubelet = rig.kubelet(Era::V1_37).await;
        let agent = self.start(&rig);
        Running {
            agent,
            kubelet,
            rig,
        }
    }

    /// Starts the plugin by the name of a link.
    fn start(self, rig: &Rig) -> Agent {
        let link = rig.path(PLUGIN);
        fs_err::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ostler"), &link).unwrap();
        self.by(rig, isolated(Command::new(link)))
    }

    /// Starts a command that runs the plugin.
    fn by(self, rig: &Rig, mut command: Command) -> Agent {
        for name in VARIABLES {
            command.env_remove(name);
        }
        let ours: [(&str, PathBuf); 6] = [
            ("KUBELET_SOCKET", rig.kubelet_dir().join("kubelet.sock")),
            ("OSTLER_POD_RESOURCES_SOCKET", rig.pod_resources()),
            ("OSTLER_HOST_ROOT", rig.node.host_root()),
            ("OSTLER_NVML_LIBRARY", rig.node.driver_library()),
            ("OSTLER_MPS_PATH", rig.path("mps")),
            ("OSTLER_CONTROL_SOCKET", control(rig, "ostler")),
        ];
        command.envs(ours).env("OSTLER_LOG", LOG);
        if let Some(text) = self.file {
            let file = rig.path("ostler.yaml");
            fs_err::write(&file, text).unwrap();
            command.arg("--config-file").arg(file);
        }
        command.args(self.args).envs(self.variables.iter().copied());
        Agent::launch(rig, "ostler", command)
    }
}

#[tokio::test]
async fn a_link_of_nvidias_name_is_nvidias_plugin() {
    let running = Plugin::default().on(DGX).await;
    running.offers(&[(GPU, 8)]).await;
    assert_eq!(running.borrow(GPU, 3).await.len(), 3);
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn the_command_of_nvidias_name_is_nvidias_plugin() {
    let rig = Rig::new(DGX);
    let kubelet = rig.kubelet(Era::V1_37).await;
    let mut command = ostler();
    command.arg(PLUGIN);
    let agent = Plugin::args(&["--mig-strategy=mixed"]).by(&rig, command);
    let running = Running {
        agent,
        kubelet,
        rig,
    };
    running.offers(&[(GPU, 8)]).await;
}

/// The node has one whole card. With the strategy `none` all eight cards count.
#[rstest]
#[case::nothing_said(&[], &[], None, false)]
#[case::file(&[], &[], Some("mixed"), true)]
#[case::variable_over_file(&[], &[("MIG_STRATEGY", "none")], Some("mixed"), false)]
#[case::flag_over_variable(&["--mig-strategy", "mixed"], &[("MIG_STRATEGY", "none")], None, true)]
#[case::flag_over_both(&["--mig-strategy=none"], &[("MIG_STRATEGY", "mixed")], Some("mixed"), false)]
#[tokio::test]
async fn flags_stand_above_variables_and_variables_above_the_file(
    #[case] args: &[&str],
    #[case] variables: &[(&str, &str)],
    #[case] file: Option<&str>,
    #[case] mixed: bool,
) {
    let file = file.map(|mig| format!("version: v1\nflags:\n  migStrategy: {mig}\n"));
    let plugin = Plugin {
        args,
        variables,
        file: file.as_deref(),
    };
    let running = plugin.on(MIG).await;
    match mixed {
        true => running.offers(&mig::MIXED).await,
        false => running.offers(&[(GPU, 8)]).await,
    }
}

#[tokio::test]
async fn a_key_that_is_not_known_is_told_and_does_no_harm() {
    let file = "version: v1\nflags:\n  migStrategi: mixed\nextra: {a: 1}\n";
    let running = Plugin::file(file).on(DGX).await;
    running.offers(&[(GPU, 8)]).await;
    for word in ["ostler.yaml:3:3", "migStrategi", "ostler.yaml:4:1", "extra"] {
        running.agent.logged(word).await;
    }
}

#[rstest]
#[case::flag(Plugin::args(&["--fail-on-init-error"]))]
#[case::variable(Plugin::variable(&[("FAIL_ON_INIT_ERROR", "true")]))]
#[case::file(Plugin::file("version: v1\nflags: {failOnInitError: true}\n"))]
#[tokio::test]
async fn without_a_driver_it_ends_with_the_reason_where_that_is_asked_for(
    #[case] plugin: Plugin<'_>,
) {
    let rig = Rig::new(DGX);
    rig.node.unplug_driver().unwrap();
    let mut agent = plugin.start(&rig);
    let status = agent.ended().await;
    assert_eq!(status.code(), Some(1));
    let log = agent.log();
    let last = log.lines().last().unwrap();
    assert!(last.starts_with("ostler: "), "{last}");
    assert!(last.contains("libnvidia-ml.so.1"), "{last}");
    assert!(last.contains("failOnInitError"), "{last}");
}

#[tokio::test]
async fn a_driver_that_goes_later_does_not_end_it_even_so() {
    let running = Plugin::args(&["--fail-on-init-error=true"]).on(DGX).await;
    running.offers(&[(GPU, 8)]).await;
    running.rig.node.unplug_driver().unwrap();
    running.offers(&[]).await;
    running.rig.node.plug_driver().unwrap();
    running.offers(&[(GPU, 8)]).await;
    let status = running.agent.status().await.unwrap();
    assert_eq!(status["pid"], running.agent.pid());
}

#[rstest]
#[case::nothing_said(Plugin::default())]
#[case::said_no(Plugin::args(&["--fail-on-init-error=false"]))]
#[tokio::test]
async fn without_a_driver_it_waits_and_serves_when_there_is_one(#[case] plugin: Plugin<'_>) {
    let rig = Rig::new(DGX);
    rig.node.unplug_driver().unwrap();
    let kubelet = rig.kubelet(Era::V1_37).await;
    let agent = plugin.start(&rig);
    let without = agent
        .shows("no driver", |seen| {
            seen.backends.iter().any(|b| b.phase == Phase::NoDriver)
        })
        .await;
    assert_eq!(without.devices, []);
    rig.node.plug_driver().unwrap();
    let running = Running {
        agent,
        kubelet,
        rig,
    };
    running.offers(&[(GPU, 8)]).await;
}

#[tokio::test]
async fn with_an_empty_socket_it_serves_and_registers_nowhere() {
    let plugin = Plugin {
        args: &["--kubelet-socket="],
        variables: &[],
        file: None,
    };
    let rig = Rig::new(DGX);
    let kubelet = rig.kubelet(Era::V1_37).await;
    let dir = rig.kubelet_dir();
    let mut command = ostler();
    command.arg(PLUGIN).env("OSTLER_KUBELET_DIR", dir);
    let agent = plugin.by(&rig, command);
    let status = agent
        .says("a socket", |status| {
            status["resources"][0]["socket"].is_string()
        })
        .await;
    let socket = status["resources"][0]["socket"].as_str().unwrap();
    assert!(rig.kubelet_dir().join(socket).exists(), "{socket}");
    assert_eq!(kubelet.registrations(), []);
}

#[test]
fn the_version_is_told_as_nvidias_program_tells_its_own() {
    let output = ostler().args([PLUGIN, "--version"]).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let version = env!("CARGO_PKG_VERSION");
    let [first, second] = lines[..] else {
        panic!("{text}");
    };
    assert_eq!(first, format!("NVIDIA Device Plugin version {version}"));
    assert!(second.starts_with("commit: "), "{second}");
}

#[rstest]
#[case::flag(&["--nope"], None)]
#[case::variable(&[], Some(("MIG_STRATEGY", "many")))]
#[case::file(&["--config-file=/nowhere/config.yaml"], None)]
fn whatever_is_wrong_ends_it_with_nvidias_status(
    #[case] args: &[&str],
    #[case] variable: Option<(&str, &str)>,
) {
    let mut command = ostler();
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.arg(PLUGIN).args(args).envs(variable);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!output.stderr.is_empty());
}
