//! Pointers that cross the C ABI. They come from the caller only, so the caller's promise (NULL, or
//! a pointer to the data of the function's contract) holds for every value.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_ulonglong},
    mem::size_of,
};

use super::code::{INSUFFICIENT_SIZE, INVALID_ARGUMENT, NvmlResult, VERSION_MISMATCH};

/// A device, instance or event set. Opaque to the caller; an index in the session's table here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Handle(pub(super) usize);

/// Pointer to one or several values that the function writes.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

/// Pointer to values that the function writes; may be NULL.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Maybe<T>(Out<T>);

/// Pointer to a structure of `SIZE` bytes that begins with NVML's mark of this version. The rest is
/// not read.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Marked<const SIZE: u32, const VERSION: u32>(*mut c_uint);

/// Argument of a function. All arguments are checked before the function does anything.
pub(crate) trait Arg {
    /// Fails if the argument is NULL where the function requires a pointer.
    fn present(&self) -> NvmlResult {
        Ok(())
    }
}

/// Pointer to room for a text that the function writes.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct TextOut(*mut c_char);

/// Pointer to a text that the function reads.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct GivenText(*const c_char);

// === impl Out ===

impl<T: Copy> Out<T> {
    /// Writes a value.
    pub(super) fn set(&self, value: T) -> NvmlResult {
        self.set_at(0, value)
    }

    /// Writes values in a row; by contract the caller has room for them.
    pub(super) fn set_all(&self, values: &[T]) -> NvmlResult {
        for (index, value) in values.iter().enumerate() {
            self.set_at(index, *value)?;
        }
        Ok(())
    }

    /// Writes one value of a row.
    pub(super) fn set_at(&self, index: usize, value: T) -> NvmlResult {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, so by NVML's contract it points to room for the values; the caller's
        // memory need not be aligned for us to write it.
        unsafe { self.0.add(index).write_unaligned(value) };
        Ok(())
    }

    /// Writes the last part of a large structure.
    pub(super) fn set_end<U: Copy>(&self, value: U) -> NvmlResult {
        let parts = size_of::<T>() / size_of::<U>().max(1);
        self.cast::<U>().set_at(parts.saturating_sub(1), value)
    }

    /// Reads the value that the caller has set.
    pub(super) fn get(&self) -> NvmlResult<T> {
        self.get_at(0)
    }

    /// Reads one value of a row.
    pub(super) fn get_at(&self, index: usize) -> NvmlResult<T> {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, so by NVML's contract it points to values that the caller has set;
        // `T` is a number or a C struct of numbers, for which all bits are valid.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// Same address as another type, for structures that differ by version.
    pub(super) fn cast<U>(&self) -> Out<U> {
        Out(self.0.cast())
    }

    /// Fails unless the first field of the structure is NVML's mark of this version: `size |
    /// version`.
    pub(super) fn check_version(&self, version: u32) -> NvmlResult {
        let mark = self.cast::<c_uint>().get()?;
        (mark == mark_of::<T>(version))
            .then_some(())
            .ok_or(VERSION_MISMATCH)
    }
}

impl<T> Arg for Out<T> {
    fn present(&self) -> NvmlResult {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        Ok(())
    }
}

// === impl Maybe ===

impl<T> Arg for Maybe<T> {}

impl<T: Copy> Maybe<T> {
    /// Pointer that is a member of the caller's structure.
    pub(super) fn member_pointer(pointer: *mut T) -> Self {
        Self(Out(pointer))
    }

    /// Pointer, if it is not NULL.
    pub(super) fn non_null(&self) -> Option<&Out<T>> {
        (!self.0.0.is_null()).then_some(&self.0)
    }

    /// Writes a list in NVML's way: `count` has the room and receives the number of values. Too
    /// little room is an error.
    pub(super) fn write_list(&self, count: &Out<c_uint>, values: &[T]) -> NvmlResult {
        let room = count.get()?;
        count.set(c_uint::try_from(values.len()).map_err(|_| INVALID_ARGUMENT)?)?;
        self.fill_exact(room, values)
    }

    /// Writes values if there is room for all of them.
    pub(super) fn fill_exact(&self, room: c_uint, values: &[T]) -> NvmlResult {
        if usize::try_from(room).map_err(|_| INVALID_ARGUMENT)? < values.len() {
            return Err(INSUFFICIENT_SIZE);
        }
        if values.is_empty() {
            return Ok(());
        }
        self.0.set_all(values)
    }

    /// Writes a list as [`Maybe::write_list`] does. A caller without any room gets the number only,
    /// without an error.
    pub(super) fn count_or_list(&self, count: &Out<c_uint>, values: &[T]) -> NvmlResult {
        match self.write_list(count, values) {
            Err(INSUFFICIENT_SIZE) if self.non_null().is_none() => Ok(()),
            answer => answer,
        }
    }
}

// === impl Marked ===

impl<const SIZE: u32, const VERSION: u32> Arg for Marked<SIZE, VERSION> {
    fn present(&self) -> NvmlResult {
        let mark = Out(self.0).get()?;
        (mark == SIZE | VERSION << 24)
            .then_some(())
            .ok_or(VERSION_MISMATCH)
    }
}

// === impl Arg ===

impl Arg for c_uint {}
impl Arg for c_int {}
impl Arg for c_ulonglong {}
impl Arg for Handle {}

impl Arg for TextOut {
    fn present(&self) -> NvmlResult {
        Out(self.0).present()
    }
}

impl Arg for GivenText {
    fn present(&self) -> NvmlResult {
        Out(self.0.cast_mut()).present()
    }
}

// === impl TextOut ===

impl TextOut {
    /// Writes a text with its final NUL; fails if it does not fit.
    pub(super) fn set(self, length: c_uint, text: &str) -> NvmlResult {
        let room = usize::try_from(length).unwrap_or(0);
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        if text.len() >= room {
            return Err(INSUFFICIENT_SIZE);
        }
        let out = Out(self.0.cast::<u8>());
        out.set_all(text.as_bytes())?;
        out.set_at(text.len(), 0)
    }
}

// === impl GivenText ===

impl GivenText {
    /// Reads the text; fails if it is not UTF-8.
    pub(super) fn read_text(&self) -> NvmlResult<&str> {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, so by NVML's contract it is a C string that lives for the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| INVALID_ARGUMENT)
    }
}

/// NVML's version mark of a structure.
pub(super) fn mark_of<T>(version: u32) -> c_uint {
    let size = c_uint::try_from(size_of::<T>()).unwrap_or(c_uint::MAX);
    size | version << 24
}

/// C array with a text, truncated if the text is too long.
pub(super) fn chars<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (to, from) in array.iter_mut().zip(text.bytes().take(N.saturating_sub(1))) {
        *to = c_char::from_ne_bytes([from]);
    }
    array
}
