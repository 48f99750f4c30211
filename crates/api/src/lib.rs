//! The pages and actions of the control socket, as types: `/v1`, a product of its own. Programs that
//! read the pages or send orders use these types; the agent and its commands use the same.
//!
//! A page may gain fields. A reader ignores the fields that it does not know.

mod cdi;
mod devices;
mod find;
mod health;
mod order;
mod refusal;
mod status;

pub use self::{
    cdi::{CdiEvidence, CdiFile, CdiLists, CdiStatus},
    devices::{Devices, ListedDevice},
    find::{Unnamed, family, find},
    health::{Health, Judged, Unsupported},
    order::{Cordon, Done, Release, Uncordon},
    refusal::Refusal,
    status::{
        ConfigStatus, HandoverNote, NotOffered, Phase, PoolNote, Resource, StateFile, Status,
    },
};

/// The page with the devices: facts, verdicts and the newest samples ([`Devices`]).
pub const DEVICES: &str = "/v1/devices";
/// The page with the agent's own state ([`Status`]).
pub const STATUS: &str = "/v1/status";
/// The page with verdicts and their history.
pub const HEALTH: &str = "/v1/health";
/// Takes a device out.
pub const CORDON: &str = "/v1/cordon";
/// Takes it back.
pub const UNCORDON: &str = "/v1/uncordon";
/// Gives devices up for a while.
pub const RELEASE: &str = "/v1/release";
/// Takes them back before that.
pub const RESUME: &str = "/v1/resume";

/// The text that a page has for an enum's value: that of its own serialisation, so that it is
/// written down once. Empty for what is not a plain word.
///
/// ```
/// assert_eq!(api::word(model::Tier::Working), "working");
/// ```
pub fn word(value: impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
