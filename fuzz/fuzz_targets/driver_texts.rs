//! Texts of the driver and the kernel in files and names: any text is parsed or skipped.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| nvidia_probe::read_text(text));
