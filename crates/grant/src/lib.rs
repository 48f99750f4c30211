//! Ids → what the container gets. Pure functions that read an offer and nothing else.

pub mod cdi;
mod check;
mod edits;
mod grant;
mod lists;
mod names;
mod notes;

#[cfg(test)]
mod fixture;

pub use self::{
    check::Error,
    edits::{DeviceEdit, Edits, MountEdit},
    grant::{cdi_names, grant},
    lists::{Lists, Reason, Runtime, resolve_lists},
    notes::{Note, notes},
};
