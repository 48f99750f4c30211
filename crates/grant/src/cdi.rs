//! Checks of CDI specs, whoever wrote them.

mod check;

pub use self::check::{Problem, Severity, check};
