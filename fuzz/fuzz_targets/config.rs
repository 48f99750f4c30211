//! `ostler.yaml`: any text is a config or an error that can be shown.
#![no_main]

use config::{Config, Overrides};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match config::parse(text) {
        Ok(file) => drop(Config::resolve(Overrides::default(), file)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
