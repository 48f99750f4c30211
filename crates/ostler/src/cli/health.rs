//! `ostler health`: shows verdicts, their causes, and their history.

use std::{io::Write, process::ExitCode};

use anyhow::anyhow;
use api::{DeviceHealth, HealthPage};
use model::{Cause, Device, Entry, Snapshot, Transition};

use super::{
    control::ControlFlags,
    table::{OutputFormat, new_table, serialize_output},
};

/// Show the health of each device: verdict, causes, their start, and what ends them.
///
/// For one device, show its history too: the last changes, over restarts of the agent.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct HealthArgs {
    /// UUID or the beginning of one, index, or PCI address [default: all devices]
    device: Option<String>,

    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: OutputFormat,

    #[command(flatten)]
    control: ControlFlags,
}

// === impl HealthArgs ===

impl HealthArgs {
    pub(super) fn run_health(self) -> anyhow::Result<ExitCode> {
        super::block_on(self.show_health())??;
        Ok(ExitCode::SUCCESS)
    }

    async fn show_health(self) -> anyhow::Result<()> {
        let mut health: HealthPage = self.control.read_page(api::HEALTH).await?;
        if let Some(device) = &self.device {
            narrow(&mut health, device)?;
        }
        let output = match self.output {
            OutputFormat::Table if self.device.is_some() => format_details(&health),
            OutputFormat::Table => overview(&health),
            OutputFormat::Json => serialize_output(&health, false)?,
            OutputFormat::Yaml => serialize_output(&health, true)?,
        };
        std::io::stdout().write_all(output.as_bytes())?;
        Ok(())
    }
}

/// Removes all devices but one.
///
/// # Errors
/// No device or several devices match.
fn narrow(health: &mut HealthPage, device: &str) -> anyhow::Result<()> {
    let entry = |judged: &DeviceHealth| {
        Entry::from(Device {
            index: judged.index,
            pci: judged.pci,
            ..Device::bare_card("", judged.device.to_string())
        })
    };
    let snapshot = Snapshot {
        devices: health.devices.iter().map(entry).collect(),
        ..Snapshot::empty_at(jiff::Timestamp::UNIX_EPOCH)
    };
    let found = api::find_device(&snapshot, device)
        .map_err(|error| anyhow!("{error}: `ostler devices` lists them"))?;
    let found = found.device.id.clone();
    health.devices.retain(|judged| judged.device == found);
    health.history.retain(|change| change.device == found);
    Ok(())
}

/// Table with a line for each cause and warning.
fn overview(health: &HealthPage) -> String {
    if health.devices.is_empty() {
        return "no devices\n".to_owned();
    }
    let mut rows = new_table(&[
        "INDEX",
        "ID",
        "HEALTH",
        "CAUSE",
        "EVIDENCE",
        "SINCE",
        "ENDS WHEN",
    ]);
    let mut devices: Vec<&DeviceHealth> = health.devices.iter().collect();
    devices.sort_by_key(|judged| (judged.pci, judged.index));
    for judged in devices {
        let index = judged
            .index
            .map_or_else(|| "-".to_owned(), |i| i.to_string());
        let mut left = [
            index,
            judged.device.to_string(),
            judged.verdict.state.to_string(),
        ];
        let lines = cause_cells(judged);
        if lines.is_empty() {
            rows.add_row(left);
            continue;
        }
        for line in lines {
            rows.add_row(left.into_iter().chain(line));
            left = [const { String::new() }; 3];
        }
    }
    rows.trim_fmt() + "\n"
}

/// Lines of a device, one for each cause and warning. Cells: cause, evidence, since, ends when.
fn cause_cells(judged: &DeviceHealth) -> Vec<[String; 4]> {
    let line = |cause: &Cause, kind: String| {
        [
            kind,
            cause.evidence.clone(),
            format!("{:.0}", cause.since),
            cause.ends_when.clone(),
        ]
    };
    let verdict = &judged.verdict;
    let causes = verdict.causes.iter();
    let causes = causes.map(|cause| line(cause, format!("{:?}", cause.kind)));
    let warnings = verdict.warnings.iter();
    let warnings = warnings.map(|cause| line(cause, format!("{:?} (warning)", cause.kind)));
    causes.chain(warnings).collect()
}

/// Text for one device: its causes, the checks that it does not support, its history.
fn format_details(health: &HealthPage) -> String {
    let mut page = String::new();
    for judged in &health.devices {
        page += &format!("{}: {}\n", judged.device, judged.verdict.state);
        for [cause, evidence, since, ends_when] in cause_cells(judged) {
            page +=
                &format!("  {cause}: {evidence}\n    since {since}\n    ends when {ends_when}\n");
        }
        for unsupported in &judged.unsupported {
            let tier = format!("{:?}", unsupported.tier).to_lowercase();
            let checks = unsupported.checks.join(", ");
            page += &format!("  not supported, of the tier {tier}: {checks}\n");
        }
    }
    page += "history:\n";
    if health.history.is_empty() {
        page += "  nothing has changed\n";
    }
    for change in &health.history {
        page += &format!("  {}\n", story(change));
    }
    page
}

/// Describes a change of a verdict in one line.
fn story(change: &Transition) -> String {
    let evidence = |causes: &[Cause]| {
        let all: Vec<&str> = causes.iter().map(|cause| cause.evidence.as_str()).collect();
        all.join("; ")
    };
    let mut line = match change.from == change.to {
        true => format!("{:.0} {}", change.at, change.to),
        false => format!("{:.0} {} -> {}", change.at, change.from, change.to),
    };
    if !change.began.is_empty() {
        line += &format!(": {}", evidence(&change.began));
    }
    if !change.ended.is_empty() {
        line += &format!(" (ended: {})", evidence(&change.ended));
    }
    line
}

#[cfg(test)]
mod tests {
    use api::UnsupportedChecks;
    use jiff::Timestamp;
    use model::{CauseKind, State, Tier, Verdict};

    use super::*;

    fn health() -> HealthPage {
        let cause = |kind, evidence: &str| Cause {
            kind,
            evidence: evidence.to_owned(),
            since: Timestamp::UNIX_EPOCH,
            ends_when: "the card was reset".to_owned(),
        };
        let lost = cause(CauseKind::Event, "XID 79 (fell off the bus)");
        let sick = DeviceHealth {
            device: "GPU-1".into(),
            index: "1".parse().ok(),
            pci: None,
            verdict: Verdict {
                state: State::Unhealthy,
                causes: vec![lost.clone()],
                warnings: vec![cause(CauseKind::Throttled, "it slows down")],
            },
            unsupported: vec![UnsupportedChecks {
                tier: Tier::Working,
                checks: vec!["fabric".to_owned()],
            }],
        };
        let well = DeviceHealth {
            device: "GPU-0".into(),
            index: "0".parse().ok(),
            verdict: Verdict::default(),
            unsupported: Vec::new(),
            ..sick.clone()
        };
        HealthPage {
            devices: vec![well, sick],
            history: vec![Transition {
                at: Timestamp::UNIX_EPOCH,
                device: "GPU-1".into(),
                from: State::Healthy,
                to: State::Unhealthy,
                began: vec![lost],
                ended: Vec::new(),
            }],
        }
    }

    #[test]
    fn the_overview_has_a_line_for_each_cause() {
        insta::assert_snapshot!(overview(&health()), @r"
        INDEX  ID     HEALTH     CAUSE                EVIDENCE                   SINCE                 ENDS WHEN
        0      GPU-0  Healthy
        1      GPU-1  Unhealthy  Event                XID 79 (fell off the bus)  1970-01-01T00:00:00Z  the card was reset
                                 Throttled (warning)  it slows down              1970-01-01T00:00:00Z  the card was reset
        ");
    }

    #[test]
    fn one_device_is_shown_with_its_history() {
        let mut one = health();
        narrow(&mut one, "1").unwrap();
        insta::assert_snapshot!(format_details(&one), @r"
        GPU-1: Unhealthy
          Event: XID 79 (fell off the bus)
            since 1970-01-01T00:00:00Z
            ends when the card was reset
          Throttled (warning): it slows down
            since 1970-01-01T00:00:00Z
            ends when the card was reset
          not supported, of the tier working: fabric
        history:
          1970-01-01T00:00:00Z Healthy -> Unhealthy: XID 79 (fell off the bus)
        ");
        assert!(narrow(&mut health(), "7").is_err());
    }
}
