//! Waiting for conditions, with a timeout and a reason.

use std::{fmt, time::Duration};

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

/// Usual timeout: far more than any step takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(90);

/// Time to wait for an event that must not happen.
pub const SHORT: Duration = Duration::from_secs(3);

/// Polling interval. The kubelet limits the pod resources API to 100 calls per second.
const PAUSE: Duration = Duration::from_millis(100);

/// Polls until `look` returns a value, at most for `limit`. The error has the condition and the
/// last reason.
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

/// Polls for the whole of `time`; each poll must succeed.
///
/// # Errors
/// With the first failure.
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
