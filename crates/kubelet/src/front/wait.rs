//! Waiting on watch channels whose sender may go away: that is never news, so it is waited for ever.

use std::future::pending;

use tokio::sync::watch::Receiver;

/// Waits for a value that was not seen yet.
pub(crate) async fn changed<T>(receiver: &mut Receiver<T>) {
    if receiver.changed().await.is_err() {
        pending::<()>().await;
    }
}

/// Waits for a value for which `is_met` holds, which may be the present one.
pub(crate) async fn until<T>(receiver: &Receiver<T>, is_met: impl FnMut(&T) -> bool) {
    let mut receiver = receiver.clone();
    let closed = receiver.wait_for(is_met).await.is_err();
    if closed {
        pending::<()>().await;
    }
}
