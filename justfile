# `just` lists what a developer does here. Nothing below is needed to build: cargo alone will do.

fuzz_seconds := "60"

[private]
default:
    @just --list --unsorted

# What every change must pass; CI runs the same
check:
    .ci/run

# What is too slow for every change; `--list` shows the steps
slow *steps:
    .ci/slow {{ steps }}

# All tests
test *args:
    cargo test --workspace {{ args }}

# Play a simulated node in this terminal
demo *args:
    cargo run --release -- demo {{ args }}

# Measure the agent; see bench/README.md
bench *args:
    cargo run --release -p bench -- {{ args }}

# Measure it beside NVIDIA's programs; see bench/README.md
compare *args:
    bench/compare {{ args }}

# Fuzz one target, or list them; see fuzz/README.md
fuzz target="" seconds=fuzz_seconds:
    fuzz/run "{{ target }}" "{{ seconds }}"

# What the published CDI crate makes of our specs; see crates/cdi/oracle/README.md
oracle:
    cargo build
    cargo test --manifest-path crates/cdi/oracle/Cargo.toml

# The whole way of a made-up vendor, which only this compiles; see CONTRIBUTING.md
acme:
    cargo test --manifest-path crates/vendors/acme/rules/Cargo.toml

# Licences, sources, duplicates and advisories of the dependencies
deny *args:
    .ci/deny {{ args }}

# Format all code
fmt:
    cargo fmt --all
    cargo fmt --manifest-path fuzz/Cargo.toml
    cargo fmt --manifest-path crates/cdi/oracle/Cargo.toml
    cargo fmt --manifest-path crates/vendors/acme/rules/Cargo.toml
