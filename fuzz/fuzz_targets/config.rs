//! `ostler.yaml`: any text is an error that can be shown, or a config; and the config that it
//! comes to, written as `ostler config explain` writes it, is the same config.
#![no_main]

use config::{Config, Origin, Overrides, Resolved};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match config::parse("ostler.yaml", text) {
        Ok(file) => {
            let resolved = Resolved::new(Overrides::default(), file, &Origin::flag);
            let yaml = resolved.to_yaml();
            match config::parse("again.yaml", &yaml) {
                Ok(again) => {
                    let again = Config::resolve(Overrides::default(), again);
                    assert!(again == resolved.config, "not the same:\n{yaml}");
                }
                Err(error) => panic!("cannot read back:\n{yaml}\n{error}"),
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
