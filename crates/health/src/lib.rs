//! From what is seen of a device to a verdict with a cause and a way back. Pure: time is an
//! argument, nothing is read and nothing is kept outside the [`Record`].

mod check;
mod history;
mod policy;
mod record;
mod saved;
mod sight;

pub use self::{
    check::Check,
    history::{History, compare},
    policy::Policy,
    record::Record,
    saved::{Continuity, Saved, SavedFile, prune},
    sight::{Now, Sight},
};
