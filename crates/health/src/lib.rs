//! From what is seen of a device to a verdict with a cause and a way back. Pure: time is an
//! argument, nothing is read and nothing is kept outside the [`Record`].

mod record;
pub mod xid;

pub use self::record::{Now, Policy, Record, Sight};
