//! A command on a card, from its start until nothing of it is left.

use probe::supervisor::Occupied;
use tokio::{sync::oneshot, time::Instant};

use crate::command::{Ended, Error, Running};

/// The end of a command, or why it could not be run.
pub(super) type Result = std::result::Result<Ended, Error>;

/// Tells what becomes of a command, and waits until it is gone: until then its card is occupied. It is
/// ended when the card is released, or when nobody wants to be told.
pub(super) async fn attend(
    mut running: Running,
    mut work: Occupied,
    deadline: Instant,
    mut tell: oneshot::Sender<Result>,
) {
    let stop = async {
        tokio::select! {
            () = work.recalled() => {}
            () = tell.closed() => {}
        }
    };
    let ended = running.finish(deadline, stop).await;
    let _ = tell.send(ended);
    running.gone().await;
}
