//! Ids → what the container gets. Pure functions that read an offer and nothing else.

mod edits;

pub use self::edits::{DeviceEdit, Edits, Error, grant};
