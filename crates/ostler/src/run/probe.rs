//! Settings of the probe processes. Each enabled backend of the config has one supervisor.

use config::{Backends, Config};
use probe::{
    protocol::{CheckPeriods, Configure},
    supervisor::{ChildRegistry, Limits, Orders, Program, SupervisorSettings},
};
use serde_json::{Value, json};

/// Names of the enabled backends.
pub(crate) fn enabled_backends(config: &Config) -> Vec<String> {
    let startups = config.backends.startups();
    let enabled = startups.filter(|(_, startup)| startup.enabled);
    enabled.map(|(name, _)| name.to_owned()).collect()
}

/// Makes the settings for the supervisor of a backend's probe. The processes are recorded in
/// `children`. `log` has the arguments that make the probe log as the agent does.
pub(crate) fn probe_settings(
    name: &str,
    config: &Config,
    log: &[String],
    children: ChildRegistry,
    orders: Orders,
) -> SupervisorSettings {
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
    SupervisorSettings {
        name: name.to_owned(),
        program: Program {
            // This link names the running program even if its file was replaced by an upgrade
            // (proc(5)): agent and probe have the same version.
            path: "/proc/self/exe".into(),
            args,
        },
        allow: program.map(|program| program.allow.clone()),
        configure: probe_config(name, config),
        limits: probe_limits(config),
        children,
        orders,
    }
}

/// True if the second config needs a new probe process for the backend.
pub(super) fn is_other(name: &str, one: &Config, other: &Config) -> bool {
    let program = |config: &Config| {
        let program = config.backends.programs.get(name);
        program.map(|program| (program.exec.clone(), program.allow.clone()))
    };
    probe_config(name, one) != probe_config(name, other)
        || probe_limits(one) != probe_limits(other)
        || program(one) != program(other)
}

/// Settings of a backend's probe, which are the first line of its input.
fn probe_config(name: &str, config: &Config) -> Configure {
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
        // A deep check needs an idle card, and only the list of processes tells that it is idle.
        processes: config.pools.asks_who() || has_deep_checks(config),
        backend: probe_section(name, &config.backends),
        ..Configure::default()
    }
}

/// Keys of a backend's section that its probe reads. The rules of the vendor read the others.
fn probe_section(name: &str, backends: &Backends) -> Value {
    match backends.programs.get(name) {
        Some(program) => json!(program.settings),
        None => backends.nvidia.probe.to_value(),
    }
}

fn has_deep_checks(config: &Config) -> bool {
    config.health.periods.deep.is_some() && !config.health.deep_command.is_empty()
}

fn probe_limits(config: &Config) -> Limits {
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

    /// Only the agent uses weights and commands. The first deep check needs a probe that lists
    /// processes.
    #[test]
    fn another_deep_check_is_the_same_process_and_the_first_one_is_not() {
        let config = |text| config::parse_native("ostler.yaml", text).unwrap().config;
        let one = config("health: {deepCommand: check, deepLimit: 90s}");
        let is_busy_asked = |config: &Config| probe_config(NVIDIA, config).processes;
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

    /// The probe reports events, and the rules in the agent say their meaning.
    #[test]
    fn another_rule_for_nvidias_devices_is_the_same_process() {
        let text = "backends: {nvidia: {mig: single, imexRequired: true, cdi: {driverRoot: /d}, \
                    xids: {actions: {94: drain}}}}";
        let other = config::parse_native("ostler.yaml", text).unwrap().config;
        assert_ne!(other.backends, Config::default().backends);
        assert!(!is_other(NVIDIA, &Config::default(), &other));
    }
}
