//! Flags of `ostler config` for reading a config as NVIDIA's device plugin does.

use std::path::Path;

use config::{
    Error, Overrides, Resolved, ValueOrigin,
    nvidia::{self, GivenFlags, Invocation},
};

/// Flags that select the dialect of NVIDIA's device plugin.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct DropInFlags {
    /// Read the config as nvidia-device-plugin does, even without `version: v1`
    #[arg(long)]
    nvidia: bool,

    /// Flags of nvidia-device-plugin that go with the config
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// Parsed flags of NVIDIA's device plugin.
#[derive(Debug)]
pub(crate) struct DropIn(GivenFlags);

// === impl DropInFlags ===

impl DropInFlags {
    /// True if a file is to be read in NVIDIA's dialect: `--nvidia` was given, or the file can be
    /// read and has `version: v1`.
    pub(crate) fn is_v1_file(&self, file: Option<&Path>) -> bool {
        self.nvidia || file.is_some_and(is_v1)
    }

    /// True if there are flags of NVIDIA's device plugin.
    pub(crate) fn has_flags(&self) -> bool {
        !self.flags.is_empty()
    }

    /// Parses the flags and the variables of NVIDIA's device plugin. `file` counts as its flag
    /// `--config-file`.
    ///
    /// # Errors
    /// NVIDIA's program would refuse a flag.
    pub(crate) fn parse_flags(&self, file: Option<&Path>) -> Result<DropIn, Error> {
        let file = file.map(|path| format!("--config-file={}", path.display()));
        let args: Vec<String> = file.into_iter().chain(self.flags.clone()).collect();
        Ok(DropIn(
            match GivenFlags::parse_args(&args, &read_variable)? {
                Invocation::Run(flags) => flags,
                Invocation::Help | Invocation::Version => GivenFlags::default(),
            },
        ))
    }
}

// === impl DropIn ===

impl DropIn {
    /// Name of the dialect in the output.
    pub(crate) const KIND: &str = "nvidia";

    /// Resolves the flags and a file to a config.
    ///
    /// # Errors
    /// The file cannot be read, or a value of the file or the flags is invalid.
    pub(crate) fn resolve_file(&self, path: &Path) -> Result<Resolved, Error> {
        let file = nvidia::load_v1(path)?;
        nvidia::translate_file(&self.0, &file, Overrides::default(), &ValueOrigin::of_flag)
    }

    /// Resolves the flags, and the file that they name, to a config.
    ///
    /// # Errors
    /// As [`Self::resolve_file`], or an override is invalid.
    pub(crate) fn resolve_named_file(
        &self,
        overrides: Overrides,
        from: &dyn Fn(&str) -> ValueOrigin,
    ) -> Result<Resolved, Error> {
        nvidia::translate_flags(&self.0, overrides, from)
    }
}

fn is_v1(path: &Path) -> bool {
    path.is_file() && fs_err::read_to_string(path).is_ok_and(|text| nvidia::is_v1(&text))
}

/// Reads a variable of this process. Bytes that are not UTF-8 are replaced.
fn read_variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}
