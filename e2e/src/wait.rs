//! Waiting for something to become true, with a limit and a reason.

use std::{fmt, time::Duration};

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

/// The usual limit: far more than anything takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(90);

/// Long enough for something that should not happen to happen.
pub const SHORT: Duration = Duration::from_secs(3);

/// How often is looked. The kubelet answers at most a hundred pod resources calls a second.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks until `look` gives a value, at most for `limit`. The error says what was waited for and
/// why it was not so at the last look.
///
/// # Errors
/// If the limit is over.
pub async fn until<T>(
    what: impl fmt::Display,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let end = Instant::now() + limit;
    loop {
        let last = match look().await {
            Ok(found) => return Ok(found),
            Err(last) => last,
        };
        if Instant::now() >= end {
            bail!("waited {limit:?} for {what}: {last:#}");
        }
        sleep(PAUSE).await;
    }
}

/// Looks again and again for the whole of `time`; each look must succeed.
///
/// # Errors
/// With the first look that fails.
pub async fn throughout(
    what: impl fmt::Display,
    time: Duration,
    mut look: impl AsyncFnMut() -> Result<()>,
) -> Result<()> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if let Err(error) = look().await {
            bail!("{what} did not stay so for {time:?}: {error:#}");
        }
        sleep(PAUSE).await;
    }
    Ok(())
}
