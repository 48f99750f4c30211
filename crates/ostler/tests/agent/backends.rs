//! Two backends on one node: NVIDIA's cards, and another company's cards with a probe program.

use std::{fmt::Write as _, os::unix::fs::PermissionsExt, path::PathBuf};

use api::DevicePage;
use model::Phase;
use rustix::process::Signal;
use serde_json::{Value, json};
use sim::{Effect, kubelet::Era};

use crate::{
    operator::said,
    process::{Agent, is_probe, signal, words},
    rig::{DGX, GPU, Rig, Running, eventually},
};

const CRYPTO: &str = "company.com/crypto";
/// Allocatable of the node with all devices healthy.
const BOTH: &[(&str, usize)] = &[(GPU, 8), (CRYPTO, 2)];

/// Probe program as a shell script. It reports the contents of the file `report` beside it whenever
/// they change, and makes the fault of the file `fault`. `yes` passes every limit, also on a busy machine.
const PROBE: &str = r#"#!/bin/sh
dir=${0%/*}
read -r settings
echo "$settings" >"$dir/settings"
env >"$dir/environment"
echo "a line for people"
echo '{"type":"hello","protocol":2,"probe":"crypto","version":"1"}' >&3
told=
while :; do
    case $(cat "$dir/fault" 2>/dev/null) in
    hang) sleep 1000 ;;
    flood) exec yes '{"type":"event","device":"nobody","at":"2026-01-01T00:00:00Z","code":"a:1"}' >&3 ;;
    nonsense) exec yes "$(printf '\377\376 nonsense')" >&3 ;;
    esac
    report=$(cat "$dir/report")
    [ "$report" = "$told" ] || printf '%s\n' "$report" >&3
    told=$report
    echo '{"type":"beat"}' >&3
    sleep 0.2
done
"#;

/// Folder of the probe program.
struct Company {
    dir: PathBuf,
}

// === impl Company ===

impl Company {
    /// Writes the probe program, and a config with both backends.
    fn on(rig: &Rig) -> Self {
        let dir = rig.path("company");
        fs_err::create_dir(&dir).unwrap();
        let program = dir.join("probe");
        fs_err::write(&program, PROBE).unwrap();
        fs_err::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let company = Self { dir };
        company.report(&[card("c0", "/dev/crypto0"), card("c1", "/dev/crypto1")]);
        company
    }

    fn config(&self) -> String {
        let mut config =
            "probe: {period: 500ms}\nhealth: {holdDown: 500ms, passes: 2}\n".to_owned();
        let program = self.dir.join("probe");
        let program = program.display();
        write!(
            config,
            "backends: {{crypto: {{exec: [{program}], allow: /dev/crypto*, settings: {{mode: fast}}}}}}\n\
             pools:\n\
             - {{name: gpu, select: {{vendor: nvidia}}, resource: {GPU}}}\n\
             - {{name: crypto, select: {{vendor: crypto}}, resource: {CRYPTO}, \
             handover: {{env: {{CRYPTO_CARD: '{{id}}'}}}}}}\n"
        )
        .unwrap();
        config
    }

    fn report(&self, devices: &[Value]) {
        let report = json!({"type": "report", "devices": devices});
        let part = self.dir.join("report.part");
        fs_err::write(&part, report.to_string()).unwrap();
        fs_err::rename(part, self.dir.join("report")).unwrap();
    }

    fn fault(&self, fault: &str) {
        fs_err::write(self.dir.join("fault"), fault).unwrap();
    }

    fn mend(&self) {
        fs_err::remove_file(self.dir.join("fault")).unwrap();
    }
}

fn card(id: &str, node: &str) -> Value {
    json!({
        "id": id, "vendor": "nvidia", "numa": 0,
        "attributes": {"productName": "CryptoCard"},
        "nodes": [{"path": node, "role": "own"}],
    })
}

fn phase(seen: &DevicePage, backend: &str) -> Option<Phase> {
    let mut backends = seen.backends.iter();
    let backend = backends.find(|one| one.name == backend);
    backend.map(|backend| backend.phase)
}

async fn start() -> (Running, Company) {
    let rig = Rig::new(DGX);
    let company = Company::on(&rig);
    let config = company.config();
    let running = Running {
        kubelet: rig.kubelet(Era::V1_37).await,
        agent: rig.agent(&config),
        rig,
    };
    running.offers(BOTH).await;
    (running, company)
}

/// Checks that every list of GPUs at the kubelet had all of them, healthy.
fn gpus_stood(running: &Running) {
    for list in running.kubelet.device_lists(GPU) {
        let healthy = list.devices.iter().filter(|d| d.health == "Healthy");
        assert_eq!(healthy.count(), 8);
    }
}

#[tokio::test]
async fn both_resources_are_served_and_pods_get_their_cards() {
    let (running, company) = start().await;
    let granted = running.admit(CRYPTO, 1).await.unwrap();
    let [node] = &granted.response.devices[..] else {
        panic!("{:?}", granted.response);
    };
    assert!(node.host_path.starts_with("/dev/crypto"), "{node:?}");
    let card = &granted.response.envs["CRYPTO_CARD"];
    assert_eq!(node.host_path.replace("/dev/crypto", "c"), *card);
    let settings = fs_err::read_to_string(company.dir.join("settings")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    assert_eq!(settings["backend"], json!({"mode": "fast"}));
    gpus_stood(&running);
}

#[tokio::test]
async fn a_probe_of_others_has_few_variables_and_no_way_to_more_rights() {
    let (running, company) = start().await;
    let environment = fs_err::read_to_string(company.dir.join("environment")).unwrap();
    let names: Vec<&str> = environment
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .filter(|name| !matches!(*name, "PWD" | "SHLVL" | "_" | "OLDPWD"))
        .collect();
    let known = ["PATH", "HOME", "LANG", "TZ", "NODE_NAME"];
    assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
    let probe = probe(&running.agent, &company).unwrap();
    let status = fs_err::read_to_string(format!("/proc/{probe}/status")).unwrap();
    let has = |line: &str| status.lines().any(|own| own.replace('\t', " ") == line);
    assert!(has("NoNewPrivs: 1"), "{status}");
    assert!(has("CapEff: 0000000000000000"), "{status}");
    assert!(has("CapPrm: 0000000000000000"), "{status}");
}

/// Pid of the company's probe, if it runs.
fn probe(agent: &Agent, company: &Company) -> Option<u32> {
    let program = company.dir.join("probe").display().to_string();
    let mut children = agent.children().into_iter();
    // `ostler probe exec` becomes the program by execve(2): before that it is no process of it.
    children.find(|pid| !is_probe(*pid) && words(*pid, "cmdline").contains(&program))
}

#[tokio::test]
async fn a_card_with_a_foreign_node_is_left_out_and_said_so() {
    let (running, company) = start().await;
    company.report(&[card("c0", "/dev/crypto0"), card("c1", "/dev/mem")]);
    let what = "the card is left out";
    running
        .agent
        .shows(what, |seen| {
            let mut backends = seen.backends.iter();
            backends.any(|backend| backend.message.contains("/dev/mem"))
        })
        .await;
    assert!(running.admit(CRYPTO, 2).await.is_err());
    gpus_stood(&running);
}

#[tokio::test]
async fn one_probe_that_is_killed_hangs_or_floods_leaves_the_other_vendor_alone() {
    let (running, company) = start().await;
    let agent = &running.agent;
    let killed = probe(agent, &company).unwrap();
    signal(killed, Signal::KILL);
    eventually("another probe runs", || {
        probe(agent, &company).is_some_and(|pid| pid != killed)
    })
    .await;
    running.offers(BOTH).await;
    for fault in ["hang", "flood", "nonsense"] {
        company.fault(fault);
        let what = format!("{fault}: the backend fails");
        let seen = agent
            .shows(&what, |seen| phase(seen, "crypto") == Some(Phase::Failing))
            .await;
        assert_eq!(phase(&seen, "nvidia"), Some(Phase::Running), "{fault}");
        running.admit(GPU, 1).await.unwrap();
        company.mend();
        agent
            .shows("it runs", |seen| {
                phase(seen, "crypto") == Some(Phase::Running)
            })
            .await;
        running.offers(BOTH).await;
    }
    gpus_stood(&running);
}

#[tokio::test]
async fn a_backend_that_the_config_loses_takes_its_devices_with_it() {
    let (running, company) = start().await;
    let config = company
        .config()
        .replace("crypto: {exec", "crypto: {enabled: false, exec");
    running.rewrite(&config);
    running
        .agent
        .shows("the backend is gone", |seen| {
            phase(seen, "crypto").is_none()
        })
        .await;
    eventually("no crypto card is offered", || {
        running.kubelet.resource_devices(CRYPTO).is_empty()
    })
    .await;
    running.rewrite(&company.config());
    running.offers(BOTH).await;
    gpus_stood(&running);
}

/// A backend that is off cannot close handles, and has none.
#[tokio::test]
async fn a_release_outlives_a_backend_that_is_turned_off_and_on_and_a_restart_meanwhile() {
    let (mut running, company) = start().await;
    said(&running, &["release", "--all", "--for", "10m"]).await;
    let off = company
        .config()
        .replace("crypto: {exec", "crypto: {enabled: false, exec");
    running.rewrite(&off);
    let gone = |seen: &DevicePage| phase(seen, "crypto").is_none();
    running.agent.shows("the backend is gone", gone).await;
    said(&running, &["release", "--all", "--for", "10m"]).await;
    running.agent.stop().await;
    running.agent = Agent::start(&running.rig, "ostler");
    running.rewrite(&company.config());
    let text = running
        .agent
        .shows("the backend is back, and released", |seen| {
            let mut backends = seen.backends.iter();
            backends.any(|one| one.name == "crypto" && one.message.starts_with("released until"))
        })
        .await;
    assert_eq!(probe(&running.agent, &company), None, "{text:?}");
    said(&running, &["resume", "--all"]).await;
    running.offers(BOTH).await;
}

/// The other backend, whose driver hangs while it is opened, does not hold the decision up.
#[tokio::test]
async fn a_program_that_does_not_start_ends_the_agent_where_the_config_says_so() {
    let rig = Rig::new(DGX);
    rig.node
        .set_fault("nvmlInit", None, Effect::Hang { millis: None })
        .unwrap();
    let config = "backends:\n  nvidia: {failOnInitError: true}\n  \
                  crypto: {exec: [/nowhere/probe], failOnInitError: true}\n";
    let mut agent = rig.agent(config);
    let status = agent.ended().await;
    assert_eq!(status.code(), Some(1));
    let log = agent.log();
    assert!(
        log.contains("the probe of backend crypto does not start"),
        "{log}"
    );
}
