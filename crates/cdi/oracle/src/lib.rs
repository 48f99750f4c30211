//! Nothing but tests: what the published CDI crate makes of our specs.
