//! What the driver and the kernel write into files and names: any text is read or passed over.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| nvidia_probe::read_text(text));
