//! Release of cards: waits until every driver handle is closed.

use std::time::Duration;

use model::Snapshot;
use probe::{
    Releases,
    supervisor::{BackendRelease, ReleaseScope},
};
use tokio::time::{Instant, timeout_at};

use crate::Readers;

/// Time in which handles should be closed before the caller is told of the calls that prevent it.
pub const CLOSED_WITHIN: Duration = Duration::from_millis(2500);

/// Waits until every driver handle to the released cards is closed.
///
/// # Errors
/// After `limit`: the driver calls that do not return, as text for a person. Empty if none is
/// known.
pub async fn closed(
    readers: &Readers,
    given: &[BackendRelease],
    limit: Instant,
) -> Result<(), String> {
    let mut released = readers.released.clone();
    let closed = released.wait_for(|released| {
        let is_closed = |given: &BackendRelease| {
            let backend = released.get(&given.backend);
            backend.is_some_and(|released| is_closed(released, given))
        };
        given.iter().all(is_closed)
    });
    match timeout_at(limit, closed).await {
        Ok(_) => Ok(()),
        Err(_) => Err(hindrance(&readers.snapshots.borrow())),
    }
}

/// True if the release is in force, lasts at least as long as it was asked for, and all handles are
/// closed.
fn is_closed(released: &Releases, given: &BackendRelease) -> bool {
    let release = match given.which {
        ReleaseScope::All => released.all.as_ref(),
        ReleaseScope::Card(card) => released.cards.get(&card),
    };
    release.is_some_and(|release| release.closed && release.until >= given.until)
}

/// Describes the calls that do not return, as ` (CALL since TIME, ...)`.
fn hindrance(snapshot: &Snapshot) -> String {
    let stuck = snapshot.backends.iter().flat_map(|backend| &backend.stuck);
    let calls: Vec<String> = stuck
        .map(|call| format!("{} since {:.0}", call.call, call.since))
        .collect();
    match calls.is_empty() {
        true => String::new(),
        false => format!(" ({})", calls.join(", ")),
    }
}
