//! Waits on watch channels. A dropped sender is not an event here: the wait then never ends, and
//! cancellation ends the task.

use std::future::pending;

use tokio::sync::watch::Receiver;

/// Waits for a value that the receiver has not seen. Never returns if the sender is dropped.
pub(crate) async fn wait_changed<T>(receiver: &mut Receiver<T>) {
    if receiver.changed().await.is_err() {
        pending::<()>().await;
    }
}

/// Waits for a value for which `is_met` is true; the present one counts. Never returns if the sender
/// is dropped before.
pub(crate) async fn wait_until<T>(receiver: &Receiver<T>, is_met: impl FnMut(&T) -> bool) {
    let mut receiver = receiver.clone();
    let closed = receiver.wait_for(is_met).await.is_err();
    if closed {
        pending::<()>().await;
    }
}
