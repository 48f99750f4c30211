//! Protocol between agent and probe, and the snapshots that commands read: any bytes are parsed or
//! refused, and a parsed value survives a round trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Snapshot;
use probe::protocol::{Command, Message};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        for line in text.lines() {
            message(line);
        }
    }
    for command in probe::child::read_commands(bytes) {
        let line = serde_json::to_vec(&command).expect("a command can be written");
        let again: Command = serde_json::from_slice(&line).expect("a command can be read");
        assert_eq!(again, command);
    }
    if let Ok(snapshot) = serde_json::from_slice::<Snapshot>(bytes) {
        let line = serde_json::to_vec(&snapshot).expect("a snapshot can be written");
        let again: Snapshot = serde_json::from_slice(&line).expect("a snapshot can be read");
        assert_eq!(again, snapshot);
    }
});

fn message(line: &str) {
    match Message::parse_line(line) {
        Ok(Some(message)) => {
            let line = message.line();
            assert!(!line.contains('\n'));
            let again = Message::parse_line(&line).expect("our own line can be read");
            assert_eq!(again, Some(message));
        }
        Ok(None) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
