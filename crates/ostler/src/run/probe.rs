//! The probes of a config: the backends that it has, and how this program starts their processes.

use config::{Backends, Config};
use probe::{
    protocol::{CheckPeriods, Configure},
    supervisor::{Children, Limits, Orders, Program, Settings},
};
use serde_json::{Value, json};

/// The names of the backends that run.
pub(crate) fn backends(config: &Config) -> Vec<String> {
    let startups = config.backends.startups();
    let enabled = startups.filter(|(_, startup)| startup.enabled);
    enabled.map(|(name, _)| name.to_owned()).collect()
}

/// The probe of a backend, with a place where its processes are written down. `log` has the
/// arguments that make it log as the agent does.
pub(crate) fn probe_settings(
    name: &str,
    config: &Config,
    log: &[String],
    children: Children,
    orders: Orders,
) -> Settings {
    let program = config.backends.programs.get(name);
    let mut args: Vec<String> = match program {
        None => ["probe", name, "--child"].map(str::to_owned).into(),
        Some(_) => ["probe", "exec"].map(str::to_owned).into(),
    };
    args.extend_from_slice(log);
    if let Some(program) = program {
        args.push("--".to_owned());
        args.extend_from_slice(&program.exec);
    }
    Settings {
        name: name.to_owned(),
        program: Program {
            // The running program itself, even if its file was replaced meanwhile.
            path: "/proc/self/exe".into(),
            args,
        },
        allow: program.map(|program| program.allow.clone()),
        configure: configure(name, config),
        limits: limits(config),
        children,
        orders,
    }
}

/// Tells if the probe of a backend has to be another process with the second config.
pub(super) fn is_other(name: &str, one: &Config, other: &Config) -> bool {
    let program = |config: &Config| {
        let program = config.backends.programs.get(name);
        program.map(|program| (program.exec.clone(), program.allow.clone()))
    };
    configure(name, one) != configure(name, other)
        || limits(one) != limits(other)
        || program(one) != program(other)
}

/// The settings that a config gives the probe of a backend.
fn configure(name: &str, config: &Config) -> Configure {
    let (probe, health) = (&config.probe, &config.health);
    let periods = &health.periods;
    Configure {
        host_root: config.host_root.clone(),
        period: probe.period,
        checks: CheckPeriods {
            working: periods.working.unwrap_or_default(),
            performing: periods.performing.unwrap_or_default(),
            trend: periods.trend.unwrap_or_default(),
        },
        // Deep checks are made on cards that nobody uses.
        processes: config.pools.asks_who() || has_deep_checks(config),
        backend: section(name, &config.backends),
        ..Configure::default()
    }
}

/// The keys of a backend's section that its probe reads.
fn section(name: &str, backends: &Backends) -> Value {
    match backends.programs.get(name) {
        Some(program) => json!(program.settings),
        None => backends.nvidia.probe.to_value(),
    }
}

fn has_deep_checks(config: &Config) -> bool {
    config.health.periods.deep.is_some() && !config.health.deep_command.is_empty()
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

    const NVIDIA: &str = Backends::NVIDIA;

    /// Weights and commands are the agent's alone; the probe tells who is on a card.
    #[test]
    fn another_deep_check_is_the_same_process_and_the_first_one_is_not() {
        let config = |text| config::parse("ostler.yaml", text).unwrap().config;
        let one = config("health: {deepCommand: check, deepLimit: 90s}");
        let is_busy_asked = |config: &Config| configure(NVIDIA, config).processes;
        assert!(is_busy_asked(&one) && is_other(NVIDIA, &Config::default(), &one));
        let other =
            "health: {deepCommand: [other], deep: 5m, deepLimit: 91s, weights: {deep: out}}";
        assert!(!is_other(NVIDIA, &one, &config(other)));
        let off = config("health: {deepCommand: check, deep: 'off'}");
        assert!(!is_busy_asked(&off));
        assert!(is_other(
            NVIDIA,
            &one,
            &config("backends: {nvidia: {devPath: /d}}")
        ));
        assert!(is_other(
            NVIDIA,
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
        assert!(!is_other(NVIDIA, &Config::default(), &other));
    }
}
