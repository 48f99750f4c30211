//! The answer to an order that is not carried out.

use serde::{Deserialize, Serialize};

/// The reason an order is not carried out.
///
/// ```
/// let refusal = api::Refusal::wrong("no device is called `9`", "`ostler devices` lists them");
/// assert_eq!(refusal.status, 400);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The problem, for a person.
    pub error: String,
    /// The remedy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// The HTTP status that says so to a program; not part of the body.
    #[serde(skip)]
    pub status: u16,
}

// === impl Refusal ===

impl Refusal {
    /// A request that is wrong in itself: 400, Bad Request.
    pub fn wrong(error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            remedy: remedy.into(),
            status: 400,
        }
    }

    /// A request that something stands in the way of: 409, Conflict.
    pub fn hindered(error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            status: 409,
            ..Self::wrong(error, remedy)
        }
    }
}
