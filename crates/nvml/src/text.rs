//! Conversion of texts that the driver wrote into a buffer.

use std::ffi::c_char;

/// Reads the text in a buffer, up to the first NUL or the end. Invalid UTF-8 is replaced, control
/// characters are dropped, spaces at both ends are trimmed.
pub(crate) fn from_buffer(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer
        .iter()
        .map(|&c| c.to_ne_bytes()[0])
        .take_while(|&byte| byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes)
        .chars()
        .filter(|c| !c.is_control())
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_char;

    fn buffer(bytes: &[u8]) -> Vec<c_char> {
        bytes.iter().map(|&b| c_char::from_ne_bytes([b])).collect()
    }

    #[test]
    fn ends_at_the_first_nul_or_at_the_end_of_the_buffer() {
        assert_eq!(from_buffer(&buffer(b"GPU-1\0rest")), "GPU-1");
        assert_eq!(from_buffer(&buffer(b"GPU-1")), "GPU-1");
        assert_eq!(from_buffer(&[]), "");
    }

    #[test]
    fn replaces_what_is_no_utf8() {
        assert_eq!(from_buffer(&buffer(b"A\xff\n B\0")), "A\u{fffd} B");
    }
}
