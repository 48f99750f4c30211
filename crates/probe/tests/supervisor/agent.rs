//! A running supervisor, with a receiver of its updates.

use std::time::Duration;

use probe::{
    BackendState, Update,
    supervisor::{Orders, SupervisorSettings, supervise},
};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(60);

/// Running supervisor.
pub(crate) struct Agent {
    pub(crate) orders: Orders,
    pub(crate) updates: mpsc::Receiver<Update>,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
}

impl Agent {
    pub(crate) fn start(settings: SupervisorSettings) -> Self {
        let orders = settings.orders.clone();
        let (sender, updates) = mpsc::channel(64);
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(supervise(settings, sender, cancel.clone()));
        Self {
            orders,
            updates,
            cancel,
            tasks,
        }
    }

    /// Waits for a state for which `fits` is true.
    pub(crate) async fn until(&mut self, fits: impl Fn(&BackendState) -> bool) -> BackendState {
        let mut last = None;
        let found = timeout(DEADLINE, async {
            loop {
                if let Update::State(sighting) = self.updates.recv().await.expect("it runs") {
                    if fits(&sighting) {
                        return *sighting;
                    }
                    last = Some(sighting);
                }
            }
        });
        found
            .await
            .unwrap_or_else(|_| panic!("no such picture; the last one: {last:#?}"))
    }

    pub(crate) async fn stop(mut self) {
        self.cancel.cancel();
        timeout(DEADLINE, self.tasks.join_next())
            .await
            .expect("stops by itself");
    }
}
