//! Meaning of NVIDIA's driver errors (XIDs) for the card that they name: a table in
//! `xid/table.txt`, and the config's policy on top of it.

mod policy;

use std::sync::LazyLock;

use config::{EventAction as Action, Xids};
use model::EventCode;
use rules::EventMeaning;
use serde::{
    Deserialize,
    de::value::{Error, StrDeserializer},
};

use self::policy::xid_action;

/// Row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct XidRow {
    number: u64,
    action: Action,
    name: &'static str,
}

/// Text of the table: `number | action | name | meaning`. The meaning is for readers of the file
/// only.
const TABLE: &str = include_str!("xid/table.txt");

/// Rows of the table, sorted by number.
static ROWS: LazyLock<Vec<XidRow>> =
    LazyLock::new(|| table_lines().filter_map(parse_xid_row).collect());

/// Class of the event codes of XIDs.
const CLASS: &str = "xid";

/// Returns the event code of an XID.
pub fn xid_code(number: u64) -> EventCode {
    EventCode::from((CLASS, number))
}

/// Returns the number of an XID event; `None` for other events.
fn xid_number(code: &EventCode) -> Option<u64> {
    code.code_number().filter(|_| code.code_class() == CLASS)
}

/// Returns action and description of an XID event; `None` for other events.
pub(crate) fn xid_meaning(code: &EventCode, xids: &Xids) -> Option<EventMeaning> {
    let number = xid_number(code)?;
    Some(EventMeaning {
        action: xid_action(xids, number),
        text: describe_xid(number),
    })
}

/// Returns the row of an XID.
fn find_xid_row(number: u64) -> Option<&'static XidRow> {
    let at = ROWS.binary_search_by_key(&number, |row| row.number).ok()?;
    ROWS.get(at)
}

/// Returns the text for operators: `XID 79 (the GPU has fallen off the bus)`, or the number alone
/// if the table does not have it.
pub fn describe_xid(number: u64) -> String {
    match find_xid_row(number) {
        Some(row) => format!("XID {number} ({})", row.name),
        None => format!("XID {number}"),
    }
}

/// Returns the lines of the table without comments.
fn table_lines() -> impl Iterator<Item = &'static str> {
    let text = |line: &&str| !line.is_empty() && !line.starts_with('#');
    TABLE.lines().filter(text)
}

/// Parses a row. Tests check that every line is valid.
fn parse_xid_row(line: &'static str) -> Option<XidRow> {
    let mut fields = line.split('|').map(str::trim);
    let number = fields.next()?.parse().ok()?;
    let action = StrDeserializer::<Error>::new(fields.next()?);
    let action = Action::deserialize(action).ok()?;
    let (name, meaning) = (fields.next()?, fields.next()?);
    let whole = fields.next().is_none() && !name.is_empty() && !meaning.is_empty();
    whole.then_some(XidRow {
        number,
        action,
        name,
    })
}

#[cfg(test)]
mod tests;
