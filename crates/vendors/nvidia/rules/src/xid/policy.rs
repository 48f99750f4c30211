//! What a config says of XIDs, laid over the table.

use config::{XidBase, Xids};

use super::{Action, row};

/// The XIDs that NVIDIA's device plugin leaves out unless it is told otherwise.
const UPSTREAM_IGNORES: [u64; 6] = [13, 31, 43, 45, 68, 109];

/// Returns what is done about an XID. `heed` beats `ignore`, which beats `actions`, which beat
/// `base`.
pub(super) fn action(xids: &Xids, number: u64) -> Action {
    let said = u32::try_from(number).ok();
    let said = said.and_then(|number| xids.actions.get(&number).copied());
    if xids.heed.has(number) {
        let known = said.or(row(number).map(|row| row.action));
        return known.filter(|a| a.takes_out()).unwrap_or(Action::Reset);
    }
    if xids.ignore.has(number) {
        return Action::Ignore;
    }
    said.unwrap_or_else(|| base(xids, number))
}

fn base(xids: &Xids, number: u64) -> Action {
    let known = row(number).map(|row| row.action);
    match xids.base {
        XidBase::Catalogue => known.unwrap_or(xids.unknown),
        XidBase::Nvidia if UPSTREAM_IGNORES.contains(&number) => Action::Ignore,
        XidBase::Nvidia => known.filter(|a| a.takes_out()).unwrap_or(Action::Reset),
    }
}
