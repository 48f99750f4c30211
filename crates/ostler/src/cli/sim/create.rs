//! `ostler sim create`: makes a node from a profile, and prints the commands for its use.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use sim::{Error, Node, NodeProfile, profile::names, state::NodePlatform};

use super::super::table::new_table;

/// Default profile of a new node.
pub(in crate::cli) const DEFAULT: &str = "dgx-a100";

/// Make a node in a folder, and print how to use it.
///
/// The folder is made if it is missing. Remove it to remove the node.
#[derive(Debug, clap::Args)]
pub(super) struct SimCreateArgs {
    /// The folder
    dir: PathBuf,

    /// The machine: a name of `ostler sim profiles`, or a YAML file
    #[arg(long, value_name = "NAME|FILE", default_value = DEFAULT)]
    profile: String,
}

// === impl SimCreateArgs ===

impl SimCreateArgs {
    pub(super) fn create_node(self) -> anyhow::Result<String> {
        let profile = load_profile(&self.profile)?;
        let node = Node::create_node(&self.dir, &profile).map_err(|error| match error {
            Error::Exists { dir } => anyhow::anyhow!(
                "there is a node in {0} already; choose another folder, or remove this one first: \
                 rm -r {0}",
                quoted(&dir)
            ),
            error => anyhow::Error::new(error)
                .context(format!("cannot make a node in {}", self.dir.display())),
        })?;
        Ok(node_usage(&node, &profile))
    }
}

/// Table of the profiles that are part of the program.
pub(super) fn profile_table() -> anyhow::Result<String> {
    let mut rows = new_table(&["NAME", "GPUS", "MODEL", "WHAT IT IS"]);
    for name in names() {
        let profile = NodeProfile::find_profile(name)?;
        let state = profile.to_state()?;
        let models: Vec<&str> = state.models.values().map(|m| m.name.as_str()).collect();
        rows.add_row([
            name.to_owned(),
            state.gpus.len().to_string(),
            models.join(", "),
            profile.description,
        ]);
    }
    Ok(rows.trim_fmt() + "\n")
}

/// Finds a profile by its name, or reads it from a file.
///
/// # Errors
/// There is no such name or file, or the file is no valid profile.
pub(in crate::cli) fn load_profile(name: &str) -> anyhow::Result<NodeProfile> {
    if names().contains(&name) {
        return Ok(NodeProfile::find_profile(name)?);
    }
    let file = Path::new(name);
    if !file.is_file() {
        bail!(
            "there is no profile and no file `{name}`; the profiles are: {}",
            names().join(", ")
        );
    }
    let yaml = fs_err::read_to_string(file)?;
    NodeProfile::parse_profile(&yaml).with_context(|| {
        format!("{name} is no profile; docs/simulator-profiles.md says what one has")
    })
}

/// Commands for the use of a new node.
fn node_usage(node: &Node, profile: &NodeProfile) -> String {
    let dir = quoted(node.node_dir());
    let (root, library) = (quoted(&node.host_root()), quoted(&node.driver_library()));
    let ostler = program_name();
    format!(
        "{dir} is now {description}

a kubelet for it, in a terminal of its own:
  {ostler} sim kubelet --dir {dir}/kubelet
the agent on it:
  {ostler} run --host-root {root} --nvml-library {library} \\
    --kubelet-dir {dir}/kubelet --cdi-dir {dir}/cdi --control-socket {dir}/control.sock
what the agent knows:
  {ostler} devices --control-socket {dir}/control.sock
{others}what is on it, and a change:
  {ostler} sim --node {dir} show
  {ostler} sim --node {dir} lose 0
",
        description = profile.description,
        others = other_usage(&dir, &root, profile.platform),
    )
}

/// Commands that run another program on the node.
fn other_usage(dir: &str, root: &str, platform: NodePlatform) -> String {
    let note = match platform {
        NodePlatform::BareMetal => "",
        NodePlatform::Vgpu => "; its PCI functions say that they are vGPUs",
        NodePlatform::Wsl => "; libdxcore.so beside the library and /dev/dxg say that it is WSL",
        NodePlatform::Tegra => {
            return format!(
                "another program, which finds no NVML and the files of a Tegra system, as root:\n  \
                 unshare -m sh -c 'mount --rbind {root}/sys /sys; PROGRAM'\n"
            );
        }
    };
    format!(
        "another program that uses NVML{note}:\n  LD_LIBRARY_PATH={dir} PROGRAM\n\
         ... and looks at /sys too, as root:\n  unshare -m sh -c \
         'mount --rbind {root}/sys /sys; LD_LIBRARY_PATH={dir} PROGRAM'\n"
    )
}

/// Quotes a path for a shell, if it needs quotes.
pub(in crate::cli) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// This program's name for a shell: `ostler` if `PATH` leads to it, else its quoted path.
pub(in crate::cli) fn program_name() -> String {
    let Ok(here) = std::env::current_exe() else {
        return "ostler".to_owned();
    };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&folders)
        .map(|folder| folder.join("ostler"))
        .find_map(|file| fs_err::canonicalize(file).ok());
    if first.is_some() && first == fs_err::canonicalize(&here).ok() {
        return "ostler".to_owned();
    }
    quoted(&here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("/tmp/node-1", "/tmp/node-1")]
    #[case("/tmp/my node", "'/tmp/my node'")]
    #[case("/tmp/it's", r"'/tmp/it'\''s'")]
    #[case("", "''")]
    fn a_path_is_quoted_where_a_shell_needs_it(#[case] path: &str, #[case] shell: &str) {
        assert_eq!(quoted(Path::new(path)), shell);
    }
}
