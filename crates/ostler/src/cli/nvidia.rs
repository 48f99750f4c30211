//! `ostler nvidia-device-plugin`: the agent under the name, the flags and the variables of
//! NVIDIA's device plugin.

mod drop_in;
mod flags;
mod specs;

use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use config::{
    BackendOverrides, NvidiaOverrides, Overrides,
    nvidia::{GivenFlags, Invocation, help},
};

pub(crate) use self::{
    drop_in::{DropIn, DropInFlags},
    flags::{DaemonFlags, DriverFlags},
    specs::SpecFlags,
};
use crate::run::{ConfigDialect, ConfigSource};

/// Name of NVIDIA's program. NVIDIA's config-manager finds the process to signal by this name
/// (k8s-device-plugin, cmd/config-manager/main.go, `--process-to-signal`).
const NAME: &str = "nvidia-device-plugin";

/// Run the agent with the flags, variables and config file of NVIDIA's device plugin.
///
/// A program file or link of the name `nvidia-device-plugin` runs this command by itself.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(super) struct NvidiaPluginArgs {
    /// Flags of NVIDIA's program; --help lists them
    // NVIDIA's program takes long flags with one dash too (Go, package flag), which clap refuses: a
    // parser of ours reads them.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS"
    )]
    args: Vec<String>,
}

/// Inserts the command `nvidia-device-plugin` if the program was started under that name.
pub(crate) fn spell_out(mut args: Vec<OsString>) -> Vec<OsString> {
    let name = args.first().map(Path::new).and_then(Path::file_name);
    if name.is_some_and(|name| name == NAME) {
        args.splice(..1, ["ostler", NAME].map(OsString::from));
    }
    args
}

// === impl NvidiaPluginArgs ===

impl NvidiaPluginArgs {
    /// Runs the agent. `log` has the arguments for the log of its probes.
    pub(super) fn run_plugin(self, log: Vec<String>) -> anyhow::Result<ExitCode> {
        let variable = |name: &str| std::env::var(name).ok();
        match GivenFlags::parse_args(&self.args, &variable).map_err(config::Error::from)? {
            Invocation::Help => write!(io::stdout(), "{}", help())?,
            Invocation::Version => write!(io::stdout(), "{}", version_text())?,
            Invocation::Run(flags) => {
                let source = ConfigSource {
                    origin: ConfigDialect::DropIn(Box::new(flags)),
                    overrides: read_overrides(),
                    log,
                };
                super::block_on(crate::run::run_agent(source))??;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Output of `--version`: the form is that of NVIDIA's program, the version is ours.
fn version_text() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let commit = option_env!("OSTLER_COMMIT").unwrap_or("unknown");
    format!("NVIDIA Device Plugin version {version}\ncommit: {commit}\n")
}

/// Reads our own variables, for settings that NVIDIA's program does not have.
fn read_overrides() -> Overrides {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    Overrides {
        kubelet_dir: path("OSTLER_KUBELET_DIR"),
        pod_resources_socket: path("OSTLER_POD_RESOURCES_SOCKET"),
        host_root: path("OSTLER_HOST_ROOT"),
        control_socket: path("OSTLER_CONTROL_SOCKET"),
        cdi_dir: path("OSTLER_CDI_DIR"),
        backends: BackendOverrides {
            nvidia: NvidiaOverrides {
                driver_path: path("OSTLER_DRIVER_PATH"),
                nvml_library: path("OSTLER_NVML_LIBRARY"),
                mps_path: path("OSTLER_MPS_PATH"),
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(&["/usr/bin/nvidia-device-plugin", "--version"], &["ostler", NAME, "--version"])]
    #[case(&[NAME], &["ostler", NAME])]
    #[case(&["/usr/bin/ostler", "run"], &["/usr/bin/ostler", "run"])]
    #[case(&[], &[])]
    fn the_name_stands_for_the_command(#[case] args: &[&str], #[case] spelt: &[&str]) {
        let args = args.iter().map(OsString::from).collect();
        let spelt: Vec<OsString> = spelt.iter().map(OsString::from).collect();
        assert_eq!(spell_out(args), spelt);
    }
}
