//! What NVIDIA's driver errors (XIDs) mean for the card they name: a table in `xid/table.txt`, and
//! the policy that a config lays over it.

mod policy;

use std::sync::LazyLock;

use config::{EventAction as Action, Xids};
use model::EventCode;
use rules::Meaning;
use serde::{
    Deserialize,
    de::value::{Error, StrDeserializer},
};

use self::policy::action;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    number: u64,
    action: Action,
    name: &'static str,
}

/// The table as it is written: `number | action | name | meaning`, the last of them for people.
const TABLE: &str = include_str!("xid/table.txt");

/// Every row, by number.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| lines().filter_map(parse).collect());

/// The class of the codes of XIDs.
const CLASS: &str = "xid";

/// The code of the event that an XID is.
pub fn code(number: u64) -> EventCode {
    EventCode::from((CLASS, number))
}

/// The XID that an event is.
fn number(code: &EventCode) -> Option<u64> {
    code.number().filter(|_| code.class() == CLASS)
}

/// The meaning of an event, where it is an XID.
pub(crate) fn meaning(code: &EventCode, xids: &Xids) -> Option<Meaning> {
    let number = number(code)?;
    Some(Meaning {
        action: action(xids, number),
        text: describe(number),
    })
}

/// The row of an XID.
fn row(number: u64) -> Option<&'static Row> {
    let at = ROWS.binary_search_by_key(&number, |row| row.number).ok()?;
    ROWS.get(at)
}

/// `XID 79 (the GPU has fallen off the bus)`.
pub fn describe(number: u64) -> String {
    match row(number) {
        Some(row) => format!("XID {number} ({})", row.name),
        None => format!("XID {number}"),
    }
}

/// The lines of the table that are no comments.
fn lines() -> impl Iterator<Item = &'static str> {
    let text = |line: &&str| !line.is_empty() && !line.starts_with('#');
    TABLE.lines().filter(text)
}

/// A row from its line; the tests see to it that every line is one.
fn parse(line: &'static str) -> Option<Row> {
    let mut fields = line.split('|').map(str::trim);
    let number = fields.next()?.parse().ok()?;
    let action = StrDeserializer::<Error>::new(fields.next()?);
    let action = Action::deserialize(action).ok()?;
    let (name, meaning) = (fields.next()?, fields.next()?);
    let whole = fields.next().is_none() && !name.is_empty() && !meaning.is_empty();
    whole.then_some(Row {
        number,
        action,
        name,
    })
}

#[cfg(test)]
mod tests;
