//! Tests of promises that all functions keep, for each function in the table of signatures.

use std::{ffi::c_uint, thread};

use sim::Effect;

use crate::{
    drive::{Driver, Function, Kind, Value, marked},
    rig::*,
};

const TABLE: &str = include_str!("../symbols.txt");
/// Room that is enough for each list and text of these profiles.
const ROOM: usize = 256;
/// Functions that work before NVML is initialised.
const EARLY: [&str; 4] = [
    "nvmlInit",
    "nvmlInit_v2",
    "nvmlInitWithFlags",
    "nvmlShutdown",
];

/// Driver with the handles of a node with cards, instances and MIG devices.
fn driver(rig: &Rig) -> Driver {
    let mut driver = Driver::new(&rig.node.driver_library(), TABLE);
    driver.learn();
    driver
}

/// Functions whose first argument is a handle of one of these kinds.
fn of<'a>(driver: &'a Driver, kinds: &'a [&str]) -> impl Iterator<Item = &'a Function> {
    driver
        .functions
        .iter()
        .filter(|function| match function.kinds.first() {
            Some(Kind::Handle(kind)) => kinds.contains(&kind.as_str()),
            _ => false,
        })
}

/// Calls a function with one argument replaced.
fn replaced(driver: &Driver, function: &Function, index: usize, value: Value) -> c_uint {
    let mut arguments = driver.sound(function, ROOM);
    arguments[index] = value;
    driver.call(function, &arguments).code
}

#[test]
fn the_table_has_all_functions_with_their_arguments() {
    let rig = Rig::cold("t4");
    let driver = Driver::new(&rig.node.driver_library(), TABLE);
    assert_eq!(driver.functions.len(), 397);
    for function in &driver.functions {
        assert!(function.kinds.len() <= 6, "{}", function.name);
    }
}

#[test]
fn nothing_works_before_initialising_nor_after_shutdown() {
    let rig = Rig::new("a100-mig");
    let driver = driver(&rig);
    ok!(rig.lib.nvmlShutdown());
    for function in &driver.functions {
        if EARLY.contains(&function.name.as_str()) {
            continue;
        }
        let code = driver.call(function, &driver.sound(function, ROOM)).code;
        assert_eq!(code, UNINITIALIZED, "{}", function.name);
    }
}

#[test]
fn null_is_refused_wherever_something_is_needed() {
    let rig = Rig::new("a100-mig");
    let driver = driver(&rig);
    let mut tried = 0;
    for function in &driver.functions {
        for (index, kind) in function.kinds.iter().enumerate() {
            if !kind.required() {
                continue;
            }
            let code = replaced(&driver, function, index, Value::Null);
            assert_eq!(code, INVALID_ARGUMENT, "{} {index}", function.name);
            tried += 1;
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn handles_that_lead_nowhere_are_refused() {
    let rig = Rig::new("a100-mig");
    let driver = driver(&rig);
    let kinds = ["device", "instance", "compute", "set", "unit", "sample"];
    for function in of(&driver, &kinds) {
        let Kind::Handle(kind) = &function.kinds[0] else {
            unreachable!()
        };
        let good = driver.handles.get(kind).map_or(0, |known| known[0] as u64);
        let other = if kind == "device" { "set" } else { "device" };
        let other = driver.handles[other][0] as u64;
        for wrong in [0, 1, u64::MAX, good + 1, good + 0x1_0000_0000, other] {
            let code = replaced(&driver, function, 0, Value::Plain(wrong));
            assert_eq!(code, INVALID_ARGUMENT, "{} {wrong:x}", function.name);
        }
    }
}

#[test]
fn other_versions_of_structs_are_refused() {
    let rig = Rig::new("a100-mig");
    let driver = driver(&rig);
    let mut tried = 0;
    for function in &driver.functions {
        for (index, kind) in function.kinds.iter().enumerate() {
            let size = match kind {
                Kind::Mark(known) => known.iter().map(|(size, _)| *size).max().unwrap(),
                Kind::Nest([size, ..]) => u32::try_from(*size).unwrap(),
                _ => continue,
            };
            for wrong in [(0, 0), (size, 0), (size, 99), (size + 4, 1), (size, 255)] {
                let code = replaced(&driver, function, index, marked(wrong, size as usize));
                assert_eq!(code, VERSION_MISMATCH, "{} {wrong:?}", function.name);
            }
            tried += 1;
        }
    }
    assert!(tried > 50, "{tried}");
}

#[test]
fn small_buffers_are_refused_and_not_overrun() {
    let rig = Rig::new("a100-mig");
    let driver = driver(&rig);
    for function in &driver.functions {
        if !function.kinds.contains(&Kind::Text) {
            continue;
        }
        for room in [0, 1, 3] {
            let code = driver.call(function, &driver.sound(function, room)).code;
            let name = function.name.as_str();
            let expected = match name {
                // A process that does not exist has no name, whatever the room.
                "nvmlSystemGetProcessName" if room == 0 => INVALID_ARGUMENT,
                "nvmlSystemGetProcessName" => NOT_FOUND,
                _ if name.starts_with("nvmlVgpu") => NOT_SUPPORTED,
                // The boards of these profiles do not have these facts.
                "nvmlDeviceGetBoardPartNumber"
                | "nvmlDeviceGetInforomImageVersion"
                | "nvmlDeviceGetInforomVersion" => code,
                _ => INSUFFICIENT_SIZE,
            };
            assert_eq!(code, expected, "{name} {room}");
        }
    }
}

#[test]
fn a_lost_card_answers_nothing_whatever_is_asked() {
    let rig = Rig::new("a100-mig");
    let driver = driver(&rig);
    rig.node.lose_cards(&target("0")).unwrap();
    for function in of(&driver, &["device", "instance", "compute"]) {
        let code = driver.call(function, &driver.sound(function, ROOM)).code;
        assert_eq!(code, GPU_IS_LOST, "{}", function.name);
    }
    rig.node.remove_gpu(&target("0")).unwrap();
    for function in of(&driver, &["device"]) {
        let code = driver.call(function, &driver.sound(function, ROOM)).code;
        assert_eq!(code, GPU_IS_LOST, "{}", function.name);
    }
    for function in of(&driver, &["instance", "compute"]) {
        let code = driver.call(function, &driver.sound(function, ROOM)).code;
        assert_eq!(code, INVALID_ARGUMENT, "{}", function.name);
    }
}

#[test]
fn every_function_can_be_failed_on_one_card() {
    let rig = Rig::new("a100-mig");
    let driver = driver(&rig);
    let fail = Effect::Fail { code: 27 };
    rig.node.set_fault("*", Some(&target("0")), fail).unwrap();
    for function in of(&driver, &["device", "instance", "compute"]) {
        let mut arguments = driver.sound(function, ROOM);
        let code = driver.call(function, &arguments).code;
        assert_eq!(code, 27, "{}", function.name);
        if function.kinds[0] == Kind::Handle("device".to_owned()) {
            arguments[0] = Value::Plain(rig.device(7) as u64);
            let code = driver.call(function, &arguments).code;
            assert_ne!(code, 27, "{}", function.name);
        }
    }
}

#[test]
fn instances_that_are_gone_are_refused() {
    let rig = Rig::new("a100-mig");
    let driver = driver(&rig);
    rig.node.set_mig(&target("0"), false).unwrap();
    for function in of(&driver, &["instance", "compute"]) {
        let code = driver.call(function, &driver.sound(function, ROOM)).code;
        assert_eq!(code, INVALID_ARGUMENT, "{}", function.name);
    }
}

#[test]
fn sixteen_threads_get_right_codes() {
    let rig = Rig::new("a100-mig");
    let driver = driver(&rig);
    let calm = [
        "Set", "Create", "Destroy", "Clear", "Reset", "Free", "Remove", "Shutdown",
    ];
    thread::scope(|scope| {
        for number in 0..16_usize {
            let (driver, rig) = (&driver, Shared(&rig));
            scope.spawn(move || {
                let rig = { rig }.0;
                // Some threads initialise and shut down; the others make all calls that change
                // nothing.
                if number % 4 == 0 {
                    for _ in 0..50 {
                        assert!(driver.ask("nvmlInit_v2", &[]).is_some());
                        assert!(driver.ask("nvmlDeviceGetCount_v2", &[]).is_some());
                        assert!(driver.ask("nvmlShutdown", &[]).is_some());
                    }
                    return;
                }
                if number % 4 == 1 {
                    for _ in 0..20 {
                        let set = driver.ask("nvmlEventSetCreate", &[]).unwrap();
                        let device = driver.handles["device"][0] as u64;
                        let register = driver.find("nvmlDeviceRegisterEvents");
                        let given = [device, 8, set].map(Value::Plain);
                        assert_eq!(driver.call(register, &given).code, SUCCESS);
                        rig.node.raise_xid(&target("0"), 31).unwrap();
                        let wait = driver.find("nvmlEventSetWait_v2");
                        let room = Value::Bytes(vec![0; 32]);
                        let given = [Value::Plain(set), room, Value::Plain(30_000)];
                        assert_eq!(driver.call(wait, &given).code, SUCCESS);
                        let free = driver.find("nvmlEventSetFree");
                        assert_eq!(driver.call(free, &[Value::Plain(set)]).code, SUCCESS);
                    }
                    return;
                }
                for function in &driver.functions {
                    let name = function.name.as_str();
                    if calm.iter().any(|word| name.contains(word)) || name.starts_with("nvmlInit") {
                        continue;
                    }
                    let code = driver.call(function, &driver.sound(function, ROOM)).code;
                    assert!(![UNINITIALIZED, UNKNOWN].contains(&code), "{name} {code}");
                }
            });
        }
    });
    assert_eq!(rig.temperature(rig.device(0)), Ok(29));
}

/// A rig for other threads.
struct Shared<'a>(&'a Rig);

// SAFETY: NVML may be called from any thread; the library locks its state.
unsafe impl Send for Shared<'_> {}
