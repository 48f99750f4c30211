//! Checks of the tier *performing*: the device works as fast as it can.

use config::Thresholds;
use model::Performing;

use super::{CheckResult, ReadingCounters};
use crate::Check;

pub(super) fn check_performing(
    values: &Performing,
    counters: &mut ReadingCounters,
    thresholds: &Thresholds,
) -> Vec<(Check, CheckResult)> {
    let errors = counters.compare_links(values.link_errors, thresholds);
    vec![
        (Check::Throttled, throttled(values.throttled.as_deref())),
        (Check::PcieWidth, width(values)),
        (Check::PcieGeneration, generation(values, thresholds)),
        (Check::LinkErrors, errors),
        (Check::LinksDown, check_links_down(values.links_down)),
        (Check::Temperature, check_temperature(values, thresholds)),
    ]
}

/// Checks the reasons for reduced clocks. A power cap set by software is no fault: the device works
/// as configured.
fn throttled(reasons: Option<&[String]>) -> CheckResult {
    let Some(reasons) = reasons else {
        return CheckResult::Unread;
    };
    let counts = |reason: &&String| {
        let letters = reason.chars().filter(|c| c.is_ascii_alphanumeric());
        let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
        // Names of reasons differ between drivers and vendors in case and separators, such as
        // `hw_slowdown` and `HwSlowdown`.
        ["hwslowdown", "thermal", "powerbrake"]
            .iter()
            .any(|word| name.contains(word))
    };
    let reasons: Vec<&str> = reasons.iter().filter(counts).map(String::as_str).collect();
    match reasons.as_slice() {
        [] => CheckResult::Passed,
        reasons => CheckResult::Failed(format!(
            "the hardware holds the clocks down: {}",
            reasons.join(", ")
        )),
    }
}

/// Checks the lanes of the PCIe link.
fn width(values: &Performing) -> CheckResult {
    match (values.pcie_width, values.pcie_width_max) {
        (Some(width), Some(max)) if width < max => {
            CheckResult::Failed(format!("the PCIe link has {width} of {max} lanes"))
        }
        (Some(_), Some(_)) => CheckResult::Passed,
        _ => CheckResult::Unread,
    }
}

/// Checks the generation of the PCIe link, on a busy device only.
fn generation(values: &Performing, thresholds: &Thresholds) -> CheckResult {
    // A driver lowers the generation of an idle link to save power (nvidia-smi manual,
    // `pcie.link.gen.current`: "may be reduced when the GPU is not in use").
    let busy = values.utilization_percent.unwrap_or(0) >= thresholds.busy_percent;
    match (values.pcie_generation, values.pcie_generation_max) {
        (Some(now), Some(max)) if now >= max => CheckResult::Passed,
        (Some(now), Some(max)) if busy => CheckResult::Failed(format!(
            "the PCIe link is at generation {now} of {max} while the device is busy"
        )),
        (Some(_), Some(_)) => CheckResult::Undecided,
        _ => CheckResult::Unread,
    }
}

/// Checks the direct links to other cards.
fn check_links_down(down: Option<u32>) -> CheckResult {
    match down {
        Some(0) => CheckResult::Passed,
        Some(1) => CheckResult::Failed("1 link to another card is down".to_owned()),
        Some(down) => CheckResult::Failed(format!("{down} links to other cards are down")),
        None => CheckResult::Unread,
    }
}

/// Checks the temperature against the limit minus a margin. The limit is where the hardware slows
/// down, or else where it shuts down.
fn check_temperature(values: &Performing, thresholds: &Thresholds) -> CheckResult {
    let limit = values.slowdown_celsius.or(values.shutdown_celsius);
    let (Some(now), Some(limit)) = (values.temperature_celsius, limit) else {
        return CheckResult::Unread;
    };
    if now < limit.saturating_sub(thresholds.temperature_margin) {
        return CheckResult::Passed;
    }
    CheckResult::Failed(format!("{now} °C, and the limit is {limit} °C"))
}
