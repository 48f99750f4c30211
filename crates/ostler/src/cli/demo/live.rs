//! After the last step: the node stays up, and each change is printed as it happens.

use std::{collections::BTreeMap, io::Write, time::Duration};

use anyhow::bail;
use api::DevicePage;
use model::State;
use tokio::time::{Instant, interval};

use super::{
    super::sim::{
        kubelet::{EndSignals, KubeletEvents, read_input_lines, run_line},
        program_name, quoted,
    },
    stage::Stage,
    story::name,
    tell::{bad, good},
};

/// Interval of checks for changes.
const LOOK: Duration = Duration::from_millis(200);

/// Devices as last printed, by id: name, state and reason.
type Told = BTreeMap<String, (String, State, String)>;

/// Prints changes until a signal or the command `quit`.
///
/// # Errors
/// The agent has ended, or the output is closed.
pub(super) async fn watch(stage: &mut Stage, ends: &mut EndSignals) -> anyhow::Result<()> {
    let mut out = anstream::stdout();
    writeln!(out, "{}", invitation(stage))?;
    let begun = Instant::now();
    let mut news = KubeletEvents::new(stage.kubelet.clone());
    // The steps have printed the events so far.
    news.take_lines();
    let mut told = told(&stage.agent.devices().await?);
    let mut commands = read_input_lines()?;
    let mut ticks = interval(LOOK);
    loop {
        tokio::select! {
            () = ends.wait_for_signal() => break,
            Some(line) = commands.recv() => {
                if !run_line(&stage.kubelet, &line, &mut out).await? {
                    break;
                }
            }
            _ = ticks.tick() => {}
        }
        if let Some(status) = stage.agent.ended()? {
            bail!("the agent ended with {status}");
        }
        let mut changes = Vec::new();
        // An agent that does not answer now is asked again at the next tick.
        if let Ok(snapshot) = stage.agent.devices().await {
            changes = differences(&mut told, &snapshot);
        }
        changes.extend(news.take_lines());
        let seconds = begun.elapsed().as_secs_f64();
        for line in changes {
            writeln!(out, "{seconds:7.1} s  {line}")?;
        }
    }
    writeln!(out)?;
    Ok(())
}

fn invitation(stage: &Stage) -> String {
    let ostler = program_name();
    let node = quoted(stage.node.node_dir());
    let control = quoted(&stage.agent.control);
    let sim = format!("{ostler} sim --node {node}");
    let last = stage
        .node
        .list_gpus()
        .map_or(0, |gpus| gpus.len().saturating_sub(1));
    format!(
        "
The node stays up until Ctrl-C, and each change is told here. In a second terminal:

  {ostler} devices --control-socket {control}
  {sim} show
  {sim} lose {last}
  {sim} restore {last}
  {sim} hang nvmlDeviceGetTemperature --device {last}
  {sim} clear
  tail -f {log}

Here you can type `pod NAME RESOURCE=COUNT`, `remove NAME`, `restart` (the kubelet), `help`.
",
        log = quoted(&stage.agent.log),
    )
}

fn told(snapshot: &DevicePage) -> Told {
    let entry = |entry: &api::ListedDevice| {
        let verdict = &entry.verdict;
        let value = (name(entry), verdict.state, verdict.join_evidence());
        (entry.device.id.to_string(), value)
    };
    snapshot.devices.iter().map(entry).collect()
}

/// Describes each device that is new, gone, or has another verdict, in one line. `before` becomes
/// the new state.
fn differences(before: &mut Told, snapshot: &DevicePage) -> Vec<String> {
    let now = told(snapshot);
    let mut lines = Vec::new();
    for (id, (name, state, reason)) in &now {
        let judged = match state {
            State::Healthy => good("Healthy"),
            state => bad(&format!("{state}: {reason}")),
        };
        match before.get(id) {
            None => lines.push(format!("{name} is new ({id}), {judged}")),
            Some((_, was, why)) if (was, why) != (state, reason) => {
                lines.push(format!("{name} is {judged}"));
            }
            Some(_) => {}
        }
    }
    let gone = before.iter().filter(|(id, _)| !now.contains_key(*id));
    lines.extend(gone.map(|(id, (name, ..))| format!("{name} is not listed any more ({id})")));
    *before = now;
    lines
}
