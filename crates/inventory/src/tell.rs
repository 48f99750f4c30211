//! Log lines: one for each event that an operator should know of.

use model::{Backend, Cause, PciAddress, Phase, Snapshot, State, Transition, Verdict};
use tracing::field::display;

/// Logs each backend whose phase or message changed.
pub(super) fn log_backends(before: &Snapshot, after: &Snapshot) {
    for backend in &after.backends {
        let same = |old: &&Backend| {
            old.name == backend.name && old.phase == backend.phase && old.message == backend.message
        };
        if before.backends.iter().any(|old| same(&old)) {
            continue;
        }
        let Backend {
            name,
            phase,
            message,
            ..
        } = backend;
        match phase {
            Phase::Starting => tracing::debug!(backend = name, ?phase, "{message}"),
            Phase::Running if message.is_empty() => {
                let devices = after.devices.len();
                tracing::info!(backend = name, ?phase, devices, "the probe reports");
            }
            _ => tracing::warn!(backend = name, ?phase, "{message}"),
        }
    }
}

/// Logs a change of a verdict, with its new causes, or else the causes that remain, or else those
/// that ended.
pub(super) fn transition(transition: &Transition, verdict: &Verdict, pci: Option<PciAddress>) {
    let Transition {
        device,
        from,
        to,
        began,
        ended,
        ..
    } = transition;
    let standing = &verdict.causes;
    let causes = [began, standing, ended];
    let causes = causes.into_iter().find(|causes| !causes.is_empty());
    let join = |of: &dyn Fn(&Cause) -> String| {
        let all: Vec<String> = causes.into_iter().flatten().map(of).collect();
        all.join("; ")
    };
    let cause = join(&|cause| format!("{:?}", cause.kind));
    let evidence = join(&|cause| cause.evidence.clone());
    let ends_when = join(&|cause| cause.ends_when.clone());
    let pci = pci.map(display);
    match (from, to, began.is_empty()) {
        (State::Healthy, State::Healthy, false) => tracing::warn!(
            %device, pci, %from, %to, cause, evidence, ends_when, "a device should be looked at"
        ),
        (State::Healthy, State::Healthy, true) => tracing::info!(
            %device, pci, %from, %to, cause, evidence, "a warning of a device ended"
        ),
        (_, State::Healthy, _) => tracing::info!(
            %device, pci, %from, %to, cause, evidence, "the device is healthy again"
        ),
        _ => tracing::warn!(
            %device, pci, %from, %to, cause, evidence, ends_when, "a device is not healthy"
        ),
    }
}
