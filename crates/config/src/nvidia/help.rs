//! Text of `nvidia-device-plugin --help`.

use super::flags::{FLAGS, FlagKind};

const HEAD: &str = "\
Offers NVIDIA's GPUs to Kubernetes: Ostler under the name of NVIDIA's device plugin, with its
flags, variables and config file.

Usage: nvidia-device-plugin [flags]

A flag wins over its variable, the variable over the config file, the file over the default.

";

const TAIL: &str = "  -h, --help
      show this
  -v, --version
      show the version

Variables without a flag:
  DP_DISABLE_HEALTHCHECKS, DP_ENABLE_HEALTHCHECKS
      XIDs that say nothing about a card's health, and XIDs that do: numbers, or all

How Ostler differs:
  - it exits where the driver does not start only if fail-on-init-error is said to be true;
    otherwise it waits
  - device nodes are handed over unless pass-device-specs is said to be false
  - its sockets have names of their own, beside the kubelet's socket
  - resources, rename and devices of the config file work
  - docs/nvidia.md has all of it
";

/// Returns the text of `--help`: every flag with its variables and its default, and the differences
/// from NVIDIA's plugin.
pub fn help() -> String {
    let mut text = HEAD.to_owned();
    for spec in FLAGS {
        let value = match spec.kind {
            FlagKind::Bool => "[=true|false]",
            FlagKind::Text => " VALUE",
            FlagKind::Texts => " VALUE[,VALUE…]",
            FlagKind::Ints => " NUMBER[,NUMBER…]",
        };
        let alias = spec
            .alias
            .map_or_else(String::new, |alias| format!(", --{alias}"));
        text += &format!("  --{}{alias}{value}\n      {}\n", spec.name, spec.help);
        let default = match spec.default {
            "" => String::new(),
            default => format!("; default: {default}"),
        };
        text += &format!("      [variable: {}{default}]\n", spec.env.join(", "));
    }
    text + TAIL
}
