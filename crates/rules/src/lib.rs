//! Rules of a vendor's devices: the trait that each vendor implements in its own folder, and the
//! types of its arguments and answers. Other crates take [`Vendors`] as an argument and name no
//! vendor. Pure functions.

mod division;
mod edits;
mod event;
mod grant;
mod lists;
mod need;
mod nodes;
mod specs;
mod table;
mod vendor;
mod vendors;

pub use self::{
    division::Eligibility,
    edits::{ContainerEdits, ContainerNode, Hook, Mount, join_root},
    event::EventMeaning,
    grant::{EditRequest, Grant, GrantNote},
    lists::{CdiSupport, ListReason, ResolvedLists, resolve_lists},
    need::{MissingRequirement, ResourceNeed},
    nodes::NodeFacts,
    specs::{KindEdits, NamedEdits, SpecRequest, SpecScope, Specs},
    table::ScoreTable,
    vendor::{PLAIN, Rules, Vendor},
    vendors::Vendors,
};
