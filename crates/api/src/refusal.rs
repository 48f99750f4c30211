//! Answer to an order that is refused.

use serde::{Deserialize, Serialize};

/// The reason an order is not carried out.
///
/// ```
/// let refusal = api::OrderRefusal::bad_request("no device is called `9`", "`ostler devices` lists them");
/// assert_eq!(refusal.status, 400);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderRefusal {
    /// Description of the problem, for people.
    pub error: String,
    /// Suggested remedy; absent if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// HTTP status of the answer. Not part of the body.
    #[serde(skip)]
    pub status: u16,
}

// === impl OrderRefusal ===

impl OrderRefusal {
    /// Builds the refusal of an invalid request: 400 Bad Request.
    pub fn bad_request(error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            remedy: remedy.into(),
            status: 400,
        }
    }

    /// Builds the refusal of a valid request that cannot be carried out at present: 409 Conflict.
    pub fn hindered(error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            status: 409,
            ..Self::bad_request(error, remedy)
        }
    }
}
