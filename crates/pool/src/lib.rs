//! Config and snapshot → offers: the devices under each resource name, whole, partitioned or
//! shared, and the ids that the kubelet sees. A device that is not offered is listed with the
//! reason. Pure functions.

mod aside;
mod assign;
mod hold;
mod name;
mod offer;
mod plan;
#[cfg(test)]
mod sample;
mod select;
mod share;

pub use self::{
    aside::{DeviceNotOffered, NotOfferedKind, NoteKind, PlanNote},
    hold::missing_requirement,
    name::{Error as NameError, resource_name, slug},
    offer::{Offer, Offers, Unit, UnitId},
    plan::{NodePlan, offers, plan_offers},
    select::{matches_selector, may_take},
    share::REPLICA_LIMIT,
};
