//! YAML profiles of simulated machines: any text gives a machine or an error that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::NodeProfile;

fuzz_target!(|text: &str| {
    match NodeProfile::parse_profile(text) {
        Ok(profile) => {
            let state = profile
                .to_state()
                .expect("a profile that was read is sound");
            assert_eq!(state.check_state(), Ok(()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
