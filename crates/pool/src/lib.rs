//! Snapshot → offers: which devices go under which resource name, and the ids the kubelet sees.
//! Pure functions.

mod offer;
mod partition;

pub use self::{
    offer::{Offer, Offers, Unit, UnitId},
    partition::offers,
};
