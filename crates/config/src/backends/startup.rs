//! Settings of a backend's start, which every backend has.

use schemars::JsonSchema;
use serde::Serialize;

use crate::source::{Section, SectionReader};

/// Settings of a backend's start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Startup {
    /// Runs the backend's probe.
    pub enabled: bool,
    /// Exits if the backend's driver does not start, instead of waiting for it.
    pub fail_on_init_error: bool,
}

// === impl Startup ===

impl Section for Startup {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("enabled", &mut self.enabled);
        at.set_option("failOnInitError", &mut self.fail_on_init_error);
    }
}

impl Default for Startup {
    fn default() -> Self {
        Self {
            enabled: true,
            fail_on_init_error: false,
        }
    }
}
