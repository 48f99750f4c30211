//! Policy for XIDs: the config on top of the table.

use config::{XidBase, Xids};

use super::{Action, find_xid_row};

/// XIDs that NVIDIA's device plugin ignores unless `DP_ENABLE_HEALTHCHECKS` names them
/// (internal/rm/health.go).
const UPSTREAM_IGNORES: [u64; 6] = [13, 31, 43, 45, 68, 109];

/// Returns the action for an XID. `heed` overrides `ignore`, which overrides `actions`, which
/// override `base`.
pub(super) fn xid_action(xids: &Xids, number: u64) -> Action {
    let said = u32::try_from(number).ok();
    let said = said.and_then(|number| xids.actions.get(&number).copied());
    if xids.heed.contains_xid(number) {
        let known = said.or(find_xid_row(number).map(|row| row.action));
        // NVIDIA's device plugin takes the card out for an XID that is enabled by name, whatever
        // the XID.
        return known.filter(|a| a.takes_out()).unwrap_or(Action::Reset);
    }
    if xids.ignore.contains_xid(number) {
        return Action::Ignore;
    }
    said.unwrap_or_else(|| base_action(xids, number))
}

/// Returns the action without overrides. Under `nvidia`, every XID that the device plugin does not
/// ignore takes the card out.
fn base_action(xids: &Xids, number: u64) -> Action {
    let known = find_xid_row(number).map(|row| row.action);
    match xids.base {
        XidBase::Catalogue => known.unwrap_or(xids.unknown),
        XidBase::Nvidia if UPSTREAM_IGNORES.contains(&number) => Action::Ignore,
        XidBase::Nvidia => known.filter(|a| a.takes_out()).unwrap_or(Action::Reset),
    }
}
