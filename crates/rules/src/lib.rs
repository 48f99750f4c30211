//! The rules of a vendor's devices: the trait that each vendor implements in its own folder, and the
//! types that it speaks in. The boxes below take [`Vendors`] as an argument and name no vendor. Pure
//! functions.

pub mod cdi;
mod division;
mod edits;
mod event;
mod lists;
mod need;
mod specs;
mod table;
mod vendor;
mod vendors;

pub use self::{
    division::Standing,
    edits::{DeviceEdit, EditRequest, Edits, MountEdit, Note},
    event::Meaning,
    lists::{Lists, Reason, Runtime, resolve_lists},
    need::{Missing, Need},
    specs::{SpecRequest, SpecScope, Specs},
    table::Table,
    vendor::{PLAIN, Rules, Vendor},
    vendors::Vendors,
};
