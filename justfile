# `just` lists the commands for developers. A build needs cargo alone.

fuzz_seconds := "60"

[private]
default:
    @just --list --unsorted

# Run all checks that a change must pass; CI runs the same
check:
    .ci/run

# Run the slow checks; `--list` shows the steps
slow *steps:
    .ci/slow {{ steps }}

# Run all tests
test *args:
    cargo test --workspace {{ args }}

# Run a simulated node in this terminal
demo *args:
    cargo run --release -- demo {{ args }}

# Measure the agent; see bench/README.md
bench *args:
    cargo run --release -p bench -- {{ args }}

# Measure the agent beside NVIDIA's programs; see bench/README.md
compare *args:
    bench/compare {{ args }}

# Fuzz one target, or list them; see fuzz/README.md
fuzz target="" seconds=fuzz_seconds:
    fuzz/run "{{ target }}" "{{ seconds }}"

# Read our specs with the published CDI crate; see crates/cdi/oracle/README.md
oracle:
    cargo build
    cargo test --manifest-path crates/cdi/oracle/Cargo.toml

# Test a made-up vendor in all crates; only this compiles the vendor; see CONTRIBUTING.md
acme:
    cargo test --manifest-path crates/vendors/acme/rules/Cargo.toml

# Check licences, sources, duplicates and advisories of the dependencies
deny *args:
    .ci/deny {{ args }}

# Format all code
fmt:
    cargo fmt --all
    cargo fmt --manifest-path fuzz/Cargo.toml
    cargo fmt --manifest-path crates/cdi/oracle/Cargo.toml
    cargo fmt --manifest-path crates/vendors/acme/rules/Cargo.toml
