//! Calls any function of the library with any arguments, from a table of signatures.
//!
//! A line of the table is a function's name and its parameters: a handle (`device`, `instance`,
//! `compute`, `set`, `unit`, `sample`), a number (`num`, `long`, `time`, `room` for the length of
//! the text before it, `size` for the size of the array after it), or a pointer: `out:SIZE`,
//! `mark:SIZE:VERSION` for a structure that begins with its version,
//! `nest:SIZE:VERSION:COUNT:POINTER:ELEMENT` for one with a list at these offsets, `text`, `given`
//! for a text that is read, `count` with the room of a `list:ELEMENT`, `array:ELEMENT`,
//! `all:ELEMENT:ROOM` if the contract requires the room, and `perhaps:ELEMENT:ROOM` if that may be
//! NULL.
//!
//! Guard bytes lie behind each buffer. A call that changes them is a defect of the library.

use std::{collections::BTreeMap, ffi::c_void, path::Path};

/// Value of the guard bytes behind each buffer, and their number.
const GUARD: u8 = 0xa5;
const GUARD_LENGTH: usize = 64;
/// Last of NVML's codes except for `NVML_ERROR_UNKNOWN`.
const LAST_CODE: u32 = 30;
const UNKNOWN: u32 = 999;

/// Kind of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A handle of this kind.
    Handle(String),
    /// A number.
    Number,
    /// Timeout in milliseconds.
    Time,
    /// Length of the text before it.
    Room,
    /// Size of the array after it.
    Size,
    /// Room for a value of this many bytes.
    Out(usize),
    /// A structure that begins with its version: sizes and versions that the function knows.
    Mark(Vec<(u32, u32)>),
    /// A structure with its version and a list: size, version, offsets of count and pointer,
    /// element size.
    Nest([usize; 5]),
    /// Room for a text.
    Text,
    /// A text that is read.
    Given,
    /// Room of a list on input, its length on output.
    Count,
    /// A list of elements of this size; may be NULL.
    List(usize),
    /// An array of elements of this size.
    Array(usize),
    /// Room that the contract requires.
    All(usize),
    /// The same, but it may be NULL.
    Perhaps(usize),
}

/// A function of the table.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// Name of the function.
    pub(crate) name: String,
    /// Kinds of the parameters.
    pub(crate) kinds: Vec<Kind>,
}

/// The loaded library, with the table of its functions.
#[derive(Debug)]
pub(crate) struct Driver {
    library: libloading::Library,
    /// All functions that return a code.
    pub(crate) functions: Vec<Function>,
    /// Valid handles, by kind.
    pub(crate) handles: BTreeMap<String, Vec<usize>>,
}

/// Value of an argument.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A handle or a number.
    Plain(u64),
    /// NULL.
    Null,
    /// Memory with this content.
    Bytes(Vec<u8>),
    /// A structure with a list: its content, the list's content, and the offset of the pointer.
    Nested(Vec<u8>, Vec<u8>, usize),
}

/// Result of a call.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// NVML's return code.
    pub(crate) code: u32,
    /// Contents of the buffers after the call, for each argument that has one.
    pub(crate) bytes: Vec<Option<Vec<u8>>>,
}

/// Memory of the caller behind a pointer, aligned for any structure.
struct Buffer {
    words: Vec<u128>,
    length: usize,
}

// === impl Kind ===

impl Kind {
    fn parse(text: &str) -> Self {
        let mut parts = text.split(':');
        let name = parts.next().unwrap();
        let rest = text.split_once(':').map_or("", |(_, rest)| rest);
        let numbers: Vec<usize> = rest
            .split([':', ','])
            .filter_map(|n| n.parse().ok())
            .collect();
        match name {
            "num" | "long" => Self::Number,
            "time" => Self::Time,
            "room" => Self::Room,
            "size" => Self::Size,
            "out" => Self::Out(numbers[0]),
            "mark" => {
                let pair = |pair: &[usize]| (narrow(pair[0]), narrow(pair[1]));
                Self::Mark(numbers.chunks(2).map(pair).collect())
            }
            "nest" => Self::Nest(numbers.try_into().unwrap()),
            "text" => Self::Text,
            "given" => Self::Given,
            "count" => Self::Count,
            "list" => Self::List(numbers[0]),
            "array" => Self::Array(numbers[0]),
            "all" => Self::All(numbers[0] * numbers[1]),
            "perhaps" => Self::Perhaps(numbers[0] * numbers[1]),
            handle => Self::Handle(handle.to_owned()),
        }
    }

    /// True if the function rejects NULL here.
    pub(crate) fn required(&self) -> bool {
        matches!(
            self,
            Self::Out(_)
                | Self::Mark(_)
                | Self::Nest(_)
                | Self::Text
                | Self::Given
                | Self::Count
                | Self::Array(_)
                | Self::All(_)
        )
    }

    /// Valid argument; lists have room for `room` elements.
    pub(crate) fn sound(&self, handles: &BTreeMap<String, Vec<usize>>, room: usize) -> Value {
        let number = |number: usize| narrow(number).to_ne_bytes().to_vec();
        match self {
            Self::Handle(kind) => {
                let known = handles.get(kind).and_then(|known| known.first());
                Value::Plain(known.copied().unwrap_or(0) as u64)
            }
            Self::Number | Self::Time => Value::Plain(0),
            Self::Room | Self::Size => Value::Plain(room as u64),
            Self::Out(size) | Self::All(size) | Self::Perhaps(size) => Value::Bytes(vec![0; *size]),
            Self::Mark(known) => marked(known[0], known[0].0 as usize),
            Self::Nest([size, version, count, pointer, element]) => {
                let Value::Bytes(mut bytes) = marked((narrow(*size), narrow(*version)), *size)
                else {
                    return Value::Null;
                };
                bytes[*count..*count + 4].copy_from_slice(&number(room));
                Value::Nested(bytes, vec![0; element * room], *pointer)
            }
            Self::Text => Value::Bytes(vec![0; room]),
            Self::Given => Value::Bytes(b"0000:07:00.0\0".to_vec()),
            Self::Count => Value::Bytes(number(room)),
            Self::List(element) | Self::Array(element) => Value::Bytes(vec![0; element * room]),
        }
    }
}

// === impl Driver ===

impl Driver {
    /// Loads a library and reads the table.
    pub(crate) fn new(library: &Path, table: &str) -> Self {
        // SAFETY: the library has no initialisers that do anything.
        let library = unsafe { libloading::Library::new(library) }.unwrap();
        let function = |line: &str| {
            let mut words = line.split(' ');
            let name = words.next().unwrap().to_owned();
            let kinds = words.map(Kind::parse).collect();
            Function { name, kinds }
        };
        // `nvmlErrorString` is the only function that returns a text in place of a code.
        let functions = table.lines().filter(|line| *line != "nvmlErrorString");
        Self {
            library,
            functions: functions.map(function).collect(),
            handles: BTreeMap::new(),
        }
    }

    /// Finds the function of this name.
    pub(crate) fn find(&self, name: &str) -> &Function {
        let found = self.functions.iter().find(|function| function.name == name);
        found.unwrap_or_else(|| panic!("{name} is not in the table"))
    }

    /// Valid arguments for a function; lists have room for `room` elements.
    pub(crate) fn sound(&self, function: &Function, room: usize) -> Vec<Value> {
        let sound = |kind: &Kind| kind.sound(&self.handles, room);
        function.kinds.iter().map(sound).collect()
    }

    /// Calls a function by its name with numbers only, and returns the first value that it wrote.
    pub(crate) fn ask(&self, name: &str, values: &[u64]) -> Option<u64> {
        let function = self.find(name);
        let mut values = values.iter();
        let argument = |kind: &Kind| match kind {
            Kind::Out(size) => Value::Bytes(vec![0; *size]),
            _ => Value::Plain(values.next().copied().unwrap_or(0)),
        };
        let arguments: Vec<_> = function.kinds.iter().map(argument).collect();
        let outcome = self.call(function, &arguments);
        let bytes = outcome.bytes.into_iter().flatten().next();
        let mut first = bytes.unwrap_or_default();
        first.resize(8, 0);
        (outcome.code == 0).then(|| u64::from_ne_bytes(first.try_into().unwrap()))
    }

    /// Collects the handles of all cards and their instances. NVML must be initialised.
    pub(crate) fn learn(&mut self) {
        let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut keep = |kind: &str, handle: Option<u64>| {
            let list = found.entry(kind.to_owned()).or_default();
            list.extend(handle.map(|handle| usize::try_from(handle).unwrap()));
            handle
        };
        for index in 0..16 {
            let card = self.ask("nvmlDeviceGetHandleByIndex_v2", &[index]);
            let Some(card) = keep("device", card) else {
                break;
            };
            for id in 0..15 {
                let instance = self.ask("nvmlDeviceGetGpuInstanceById", &[card, id]);
                let Some(instance) = keep("instance", instance) else {
                    continue;
                };
                for id in 0..2 {
                    let by_id = "nvmlGpuInstanceGetComputeInstanceById";
                    keep("compute", self.ask(by_id, &[instance, id]));
                }
            }
            for index in 0..2 {
                let mig = self.ask("nvmlDeviceGetMigDeviceHandleByIndex", &[card, index]);
                keep("device", mig);
            }
        }
        keep("set", self.ask("nvmlEventSetCreate", &[]));
        self.handles = found;
    }

    /// Calls a function.
    ///
    /// # Panics
    /// If the function writes behind a buffer, or returns a code that NVML does not have.
    pub(crate) fn call(&self, function: &Function, arguments: &[Value]) -> Outcome {
        type Any = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64) -> u32;
        let name = &function.name;
        // SAFETY: all arguments of NVML's functions are numbers and pointers, six at most, and go
        // where integers go; what a function does not take it does not look at.
        let entry = unsafe { self.library.get::<Any>(name.as_bytes()) };
        let entry = entry.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut buffers: Vec<(usize, Buffer)> = Vec::new();
        let mut lists: Vec<Buffer> = Vec::new();
        let mut given = [0_u64; 6];
        for (index, argument) in arguments.iter().enumerate() {
            given[index] = match argument {
                Value::Plain(number) => *number,
                Value::Null => 0,
                Value::Bytes(bytes) => {
                    buffers.push((index, Buffer::new(bytes)));
                    buffers.last_mut().unwrap().1.address()
                }
                Value::Nested(bytes, list, at) => {
                    lists.push(Buffer::new(list));
                    let mut bytes = bytes.clone();
                    let list = lists.last_mut().unwrap().address();
                    bytes[*at..*at + 8].copy_from_slice(&list.to_ne_bytes());
                    buffers.push((index, Buffer::new(&bytes)));
                    buffers.last_mut().unwrap().1.address()
                }
            };
        }
        let [a, b, c, d, e, f] = given;
        // SAFETY: each pointer is NULL or leads to as much memory as NVML's contract asks for.
        let code = unsafe { entry(a, b, c, d, e, f) };
        assert!(code <= LAST_CODE || code == UNKNOWN, "{name} gave {code}");
        let mut bytes = vec![None; arguments.len()];
        for (index, buffer) in buffers {
            bytes[index] = Some(buffer.checked(name, index));
        }
        for list in lists {
            list.checked(name, usize::MAX);
        }
        Outcome { code, bytes }
    }
}

// === impl Buffer ===

impl Buffer {
    fn new(bytes: &[u8]) -> Self {
        let words = (bytes.len() + GUARD_LENGTH).div_ceil(16);
        let mut buffer = Self {
            words: vec![u128::from_ne_bytes([GUARD; 16]); words],
            length: bytes.len(),
        };
        buffer.bytes()[..bytes.len()].copy_from_slice(bytes);
        buffer
    }

    fn bytes(&mut self) -> &mut [u8] {
        let length = self.words.len() * 16;
        // SAFETY: the words are that many bytes, and any bytes are words.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), length) }
    }

    fn address(&mut self) -> u64 {
        self.words.as_mut_ptr().cast::<c_void>().addr() as u64
    }

    /// Content of the buffer; panics if the guard bytes changed.
    fn checked(mut self, name: &str, index: usize) -> Vec<u8> {
        let length = self.length;
        let bytes = self.bytes();
        let whole = bytes[length..].iter().all(|byte| *byte == GUARD);
        assert!(
            whole,
            "{name} wrote behind argument {index} of {length} bytes"
        );
        bytes[..length].to_vec()
    }
}

/// Structure of a size with NVML's mark of size and version.
pub(crate) fn marked((size, version): (u32, u32), length: usize) -> Value {
    let mut bytes = vec![0; length.max(4)];
    bytes[..4].copy_from_slice(&(size | version << 24).to_ne_bytes());
    Value::Bytes(bytes)
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}
