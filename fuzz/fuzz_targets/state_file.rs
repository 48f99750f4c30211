//! The state file: any bytes are a state or refused, and an agent starts on them either way and
//! keeps a state on which the next one starts.
#![no_main]

#[path = "../../crates/inventory/tests/restart/start.rs"]
mod start;

use libfuzzer_sys::fuzz_target;

thread_local! {
    static STARTS: start::Starts = start::Starts::new();
}

fuzz_target!(|bytes: &[u8]| STARTS.with(|starts| starts.check(bytes)));
