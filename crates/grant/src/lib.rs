//! Devices → edits of a container. Pure functions. [`make_edits`] is for any front end. [`check_ids`] and
//! [`grant_ids`] are for the device plugin, whose requests are ids of an offer.

mod check;
mod extra;
mod grant;
mod notes;

pub use self::{
    check::{Error, check_ids},
    grant::{DeviceRequest, cdi_names, grant_ids, make_edits},
    notes::handover_notes,
};
