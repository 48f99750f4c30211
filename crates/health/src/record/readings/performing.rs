//! Checks of the tier *performing*: the device works as fast as it can.

use config::Thresholds;
use model::Performing;

use super::{Counters, Finding};
use crate::Check;

pub(super) fn findings(
    values: &Performing,
    counters: &mut Counters,
    thresholds: &Thresholds,
) -> Vec<(Check, Finding)> {
    let errors = counters.compare_links(values.link_errors, thresholds);
    vec![
        (Check::Throttled, throttled(values.throttled.as_deref())),
        (Check::PcieWidth, width(values)),
        (Check::PcieGeneration, generation(values, thresholds)),
        (Check::LinkErrors, errors),
        (Check::LinksDown, links(values.links_down)),
        (Check::Temperature, temperature(values, thresholds)),
    ]
}

/// Checks the reasons for reduced clocks. A power cap set by software is no fault: the device works
/// as configured.
fn throttled(reasons: Option<&[String]>) -> Finding {
    let Some(reasons) = reasons else {
        return Finding::Unread;
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
        [] => Finding::Good,
        reasons => Finding::Bad(format!(
            "the hardware holds the clocks down: {}",
            reasons.join(", ")
        )),
    }
}

/// Checks the lanes of the PCIe link.
fn width(values: &Performing) -> Finding {
    match (values.pcie_width, values.pcie_width_max) {
        (Some(width), Some(max)) if width < max => {
            Finding::Bad(format!("the PCIe link has {width} of {max} lanes"))
        }
        (Some(_), Some(_)) => Finding::Good,
        _ => Finding::Unread,
    }
}

/// Checks the generation of the PCIe link, on a busy device only.
fn generation(values: &Performing, thresholds: &Thresholds) -> Finding {
    // A driver lowers the generation of an idle link to save power (nvidia-smi manual,
    // `pcie.link.gen.current`: "may be reduced when the GPU is not in use").
    let busy = values.utilization_percent.unwrap_or(0) >= thresholds.busy_percent;
    match (values.pcie_generation, values.pcie_generation_max) {
        (Some(now), Some(max)) if now >= max => Finding::Good,
        (Some(now), Some(max)) if busy => Finding::Bad(format!(
            "the PCIe link is at generation {now} of {max} while the device is busy"
        )),
        (Some(_), Some(_)) => Finding::Open,
        _ => Finding::Unread,
    }
}

/// Checks the direct links to other cards.
fn links(down: Option<u32>) -> Finding {
    match down {
        Some(0) => Finding::Good,
        Some(1) => Finding::Bad("1 link to another card is down".to_owned()),
        Some(down) => Finding::Bad(format!("{down} links to other cards are down")),
        None => Finding::Unread,
    }
}

/// Checks the temperature against the limit minus a margin. The limit is where the hardware slows
/// down, or else where it shuts down.
fn temperature(values: &Performing, thresholds: &Thresholds) -> Finding {
    let limit = values.slowdown_celsius.or(values.shutdown_celsius);
    let (Some(now), Some(limit)) = (values.temperature_celsius, limit) else {
        return Finding::Unread;
    };
    if now < limit.saturating_sub(thresholds.temperature_margin) {
        return Finding::Good;
    }
    Finding::Bad(format!("{now} °C, and the limit is {limit} °C"))
}
