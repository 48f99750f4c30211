//! A change of a verdict: what logs, histories, metrics and notifications are made from.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cause, DeviceId, State};

/// One change of one device's verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transition {
    /// When it was decided.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Whose verdict it is.
    pub device: DeviceId,
    /// The state before.
    pub from: State,
    /// The state since.
    pub to: State,
    /// Causes that are new, warnings among them; those that weigh more now, where none began or
    /// ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub began: Vec<Cause>,
    /// Causes that ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Cause>,
}
