//! State file: any bytes are parsed or refused. In both cases an agent starts and writes a state
//! that the next agent can read.
#![no_main]

#[path = "../../crates/inventory/tests/restart/start.rs"]
mod start;

use libfuzzer_sys::fuzz_target;

thread_local! {
    static STARTS: start::Starts = start::Starts::new();
}

fuzz_target!(|bytes: &[u8]| STARTS.with(|starts| starts.check(bytes)));
