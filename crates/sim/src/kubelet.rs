//! A kubelet as far as devices are concerned: registration, the device manager with its
//! checkpoint, admission, and the pod resources API, over real sockets, with the faults that real
//! ones have. What a plugin does wrong without being told so ends up in
//! [`Kubelet::violations`].
//!
//! Not simulated: topology manager hints, the node status refresh (changes show at once), and
//! registration through `plugins_registry`.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};

use tokio::{sync::watch, task::JoinSet};

mod allocate;
mod checkpoint;
mod choose;
mod life;
mod name;
pub mod pod;
pub mod record;
mod register;
mod resources;
mod state;
mod wait;
mod wire;

pub use self::{
    allocate::AdmissionError,
    checkpoint::FILE as CHECKPOINT,
    pod::{Admitted, Container, Granted, Pod},
    record::{Allocation, Breach, List, Outcome, Registration, Violation},
    state::{Capacity, Device, Devices},
    wait::WaitError,
};

use self::state::State;

/// The library of Kubernetes 1.36.
const LIBRARY: &str = "grpc-go/1.79.3";

/// A running, or stopped, kubelet. Clones are handles on the same one; it dies with the last.
#[derive(Clone)]
pub struct Kubelet {
    owner: Arc<Owner>,
}

/// What a kubelet is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The device plugin directory; made if it is missing.
    pub dir: PathBuf,
    /// Where to serve the pod resources API, if at all.
    pub pod_resources: Option<PathBuf>,
    /// How it takes a second registration of a resource.
    pub era: Era,
    /// How long a resource keeps its capacity after its plugin has gone.
    pub grace: Duration,
    /// How long Register tries to dial the plugin.
    pub dial: Duration,
    /// How its calls name its gRPC library, which tells how old a kubelet is.
    pub library: String,
}

/// How plugins are told apart. Kubelets differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// Up to 1.36, by resource: when an old stream ends after a new registration, the new plugin
    /// is torn down and the resource turns unhealthy.
    #[default]
    V1_36,
    /// From 1.37 on, by resource and socket: two may overlap, and the last one to leave turns the
    /// resource unhealthy. A socket that is still connected cannot register.
    V1_37,
}

/// Why a kubelet could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory cannot be made or cleaned.
    #[error("cannot prepare {path}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A socket cannot be bound.
    #[error("cannot listen on {path}")]
    Listen {
        /// The socket.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It runs already.
    #[error("the kubelet of {path} runs already")]
    Running {
        /// The directory.
        path: PathBuf,
    },
}

/// Ends everything when the last handle goes. The tasks hold the core and never the owner.
struct Owner {
    core: Arc<Core>,
}

/// What handles and tasks share.
#[derive(Debug)]
struct Core {
    settings: Settings,
    state: Mutex<State>,
    /// Counts the changes.
    changed: watch::Sender<u64>,
    /// All tasks of the current life.
    tasks: Mutex<JoinSet<()>>,
    /// Whose turn it is to be admitted.
    admission: tokio::sync::Mutex<()>,
    /// Whose turn it is to write the checkpoint.
    saving: Mutex<()>,
}

// === impl Kubelet ===

impl Kubelet {
    /// Starts a kubelet in the caller's runtime: deletes the sockets in its directory, reads the
    /// checkpoint, serves.
    ///
    /// # Errors
    /// When the directory cannot be prepared or a socket cannot be bound.
    pub async fn start(settings: Settings) -> Result<Self, Error> {
        let core = Arc::new(Core {
            settings,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            tasks: Mutex::default(),
            admission: tokio::sync::Mutex::default(),
            saving: Mutex::default(),
        });
        let kubelet = Self {
            owner: Arc::new(Owner { core }),
        };
        kubelet.start_again().await?;
        Ok(kubelet)
    }

    /// What the node's status says, by resource. A name once seen stays, with zeros.
    pub fn node(&self) -> BTreeMap<String, Capacity> {
        self.core().look(State::node)
    }

    /// The devices of a resource; none when it is unknown.
    pub fn devices(&self, resource: &str) -> Devices {
        self.core().look(|state| state.devices(resource))
    }

    /// Admits a pod and starts its containers, one pod at a time, as the kubelet does. There is no
    /// time limit; when the caller stops waiting, the pod is not admitted.
    ///
    /// # Errors
    /// In the kubelet's words, when the pod is rejected or a container cannot start.
    pub async fn admit(&self, pod: Pod) -> Result<Admitted, AdmissionError> {
        self.core().admit(pod).await
    }

    /// Starts a container of an admitted pod once more, with what it was allocated at admission.
    ///
    /// # Errors
    /// When there is no such container, or PreStartContainer fails.
    pub async fn restart_container(
        &self,
        pod: &pod::Id,
        container: &str,
    ) -> Result<Granted, AdmissionError> {
        self.core().start_container(pod, container).await
    }

    /// Admits a pod of the node once more whose containers do not run any longer, as after a
    /// reboot of the node. A pod that is rejected is removed.
    ///
    /// # Errors
    /// In the kubelet's words, when what it held is not there or not healthy.
    pub async fn readmit(&self, pod: &pod::Id) -> Result<(), AdmissionError> {
        self.core().readmit(pod).await
    }

    /// Removes a pod and frees its devices. Returns whether it was there. The plugin is not told.
    pub fn remove(&self, pod: &pod::Id) -> bool {
        let found = self.core().change(|state| {
            let found = state.pods.remove(pod).is_some();
            state.prune();
            found
        });
        self.core().save();
        found
    }

    /// Ends a resource's ListAndWatch streams. Returns whether there was one.
    pub fn cut_stream(&self, resource: &str) -> bool {
        self.core().look(|state| {
            let clients = state.clients.get(resource).into_iter().flatten();
            clients.map(|client| client.cut.cancel()).count() > 0
        })
    }

    /// Drops a resource's endpoint while its streams stay open and unheard: nothing of it is left
    /// but a zero in the node's status. Returns whether it was there.
    pub fn forget(&self, resource: &str) -> bool {
        let found = self.core().change(|state| {
            for client in state.clients.remove(resource).into_iter().flatten() {
                client.forgotten.store(true, Ordering::Relaxed);
            }
            state.resources.remove(resource).is_some()
        });
        self.core().save();
        found
    }

    /// Refuses the next `count` registrations with a message.
    pub fn refuse_next(&self, count: usize, message: &str) {
        self.core().change(|state| {
            let messages = std::iter::repeat_n(message.to_owned(), count);
            state.faults.refuse.extend(messages);
        });
    }

    /// Lets each Register that arrives from now on wait that long before it is looked at:
    /// `Duration::MAX` for ever, zero to end it.
    pub fn stall(&self, time: Duration) {
        self.core().change(|state| state.faults.stall = time);
    }

    /// Every call of Register so far, oldest first, over all restarts.
    pub fn registrations(&self) -> Vec<Registration> {
        self.core().look(|state| state.record.registrations.clone())
    }

    /// The lists of a resource so far, oldest first; of very many only the newest.
    pub fn lists(&self, resource: &str) -> Vec<List> {
        self.core().look(|state| {
            let lists = state.record.lists.get(resource).into_iter().flatten();
            lists.cloned().collect()
        })
    }

    /// The successful calls of Allocate so far, oldest first.
    pub fn allocations(&self) -> Vec<Allocation> {
        self.core().look(|state| state.record.allocations.clone())
    }

    /// What plugins did wrong so far, oldest first.
    pub fn violations(&self) -> Vec<Violation> {
        self.core().look(|state| state.record.violations.clone())
    }

    /// The device plugin directory.
    pub fn dir(&self) -> &Path {
        &self.core().settings.dir
    }

    fn core(&self) -> &Arc<Core> {
        &self.owner.core
    }
}

impl fmt::Debug for Kubelet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubelet")
            .field("settings", &self.core().settings)
            .field("node", &self.node())
            .finish()
    }
}

// === impl Settings ===

impl Settings {
    /// A kubelet of the default era with the real one's times, without pod resources.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            pod_resources: None,
            era: Era::default(),
            grace: Duration::from_secs(300),
            dial: Duration::from_secs(10),
            library: LIBRARY.to_owned(),
        }
    }
}

// === impl Owner ===

impl Drop for Owner {
    fn drop(&mut self) {
        self.core.kill();
    }
}

// === impl Core ===

impl Core {
    /// Reads the state.
    fn look<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&lock(&self.state))
    }

    /// Changes the state and tells those who wait.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut lock(&self.state));
        self.changed.send_modify(|count| *count += 1);
        result
    }

    /// Writes the checkpoint. A failure is logged, as the kubelet does.
    fn save(&self) {
        let _turn = lock(&self.saving);
        let contents = self.look(checkpoint::encode);
        if let Err(error) = checkpoint::write(&self.settings.dir, &contents) {
            tracing::warn!(%error, "cannot write the checkpoint");
        }
    }

    /// Starts a task of this life. One that has panicked is reported when the next one starts.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while let Some(ended) = tasks.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                tracing::error!(%error, "a task of the simulated kubelet panicked");
            }
        }
        tasks.spawn(task);
    }
}

/// Nothing that is done under these locks leaves the data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
