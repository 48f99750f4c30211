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
    division::Standing,
    edits::{ContainerEdits, DeviceNode, Hook, Mount, under},
    event::Meaning,
    grant::{EditRequest, Grant, Note},
    lists::{Lists, Reason, Runtime, resolve_lists},
    need::{Missing, Need},
    nodes::Nodes,
    specs::{KindEdits, NamedEdits, SpecRequest, SpecScope, Specs},
    table::Table,
    vendor::{PLAIN, Rules, Vendor},
    vendors::Vendors,
};
