//! YAML profiles of simulated machines: any text gives a machine or an error that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::Profile;

fuzz_target!(|text: &str| {
    match Profile::parse(text) {
        Ok(profile) => {
            let state = profile.state().expect("a profile that was read is sound");
            assert_eq!(state.check(), Ok(()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
