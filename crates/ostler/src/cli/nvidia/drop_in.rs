//! Flags of `ostler config` for what NVIDIA's device plugin would make of a config.

use std::path::Path;

use config::{
    Error, Origin, Overrides, Resolved,
    nvidia::{self, Call, Flags},
};

/// Says that a config is that of NVIDIA's device plugin.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct DropInFlags {
    /// Read the config as nvidia-device-plugin does, whatever it looks like
    #[arg(long)]
    nvidia: bool,

    /// Flags of nvidia-device-plugin that go with the config
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// Flags of NVIDIA's device plugin that were read.
#[derive(Debug)]
pub(crate) struct DropIn(Flags);

// === impl DropInFlags ===

impl DropInFlags {
    /// True if a file is to be read as NVIDIA's. One that cannot be read is not, unless that was asked for.
    pub(crate) fn claims(&self, file: Option<&Path>) -> bool {
        self.nvidia || file.is_some_and(is_v1)
    }

    /// True if there are flags of NVIDIA's device plugin.
    pub(crate) fn has_flags(&self) -> bool {
        !self.flags.is_empty()
    }

    /// Reads the flags, the file among them, and the variables of NVIDIA's device plugin.
    ///
    /// # Errors
    /// A flag that NVIDIA's program would not take.
    pub(crate) fn parse(&self, file: Option<&Path>) -> Result<DropIn, Error> {
        let file = file.map(|path| format!("--config-file={}", path.display()));
        let args: Vec<String> = file.into_iter().chain(self.flags.clone()).collect();
        Ok(DropIn(match Flags::parse(&args, &variable)? {
            Call::Run(flags) => flags,
            Call::Help | Call::Version => Flags::default(),
        }))
    }
}

// === impl DropIn ===

impl DropIn {
    /// The word for such a config.
    pub(crate) const KIND: &str = "nvidia";

    /// The config that the flags and a file come to.
    ///
    /// # Errors
    /// The file cannot be read, or something in it or in the flags is wrong.
    pub(crate) fn resolve_file(&self, path: &Path) -> Result<Resolved, Error> {
        let file = nvidia::load(path)?;
        nvidia::resolve(&self.0, &file, Overrides::default(), &Origin::flag)
    }

    /// The config that the flags come to, with the file that they name.
    ///
    /// # Errors
    /// As [`Self::resolve_file`], and an override that is wrong.
    pub(crate) fn resolve(
        &self,
        overrides: Overrides,
        from: &dyn Fn(&str) -> Origin,
    ) -> Result<Resolved, Error> {
        nvidia::config(&self.0, overrides, from)
    }
}

fn is_v1(path: &Path) -> bool {
    path.is_file() && fs_err::read_to_string(path).is_ok_and(|text| nvidia::is_v1(&text))
}

/// A variable of this process.
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}
