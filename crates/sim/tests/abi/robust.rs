//! Robustness tests: with any content of the node's folder and any arguments, the library returns a
//! code.

use std::{
    ffi::c_uint,
    path::PathBuf,
    sync::{LazyLock, Mutex},
};

use nvml_wrapper_sys::bindings::*;
use proptest::prelude::*;

use crate::{chaos, drive::Driver, rig::*};

#[test]
fn without_a_state_there_is_no_driver() {
    let rig = Rig::cold("t4");
    let state = rig.node.node_dir().join("node.json");
    let good = fs_err::read(&state).unwrap();
    fs_err::remove_file(&state).unwrap();
    assert_eq!(code!(rig.lib.nvmlInit_v2()), DRIVER_NOT_LOADED);
    fs_err::write(&state, "{").unwrap();
    assert_eq!(code!(rig.lib.nvmlInit_v2()), DRIVER_NOT_LOADED);
    fs_err::write(&state, good).unwrap();
    ok!(rig.lib.nvmlInit_v2());
}

#[test]
fn a_state_that_breaks_later_makes_calls_fail_until_it_is_whole_again() {
    let rig = Rig::new("t4");
    let device = rig.device(0);
    let state = rig.node.node_dir().join("node.json");
    let good = fs_err::read(&state).unwrap();
    fs_err::write(&state, &good[..good.len() / 2]).unwrap();
    assert_eq!(rig.temperature(device), Err(UNKNOWN));
    fs_err::write(&state, good).unwrap();
    assert_eq!(rig.temperature(device), Ok(34));
}

#[test]
fn handles_that_were_never_given_are_refused() {
    let rig = Rig::new("t4");
    let set = {
        let mut set = std::ptr::null_mut();
        ok!(rig.lib.nvmlEventSetCreate(&raw mut set));
        set as usize
    };
    for wrong in [
        0,
        1,
        usize::MAX,
        rig.device(0) as usize + 1,
        rig.device(0) as usize + 0x10000,
        set,
    ] {
        assert_eq!(
            rig.temperature(wrong as nvmlDevice_t),
            Err(INVALID_ARGUMENT),
            "{wrong:x}"
        );
    }
}

#[test]
fn threads_may_outlive_a_library_that_is_closed() {
    let rig = Rig::cold("t4");
    let path = rig.node.driver_library();
    drop(rig.lib);
    std::thread::spawn(move || {
        // SAFETY: the library's initialisers do nothing.
        let lib = unsafe { NvmlLib::new(path) }.unwrap();
        let mut device = std::ptr::null_mut();
        ok!(lib.nvmlInit_v2());
        ok!(lib.nvmlDeviceGetHandleByIndex_v2(0, &raw mut device));
        ok!(lib.nvmlDeviceSetComputeMode(device, 3));
        ok!(lib.nvmlShutdown());
    })
    .join()
    .unwrap();
    assert_eq!(
        rig.node.node_state().unwrap().gpus[0].settings.compute_mode,
        3
    );
}

/// One rig for all cases: creating a node costs more than the calls.
static RIG: LazyLock<(Shared, Vec<u8>)> = LazyLock::new(|| {
    let rig = Rig::new("a100-mig");
    let good = fs_err::read(rig.node.node_dir().join("node.json")).unwrap();
    (Shared(rig), good)
});

struct Shared(Rig);

// SAFETY: NVML may be called from any thread; the library locks its state.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// Makes each kind of call that reads the state.
fn ask(rig: &Rig) {
    let lib = &rig.lib;
    let count = number::<c_uint>(|o| code!(lib.nvmlDeviceGetCount_v2(o))).unwrap_or(0);
    for index in 0..count.min(9) {
        let mut device = std::ptr::null_mut();
        if code!(lib.nvmlDeviceGetHandleByIndex_v2(index, &raw mut device)) != SUCCESS {
            continue;
        }
        let _ = rig.temperature(device);
        let _ = text(|b, n| code!(lib.nvmlDeviceGetName(device, b, n)));
        // SAFETY: structs of numbers.
        let (mut pci, mut memory): (nvmlPciInfo_t, nvmlMemory_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        code!(lib.nvmlDeviceGetPciInfo_v3(device, &raw mut pci));
        code!(lib.nvmlDeviceGetMemoryInfo(device, &raw mut memory));
        let mut cpus = [0; 2];
        code!(lib.nvmlDeviceGetCpuAffinity(device, 2, cpus.as_mut_ptr()));
        let (mut level, mut room, mut mig) = (0, 0, std::ptr::null_mut());
        code!(lib.nvmlDeviceGetTopologyCommonAncestor(device, device, &raw mut level));
        code!(lib.nvmlDeviceGetGpuInstanceRemainingCapacity(device, 19, &raw mut room));
        if code!(lib.nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &raw mut mig)) == SUCCESS {
            // SAFETY: a struct of numbers.
            let mut attributes = unsafe { std::mem::zeroed() };
            code!(lib.nvmlDeviceGetAttributes_v2(mig, &raw mut attributes));
        }
    }
}

/// A number that replaces another one: limits of the integer types.
fn odd() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "0",
        "-1",
        "4294967295",
        "18446744073709551615",
        "1e9",
        "\"x\"",
        "null",
        "[]",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_state_file_crashes_the_library(bytes: Vec<u8>, cut in 0_usize..40_000, at in 0_usize..40_000, value in odd()) {
        let (Shared(rig), good) = &*RIG;
        let file = rig.node.node_dir().join("node.json");
        // Any bytes; a good file cut short; a good file with one number replaced.
        let text = std::str::from_utf8(good).unwrap();
        let at = at % text.len();
        let number = text[at..].find(|c: char| c.is_ascii_digit()).map_or(text.len(), |n| at + n);
        let end = text[number..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |n| number + n);
        let changed = format!("{}{value}{}", &text[..number], &text[end..]);
        for content in [&bytes[..], &good[..cut % good.len()], changed.as_bytes(), good] {
            fs_err::write(&file, content).unwrap();
            ask(rig);
        }
        prop_assert_eq!(number_of(rig), Ok(8));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_calls_in_any_order_break_the_library(bytes in prop::collection::vec(any::<u8>(), 0..800)) {
        let (driver, state, good) = &mut *DRIVER.lock().unwrap();
        fs_err::write(state, good).unwrap();
        chaos::run(driver, &bytes);
    }
}

/// Library of its own, the state file of its node, and the original content of that file.
static DRIVER: LazyLock<Mutex<(Driver, PathBuf, Vec<u8>)>> = LazyLock::new(|| {
    let rig = Rig::cold("a100-mig");
    let driver = Driver::new(&rig.node.driver_library(), include_str!("../symbols.txt"));
    let state = rig.node.node_dir().join("node.json");
    let good = fs_err::read(&state).unwrap();
    // The node must stay until the process ends.
    std::mem::forget(rig);
    Mutex::new((driver, state, good))
});

fn number_of(rig: &Rig) -> Result<c_uint, u32> {
    number(|o| code!(rig.lib.nvmlDeviceGetCount_v2(o)))
}
