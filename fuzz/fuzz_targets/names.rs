//! Short texts of flags, configs and files: a parsed text is formatted in a form that parses to the
//! same value.
#![no_main]

use std::{fmt::Display, str::FromStr};

use config::Period;
use libfuzzer_sys::fuzz_target;
use model::{CardRef, PciAddress, ResourceName};
use sim::DeviceTarget;

fuzz_target!(|text: &str| {
    round::<PciAddress>(text);
    round::<ResourceName>(text);
    round::<CardRef>(text);
    round::<Period>(text);
    round::<DeviceTarget>(text);
});

fn round<T>(text: &str)
where
    T: FromStr<Err: Display> + Display + PartialEq,
{
    match text.parse::<T>() {
        Ok(value) => {
            let written = value.to_string();
            match written.parse::<T>() {
                Ok(again) => assert!(again == value, "{written} is not the same"),
                Err(error) => panic!("cannot read back {written}: {error}"),
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
