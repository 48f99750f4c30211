//! How this program starts itself again as a probe.

use std::time::Duration;

use config::Config;
use probe::{
    protocol::{CheckPeriods, Configure, DeepCheck},
    supervisor::{Children, Limits, Orders, Program, Settings},
};

/// The NVIDIA probe of this program, with a place where its processes are written down.
pub(crate) fn own_probe(config: &Config, children: Children, orders: Orders) -> Settings {
    Settings {
        name: "nvidia".to_owned(),
        program: Program {
            // The running program itself, even if its file was replaced meanwhile.
            path: "/proc/self/exe".into(),
            args: ["probe", "nvidia", "--child"].map(str::to_owned).into(),
        },
        allow: None,
        configure: configure(config),
        limits: limits(config),
        children,
        orders,
    }
}

/// Tells if the probe has to be another process with the second config.
pub(super) fn is_other(one: &Config, other: &Config) -> bool {
    configure(one) != configure(other) || limits(one) != limits(other)
}

/// The settings that a config gives the probe.
fn configure(config: &Config) -> Configure {
    let (probe, health) = (&config.probe, &config.health);
    let periods = &health.periods;
    let deep = periods.deep.filter(|_| !health.deep_command.is_empty());
    Configure {
        host_root: config.host_root.clone(),
        period: probe.period,
        checks: CheckPeriods {
            working: periods.working.unwrap_or_default(),
            performing: periods.performing.unwrap_or_default(),
            trend: periods.trend.unwrap_or_default(),
        },
        processes: config.pools.asks_who(),
        deep: deep.map(|period| DeepCheck {
            command: health.deep_command.clone(),
            period,
            limit: health.deep_limit,
            last_ago: Duration::ZERO,
        }),
        backend: config.backends.nvidia.probe.to_value(),
        ..Configure::default()
    }
}

fn limits(config: &Config) -> Limits {
    let probe = &config.probe;
    Limits {
        call: probe.call_limit,
        driver_call: probe.driver_call_limit,
        pause: probe.retry_pause,
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights are the agent's alone; the limit of the command is the probe's.
    #[test]
    fn another_limit_for_the_command_is_another_process_and_another_weight_is_not() {
        let config = |text| config::parse("ostler.yaml", text).unwrap().config;
        let one = config("health: {deepCommand: check, deepLimit: 90s}");
        let deep = configure(&one).deep.unwrap();
        assert_eq!(deep.limit, Duration::from_secs(90));
        let other = config("health: {deepCommand: check, deepLimit: 91s}");
        assert!(is_other(&one, &other));
        let same = "health: {deepCommand: check, deepLimit: 90s, weights: {deep: out}}";
        assert!(!is_other(&one, &config(same)));
        assert!(is_other(&one, &config("backends: {nvidia: {devPath: /d}}")));
        assert!(is_other(
            &Config::default(),
            &config("probe: {retryPause: 9s}")
        ));
    }

    /// The probe reports events; what they mean is for the agent to say.
    #[test]
    fn another_rule_for_nvidias_devices_is_the_same_process() {
        let text = "backends: {nvidia: {mig: single, imexRequired: true, cdi: {driverRoot: /d}, \
                    xids: {actions: {94: drain}}}}";
        let other = config::parse("ostler.yaml", text).unwrap().config;
        assert_ne!(other.backends, Config::default().backends);
        assert!(!is_other(&Config::default(), &other));
    }
}
