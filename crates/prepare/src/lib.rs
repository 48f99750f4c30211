//! Preparation of devices before a container starts on them: nobody else may be at work on them, or
//! they are reset, or a command of the user's runs first. Nothing here asks a driver; it waits for
//! what the probe says.

mod command;
mod preparer;
mod reset;

pub use self::preparer::Preparer;
