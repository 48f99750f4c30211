//! How this program starts itself again as a probe.

use config::Discovery;
use probe::supervisor::{Children, Limits, Program, Settings};

/// The NVIDIA probe of this program, with a place where its processes are written down.
pub(crate) fn own_probe(config: &config::Probe, children: Children) -> Settings {
    let mut args: Vec<String> = ["probe", "nvidia", "--child"].map(str::to_owned).into();
    let mut flag = |name: &str, path: &std::path::Path| {
        args.extend([name.to_owned(), path.display().to_string()]);
    };
    flag("--host-root", &config.host_root);
    if let Some(path) = &config.driver_path {
        flag("--driver-path", path);
    }
    if let Some(path) = &config.nvml_library {
        flag("--nvml-library", path);
    }
    if let Some(path) = &config.dev_path {
        flag("--dev-path", path);
    }
    if let Some(path) = &config.mps_path {
        flag("--mps-path", path);
    }
    if config.loader_fallback {
        args.push("--loader-fallback".to_owned());
    }
    let discovery = match config.discovery {
        Discovery::Auto => "auto",
        Discovery::Nvml => "nvml",
        Discovery::Tegra => "tegra",
    };
    args.push(format!("--discovery={discovery}"));
    args.push(format!("--period={}ms", config.period.as_millis().max(1)));
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
    }
}
