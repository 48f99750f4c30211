//! Task of a running command on a card, until its last process has ended.

use probe::supervisor::CardWork;
use tokio::{sync::oneshot, time::Instant};

use crate::command::{EndedCommand, Error, RunningCommand};

/// End of a command, or the reason why it could not be run.
pub(super) type CommandResult = std::result::Result<EndedCommand, Error>;

/// Waits for the end of a command and sends the result by `tell`. Returns after its last process has ended;
/// until then the card counts as occupied. The command is ended if the card is released, or if the receiver
/// of `tell` is dropped.
pub(super) async fn attend(
    mut running: RunningCommand,
    mut work: CardWork,
    deadline: Instant,
    mut tell: oneshot::Sender<CommandResult>,
) {
    let stop = async {
        tokio::select! {
            () = work.recalled() => {}
            () = tell.closed() => {}
        }
    };
    let ended = running.wait_for_end(deadline, stop).await;
    let _ = tell.send(ended);
    running.wait_until_gone().await;
}
