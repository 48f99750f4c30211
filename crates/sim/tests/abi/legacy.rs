//! Tests of older function versions, which programs built long ago still call: a function writes
//! only as much as its callers have room for.

use std::ffi::{c_uint, c_void};

use libloading::Library;
use nvml_wrapper_sys::bindings::nvmlDevice_t;

use crate::rig::*;

/// A function of the library.
macro_rules! function {
    ($library:expr, $name:literal, fn($($arg:ty),*)) => {{
        // SAFETY: the signature is that of NVML's header.
        let found = unsafe {
            $library.get::<unsafe extern "C" fn($($arg),*) -> c_uint>($name.as_bytes())
        };
        found.unwrap()
    }};
}

fn library(rig: &Rig) -> Library {
    // SAFETY: the library is loaded already; this is one more reference to it.
    unsafe { Library::new(rig.node.driver_library()) }.unwrap()
}

#[test]
fn the_first_versions_find_the_same_cards() {
    let rig = Rig::cold("dgx-a100");
    let library = library(&rig);
    let init = function!(library, "nvmlInit", fn());
    let count = function!(library, "nvmlDeviceGetCount", fn(*mut c_uint));
    let handle = function!(
        library,
        "nvmlDeviceGetHandleByIndex",
        fn(c_uint, *mut nvmlDevice_t)
    );
    ok!(init());
    assert_eq!(number(|o| code!(count(o))), Ok(8_u32));
    let mut device = std::ptr::null_mut();
    ok!(handle(4, &raw mut device));
    assert_eq!(device, rig.device(4));
}

#[test]
fn older_structs_are_not_written_beyond_their_end() {
    let rig = Rig::new("dgx-a100");
    let library = library(&rig);
    let pci = function!(
        library,
        "nvmlDeviceGetPciInfo_v2",
        fn(nvmlDevice_t, *mut c_void)
    );
    let mut bytes = [0xee_u8; 68];
    ok!(pci(rig.device(0), bytes.as_mut_ptr().cast()));
    assert_eq!(&bytes[..13], b"0000:07:00.0\0");
    assert!(bytes[36..].iter().all(|byte| *byte == 0xee));

    let wait = function!(
        library,
        "nvmlEventSetWait",
        fn(*mut c_void, *mut c_void, c_uint)
    );
    let mut set = std::ptr::null_mut();
    ok!(rig.lib.nvmlEventSetCreate(&raw mut set));
    ok!(rig.lib.nvmlDeviceRegisterEvents(rig.device(0), 8, set));
    rig.node.raise_xid(&target("0"), 79).unwrap();
    let mut words = [u64::MAX - 1; 4];
    ok!(wait(set.cast(), words.as_mut_ptr().cast(), 5000));
    assert_eq!(words, [rig.device(0) as u64, 8, 79, u64::MAX - 1]);
}
