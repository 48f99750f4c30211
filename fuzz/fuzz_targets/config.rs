//! `ostler.yaml`: any text gives an error that can be shown, or a config. The output of `ostler
//! config explain` for that config gives the same config.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match config::parse_native("ostler.yaml", text) {
        Ok(resolved) => {
            let yaml = resolved.to_yaml();
            match config::parse_native("again.yaml", &yaml) {
                Ok(again) => assert!(again.config == resolved.config, "not the same:\n{yaml}"),
                Err(error) => panic!("cannot read back:\n{yaml}\n{error}"),
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
