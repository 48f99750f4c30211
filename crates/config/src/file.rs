//! `ostler.yaml`: its shape, and how it is read.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::Period;

/// The largest file that is read; a config is a page or two.
const SIZE_LIMIT: u64 = 1 << 20;

/// The file as it is written. Everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct File {
    /// Where the kubelet is.
    pub kubelet: KubeletFile,
    /// The folder under which the host's `/sys`, `/proc` and `/dev` are.
    pub host_root: Option<PathBuf>,
    /// The folder under which the driver's files are.
    pub driver_path: Option<PathBuf>,
    /// The driver library itself.
    pub nvml_library: Option<PathBuf>,
    /// Where commands reach the agent.
    pub control_socket: Option<PathBuf>,
    /// How the hardware is looked at.
    pub probe: ProbeFile,
    /// How verdicts are made.
    pub health: HealthFile,
}

/// Where the kubelet is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KubeletFile {
    /// The device plugin folder.
    pub dir: Option<PathBuf>,
    /// The pod resources socket.
    pub pod_resources_socket: Option<PathBuf>,
}

/// How the hardware is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProbeFile {
    /// The time between two looks.
    pub period: Option<Period>,
    /// How long a driver call may take.
    pub call_limit: Option<Period>,
    /// How long a call that concerns the whole driver may take.
    pub driver_call_limit: Option<Period>,
    /// The pause before a stuck card is tried again; it doubles with each try.
    pub retry_pause: Option<Period>,
}

/// How verdicts are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HealthFile {
    /// How long a card that does not answer is Unknown before it is Unhealthy.
    pub unanswered_grace: Option<Period>,
    /// How long a card that is gone stays listed as Unhealthy.
    pub gone_grace: Option<Period>,
}

/// Why a config file is not used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("cannot read the config file")]
    Read(#[source] std::io::Error),
    /// It is not a plain file.
    #[error("{} is not a plain file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// It is far too large.
    #[error("{} has more than {SIZE_LIMIT} bytes, the most that a config file may have", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not a valid config.
    #[error("{}: {source}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: Box<serde_saphyr::Error>,
    },
}

/// Reads a config file. Only a plain file is read: anything else might never end.
pub fn load(path: &Path) -> Result<File, Error> {
    let meta = fs_err::metadata(path).map_err(Error::Read)?;
    if !meta.is_file() {
        return Err(Error::NotAFile {
            path: path.to_owned(),
        });
    }
    let mut text = String::new();
    fs_err::File::open(path)
        .and_then(|file| file.take(SIZE_LIMIT + 1).read_to_string(&mut text))
        .map_err(Error::Read)?;
    if text.len() as u64 > SIZE_LIMIT {
        return Err(Error::TooLarge {
            path: path.to_owned(),
        });
    }
    parse(&text).map_err(|source| Error::Invalid {
        path: path.to_owned(),
        source: Box::new(source),
    })
}

/// Reads a config. An empty one is all defaults.
pub fn parse(text: &str) -> Result<File, serde_saphyr::Error> {
    let blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(blank) {
        return Ok(File::default());
    }
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_file_is_all_defaults() {
        assert_eq!(parse("").unwrap(), File::default());
        assert_eq!(parse("# nothing yet\n\n").unwrap(), File::default());
    }

    #[test]
    fn reads_every_key() {
        let file = parse(
            "kubelet:\n  dir: /a\n  podResourcesSocket: /b\nhostRoot: /c\ndriverPath: /d\n\
             nvmlLibrary: /e\ncontrolSocket: /f\nprobe:\n  period: 3s\n  callLimit: 4s\n  \
             driverCallLimit: 5s\n  retryPause: 6s\nhealth:\n  unansweredGrace: 7s\n  goneGrace: 8s\n",
        )
        .unwrap();
        insta::assert_debug_snapshot!(file);
    }

    #[test]
    fn a_wrong_file_is_named_with_line_and_column() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ostler.yaml");
        let complaint = |text: &str| {
            fs_err::write(&path, text).unwrap();
            let error = load(&path).unwrap_err();
            let folder = folder.path().display().to_string();
            error.to_string().replace(&folder, "")
        };
        insta::assert_snapshot!("unknown key", complaint("probe:\n  perod: 3s\n"));
        insta::assert_snapshot!("bad value", complaint("probe:\n  period: soon\n"));
        insta::assert_snapshot!("twice", complaint("hostRoot: /a\nhostRoot: /b\n"));
        insta::assert_snapshot!("no yaml", complaint("{"));
    }

    #[test]
    fn what_is_no_plain_file_or_too_large_is_refused() {
        let error = load(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero is not a plain file");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ostler.yaml");
        fs_err::write(&path, "#".repeat((1 << 20) + 1)).unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("more than 1048576 bytes"), "{error}");
    }

    #[test]
    fn an_absent_file_is_named() {
        let error = load(Path::new("/nowhere/ostler.yaml")).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("/nowhere/ostler.yaml"), "{source}");
    }

    proptest! {
        #[test]
        fn never_panics(text in ".*") {
            let _ = parse(&text);
        }
    }
}
