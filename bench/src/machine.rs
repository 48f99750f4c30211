//! What the figures belong to: the commit, the machine, the date.

use std::{path::Path, process::Command};

use jiff::Timestamp;
use serde::Serialize;

/// Where and when it was measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// The commit; `+` after it if the tree had changes.
    pub(crate) commit: String,
    /// The day, in UTC.
    pub(crate) date: String,
    /// How many cores there are.
    pub(crate) cores: usize,
    /// The processor's name.
    pub(crate) processor: String,
    /// The kernel's release.
    pub(crate) kernel: String,
    /// What the agent says of itself.
    pub(crate) version: String,
    /// What ran beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<String>,
}

// === impl Machine ===

impl Machine {
    /// Looks at this machine, at the agent, and at the source tree if that is what it was built
    /// from.
    ///
    /// # Errors
    /// If the agent does not run.
    pub(crate) fn read(ostler: &Path, built: bool) -> anyhow::Result<Self> {
        let version = Command::new(ostler).arg("--version").output()?;
        let cpuinfo = fs_err::read_to_string("/proc/cpuinfo")?;
        let kernel = fs_err::read_to_string("/proc/sys/kernel/osrelease")?;
        Ok(Self {
            commit: match built {
                true => commit().unwrap_or_else(|| "unknown".to_owned()),
                false => "unknown".to_owned(),
            },
            date: Timestamp::now().strftime("%Y-%m-%d").to_string(),
            cores: std::thread::available_parallelism()?.get(),
            processor: processor(&cpuinfo).unwrap_or("unknown").to_owned(),
            kernel: kernel.trim().to_owned(),
            version: String::from_utf8_lossy(&version.stdout).trim().to_owned(),
            peer: None,
        })
    }
}

/// The commit of the source tree; `+` after it if the tree has changes.
pub(crate) fn commit() -> Option<String> {
    let hash = git(&["rev-parse", "--short=12", "HEAD"])?;
    // The results themselves change with every run.
    let changes = git(&[
        "status",
        "--porcelain",
        "--",
        ".",
        ":!bench/HOUSE.md",
        ":!bench/RESULTS.md",
        ":!bench/results.json",
        ":!bench/results.svg",
    ])?;
    let mark = if changes.is_empty() { "" } else { "+" };
    Some(format!("{hash}{mark}"))
}

/// The output of git in the source tree, if it succeeds.
pub(crate) fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The first processor's name.
fn processor(cpuinfo: &str) -> Option<&str> {
    let mut lines = cpuinfo.lines();
    let line = lines.find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_first_processor() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A B\n\nprocessor\t: 1\nmodel name\t: C\n";
        assert_eq!(processor(cpuinfo), Some("A B"));
        assert_eq!(processor("processor : 0\n"), None);
    }
}
