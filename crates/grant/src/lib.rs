//! Devices → edits of a container. Pure functions. [`edits`] is for any front end. [`check()`] and
//! [`grant()`] are for the device plugin, whose requests are ids of an offer.

mod check;
mod extra;
mod grant;
mod notes;

pub use self::{
    check::{Error, check},
    grant::{Ask, cdi_names, edits, grant},
    notes::notes,
};
