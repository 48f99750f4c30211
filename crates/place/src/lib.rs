//! Which units are best together. Pure functions that read an offer and nothing else.

mod prefer;

pub use self::prefer::{Error, prefer};
