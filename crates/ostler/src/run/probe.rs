//! How this program starts itself again as a probe.

use std::time::Duration;

use config::{Config, Discovery};
use probe::supervisor::{Children, Limits, Orders, Program, Settings};

/// The NVIDIA probe of this program, with a place where its processes are written down.
pub(crate) fn own_probe(whole: &Config, children: Children, orders: Orders) -> Settings {
    let (config, nvidia) = (&whole.probe, &whole.backends.nvidia);
    let mut args: Vec<String> = ["probe", "nvidia", "--child"].map(str::to_owned).into();
    let mut flag = |name: &str, path: &std::path::Path| {
        args.extend([name.to_owned(), path.display().to_string()]);
    };
    flag("--host-root", &whole.host_root);
    if let Some(path) = &nvidia.driver_path {
        flag("--driver-path", path);
    }
    if let Some(path) = &nvidia.nvml_library {
        flag("--nvml-library", path);
    }
    if let Some(path) = &nvidia.dev_path {
        flag("--dev-path", path);
    }
    if let Some(path) = &nvidia.mps_path {
        flag("--mps-path", path);
    }
    if nvidia.loader_fallback {
        args.push("--loader-fallback".to_owned());
    }
    let discovery = match nvidia.discovery {
        Discovery::Auto => "auto",
        Discovery::Nvml => "nvml",
        Discovery::Tegra => "tegra",
    };
    args.push(format!("--discovery={discovery}"));
    args.push(format!("--period={}ms", config.period.as_millis().max(1)));
    args.extend(checks(whole));
    Settings {
        name: "nvidia".to_owned(),
        program: Program {
            // The running program itself, even if its file was replaced meanwhile.
            path: "/proc/self/exe".into(),
            args,
        },
        limits: Limits {
            call: config.call_limit,
            driver_call: config.driver_call_limit,
            pause: config.retry_pause,
            ..Limits::default()
        },
        children,
        orders,
    }
}

/// Whether the probe has to be another process with the second config.
pub(super) fn is_other(one: &Config, other: &Config) -> bool {
    one.host_root != other.host_root
        || one.probe != other.probe
        || one.backends != other.backends
        || checks(one) != checks(other)
}

/// The arguments that say what is checked, and how often.
fn checks(config: &Config) -> Vec<String> {
    let health = &config.health;
    let periods = [
        ("working", health.periods.working),
        ("performing", health.periods.performing),
        ("trend", health.periods.trend),
        ("deep", health.periods.deep),
    ];
    let every = |(tier, period): (&str, Option<Duration>)| {
        let millis = period.unwrap_or_default().as_millis();
        format!("--{tier}-period={millis}ms")
    };
    let mut args: Vec<String> = periods.into_iter().map(every).collect();
    let words = health.deep_command.iter();
    args.extend(words.map(|word| format!("--deep-command={word}")));
    let limit = health.deep_limit.as_millis().max(1);
    args.push(format!("--deep-limit={limit}ms"));
    if config.pools.asks_who() {
        args.push("--processes".to_owned());
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights are the agent's alone, what the command may take is the probe's.
    #[test]
    fn another_limit_for_the_command_is_another_process_and_another_weight_is_not() {
        let config = |text| config::parse("ostler.yaml", text).unwrap().config;
        let one = config("health: {deepCommand: check, deepLimit: 90s}");
        assert!(checks(&one).contains(&"--deep-limit=90000ms".to_owned()));
        let other = config("health: {deepCommand: check, deepLimit: 91s}");
        assert!(is_other(&one, &other));
        let same = "health: {deepCommand: check, deepLimit: 90s, weights: {deep: out}}";
        assert!(!is_other(&one, &config(same)));
    }
}
