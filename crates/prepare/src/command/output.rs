//! End of a command's output.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Number of bytes that are kept of a command's output, from its end.
pub const TAIL: usize = 2048;

/// Length limit, in characters, of the output in a message of one line.
const LINE: usize = 500;

/// Last [`TAIL`] bytes of an output.
#[derive(Debug, Default)]
pub(super) struct OutputTail(Vec<u8>);

// === impl OutputTail ===

impl OutputTail {
    /// Reads until the output ends. Cancel safe: bytes that were read stay after a dropped call.
    pub(super) async fn read_output(&mut self, output: &mut (impl AsyncRead + Unpin)) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut buffer).await {
            self.0.extend_from_slice(&buffer[..count]);
            let surplus = self.0.len().saturating_sub(TAIL);
            self.0.drain(..surplus);
        }
    }

    /// Text of the bytes that are kept, without white space around it.
    pub(super) fn kept_text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().to_owned()
    }
}

/// Makes one line of the end of a text, with at most `LINE` characters.
pub(super) fn to_one_line(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    let text = text.trim();
    let start = text.char_indices().rev().nth(LINE - 1);
    text[start.map_or(0, |(at, _)| at)..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_is_kept_and_no_more() {
        let mut tail = OutputTail::default();
        let long = "x".repeat(3 * TAIL) + "last words\n";
        tail.read_output(&mut long.as_bytes()).await;
        assert!(tail.kept_text().ends_with("xlast words"));
        assert_eq!(tail.kept_text().len(), TAIL - 1);
    }

    #[test]
    fn a_line_has_no_other_lines_in_it_and_an_end() {
        assert_eq!(to_one_line(" in use\nby 7\t"), "in use by 7");
        assert_eq!(to_one_line(&"é".repeat(3 * LINE)).chars().count(), LINE);
        assert_eq!(to_one_line("\n"), "");
    }
}
