//! Changes of verdicts. Logs, histories, metrics and notifications are made of them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cause, DeviceId, State};

/// Change of one device's verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transition {
    /// Time of the change.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Device of the verdict.
    pub device: DeviceId,
    /// State before the change.
    pub from: State,
    /// State after the change.
    pub to: State,
    /// New causes and warnings. If none began or ended: the causes whose weight rose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub began: Vec<Cause>,
    /// Causes that ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Cause>,
}
