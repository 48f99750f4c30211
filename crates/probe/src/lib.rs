//! The probe boundary: the protocol spoken over a child's standard streams, the backends that
//! run in the child, and the supervisor that keeps the child and survives it.

pub mod protocol;
