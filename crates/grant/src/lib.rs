//! Ids → what the container gets. Pure functions that read an offer and nothing else.

pub mod cdi;
mod check;
mod grant;
mod notes;

pub use self::{
    check::Error,
    grant::{cdi_names, grant},
    notes::notes,
};
