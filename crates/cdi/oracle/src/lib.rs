//! Test-only package: the published CDI crate reads our specs.
