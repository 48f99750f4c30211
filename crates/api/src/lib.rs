//! Types of the control socket's pages and actions (`/v1`). Programs that read the pages or send
//! orders use these types, and so do the agent and its commands.
//!
//! Pages may gain fields. A reader must ignore fields that it does not know.

mod cdi;
mod devices;
mod find;
mod health;
mod order;
mod refusal;
mod status;

pub use self::{
    cdi::{CdiEvidence, CdiFile, CdiLists, CdiStatus},
    devices::{DevicePage, ListedDevice},
    find::{FindError, family, find_device},
    health::{DeviceHealth, HealthPage, UnsupportedChecks},
    order::{CordonOrder, OrderDone, ReleaseOrder, UncordonOrder},
    refusal::OrderRefusal,
    status::{
        AgentStatus, ConfigStatus, HandoverNote, NotOffered, Phase, PoolNote, Resource, StateFile,
    },
};

/// Path of the page of devices: facts, verdicts and the newest samples.
pub const DEVICES: &str = "/v1/devices";
/// Path of the page of the agent's own state.
pub const STATUS: &str = "/v1/status";
/// Path of the page of verdicts and their history.
pub const HEALTH: &str = "/v1/health";
/// Action: cordons a device.
pub const CORDON: &str = "/v1/cordon";
/// Action: ends the cordon of a device.
pub const UNCORDON: &str = "/v1/uncordon";
/// Action: closes all driver handles to one card or to all, for a limited time.
pub const RELEASE: &str = "/v1/release";
/// Action: ends a release before its time.
pub const RESUME: &str = "/v1/resume";

/// Returns the text of an enum's value on a page, which is its serialization. Empty if the value
/// does not serialize to a string.
///
/// ```
/// assert_eq!(api::serialized_word(model::Tier::Working), "working");
/// ```
pub fn serialized_word(value: impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
