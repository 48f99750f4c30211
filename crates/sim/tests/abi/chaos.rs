//! Arbitrary calls in any order with any arguments, derived from bytes; for proptest and the
//! fuzzer.

use super::drive::{Driver, Function, Kind, Value, marked};

/// Limit of calls in one run.
const CALLS: usize = 48;
/// Limit of handles that are remembered.
const HANDLES: usize = 64;
/// First handle of the library.
const FIRST_HANDLE: u64 = 0x0517_1e70_0000;

/// Bytes that are taken one after the other; zeros after the end.
struct Source<'a>(&'a [u8]);

// === impl Source ===

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=199 => u64::from(small % 40),
            200..=219 => u64::from(self.byte()) << 8 | u64::from(self.byte()),
            220..=229 => u64::from(u32::MAX),
            230..=239 => u64::from(i32::MAX.unsigned_abs()),
            240..=247 => u64::MAX,
            _ => 1 << (self.byte() % 64),
        }
    }

    fn below(&mut self, end: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % end.max(1)
    }

    fn fill(&mut self, length: usize) -> Vec<u8> {
        let pattern = self.byte();
        let mut bytes = vec![pattern; length];
        for byte in bytes.iter_mut().take(16) {
            *byte = byte.wrapping_add(self.byte());
        }
        bytes
    }
}

/// Makes the calls that the bytes describe. NVML is initialised at the beginning; at the end it may
/// not be.
///
/// # Panics
/// If the library breaks its contract.
pub(crate) fn run(driver: &mut Driver, bytes: &[u8]) {
    let mut source = Source(bytes);
    driver.ask("nvmlInit_v2", &[]).expect("the node is whole");
    driver.learn();
    for _ in 0..CALLS {
        if source.0.is_empty() {
            break;
        }
        step(driver, &mut source);
    }
    while driver.ask("nvmlShutdown", &[]).is_some() {}
}

fn step(driver: &mut Driver, source: &mut Source<'_>) {
    let function = driver.functions[source.below(driver.functions.len())].clone();
    let room = usize::from(source.byte() % 20);
    let mut arguments: Vec<Value> = Vec::with_capacity(function.kinds.len());
    for kind in &function.kinds {
        arguments.push(argument(driver, source, kind, room));
    }
    let missing = function.kinds.iter().zip(&arguments);
    let missing = missing.filter(|(kind, value)| kind.required() && matches!(value, Value::Null));
    let missing = missing.count();
    let outcome = driver.call(&function, &arguments);
    let name = &function.name;
    assert!(missing == 0 || outcome.code != 0, "{name} took NULL");
    if outcome.code == 0 {
        remember(driver, &function, outcome.bytes);
    }
}

fn argument(driver: &Driver, source: &mut Source<'_>, kind: &Kind, room: usize) -> Value {
    let odd = source.byte();
    // NULL in some cases.
    if odd < 16 && !matches!(kind, Kind::Number | Kind::Time | Kind::Room | Kind::Size) {
        return Value::Null;
    }
    match kind {
        Kind::Handle(_) => Value::Plain(handle(driver, source, kind, odd)),
        Kind::Number => Value::Plain(source.number()),
        Kind::Time => Value::Plain(u64::from(source.byte() % 4)),
        Kind::Out(size) | Kind::All(size) | Kind::Perhaps(size) => Value::Bytes(source.fill(*size)),
        Kind::Mark(known) => {
            let chosen = known[source.below(known.len())];
            let largest = known.iter().map(|(size, _)| *size).max().unwrap_or(4);
            let length = chosen.0 as usize;
            match odd {
                // A version that the function does not know, with as much memory as it could use.
                16..=63 => {
                    let version = (chosen.0, u32::from(source.byte()));
                    marked(version, largest as usize)
                }
                _ => overlay(marked(chosen, length), source),
            }
        }
        Kind::Array(element) => Value::Bytes(fields(source, element * room)),
        Kind::Nest(_) if odd < 96 => kind.sound(&driver.handles, 0),
        Kind::Given => {
            let length = usize::from(source.byte() % 48);
            let mut bytes = source.fill(length);
            bytes.push(0);
            Value::Bytes(bytes)
        }
        _ => kind.sound(&driver.handles, room),
    }
}

/// Array whose elements begin with small numbers, as the elements of calls for fields do.
fn fields(source: &mut Source<'_>, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for element in bytes.chunks_mut(40) {
        element[0] = source.byte();
    }
    bytes
}

/// Structure with arbitrary bytes behind its version mark.
fn overlay(value: Value, source: &mut Source<'_>) -> Value {
    let Value::Bytes(mut bytes) = value else {
        return value;
    };
    let rest = source.fill(bytes.len() - 4);
    bytes[4..].copy_from_slice(&rest);
    Value::Bytes(bytes)
}

/// Handle: mostly a valid one of its kind, else one of another kind or an invalid one.
fn handle(driver: &Driver, source: &mut Source<'_>, kind: &Kind, odd: u8) -> u64 {
    let Kind::Handle(kind) = kind else { return 0 };
    let all = || driver.handles.values().flatten().copied();
    let own = driver.handles.get(kind).cloned().unwrap_or_default();
    let (own, all): (Vec<usize>, Vec<usize>) = (own, all().collect());
    let pick = |list: &[usize], source: &mut Source<'_>| {
        list.get(source.below(list.len()))
            .map_or(0, |handle| *handle as u64)
    };
    match odd {
        16..=39 => pick(&all, source),
        40..=47 => pick(&all, source).wrapping_add(1),
        48..=55 => FIRST_HANDLE + u64::from(source.byte()) * 0x100,
        56..=63 => source.number(),
        _ => pick(&own, source),
    }
}

/// Stores the handles that a call returned. Later calls use them, or find them stale.
fn remember(driver: &mut Driver, function: &Function, bytes: Vec<Option<Vec<u8>>>) {
    let kind = match function.name.as_str() {
        "nvmlEventSetCreate" => "set",
        name if name.contains("ComputeInstance") => "compute",
        name if name.contains("GpuInstance") => "instance",
        _ => "device",
    };
    let known = driver.handles.entry(kind.to_owned()).or_default();
    for word in bytes.iter().flatten().filter(|bytes| bytes.len() == 8) {
        let word = u64::from_ne_bytes(word.as_slice().try_into().unwrap());
        let near = (FIRST_HANDLE..FIRST_HANDLE + 0x1000_0000).contains(&word);
        let word = usize::try_from(word).unwrap();
        if near && known.len() < HANDLES && !known.contains(&word) {
            known.push(word);
        }
    }
}
