//! Simulated kubelet, reduced to device plugins: registration, the device manager with its
//! checkpoint, pod admission and the pod resources API. All of these use real sockets and can show
//! the faults of real kubelets. [`Kubelet::violations`] lists the errors of plugins that a real
//! kubelet would accept without a message.
//!
//! Not simulated: hints of the topology manager, the interval of the node status (changes are
//! visible at once), and registration through `plugins_registry`.

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
    pod::{AdmittedPod, GrantedDevices, Pod, PodContainer},
    record::{Allocation, Breach, DeviceList, Registration, RegistrationOutcome, Violation},
    state::{DeviceCounts, PluginDevice, PluginDevices},
    wait::WaitError,
};

use self::state::KubeletState;

/// gRPC library of Kubernetes 1.36, as its user agent names the library.
const LIBRARY: &str = "grpc-go/1.79.3";

/// A kubelet, running or stopped. A clone is a handle to the same kubelet, which ends with its last
/// handle.
#[derive(Clone)]
pub struct Kubelet {
    owner: Arc<KubeletOwner>,
}

/// Settings that a kubelet is started with.
#[derive(Clone, Debug)]
pub struct KubeletSettings {
    /// Device plugin directory; created if it is missing.
    pub dir: PathBuf,
    /// Socket of the pod resources API; `None` if the API is not served.
    pub pod_resources: Option<PathBuf>,
    /// Release whose rules apply to a second registration of a resource.
    pub era: Era,
    /// Time for which a resource keeps its capacity after its plugin disconnected.
    pub grace: Duration,
    /// Time limit of Register for connecting to the plugin's socket.
    pub dial: Duration,
    /// gRPC library that calls name in `user-agent`; a plugin can tell an old kubelet by it.
    pub library: String,
}

/// Rules by which a kubelet tells the plugins of one resource apart, named after its release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// Up to 1.36: by resource name only. If the stream of an old plugin ends after a new one has
    /// registered, the kubelet closes the new one and marks the resource unhealthy.
    #[default]
    V1_36,
    /// From 1.37 on (Kubernetes PR 135437): by resource name and socket path. Two plugins may
    /// overlap, and the resource turns unhealthy when the last one leaves. A socket that is still
    /// connected cannot register.
    V1_37,
}

/// Reason why a kubelet could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device plugin directory cannot be created or cleaned.
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
    /// The kubelet is running already.
    #[error("the kubelet of {path} runs already")]
    Running {
        /// The directory.
        path: PathBuf,
    },
}

/// Stops the kubelet when the last handle is dropped. Tasks hold the [`KubeletCore`] and never the owner,
/// or else this drop would never come.
struct KubeletOwner {
    core: Arc<KubeletCore>,
}

/// Data that handles and tasks share.
#[derive(Debug)]
struct KubeletCore {
    settings: KubeletSettings,
    state: Mutex<KubeletState>,
    /// Counter of the changes of `state`; waiters subscribe to it.
    changed: watch::Sender<u64>,
    /// All tasks that have run since the last start.
    tasks: Mutex<JoinSet<()>>,
    /// Held while a pod is admitted: the kubelet admits one pod at a time.
    admission: tokio::sync::Mutex<()>,
    /// Held while the checkpoint is written.
    saving: Mutex<()>,
}

// === impl Kubelet ===

impl Kubelet {
    /// Starts a kubelet in the caller's runtime: deletes the sockets in its directory, reads the
    /// checkpoint and serves.
    ///
    /// # Errors
    /// If the directory cannot be prepared or a socket cannot be bound.
    pub async fn start_kubelet(settings: KubeletSettings) -> Result<Self, Error> {
        let core = Arc::new(KubeletCore {
            settings,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            tasks: Mutex::default(),
            admission: tokio::sync::Mutex::default(),
            saving: Mutex::default(),
        });
        let kubelet = Self {
            owner: Arc::new(KubeletOwner { core }),
        };
        kubelet.start_again().await?;
        Ok(kubelet)
    }

    /// Capacity in the node's status, by resource. A name that was registered once stays, with
    /// zeros.
    pub fn node_status(&self) -> BTreeMap<String, DeviceCounts> {
        self.core().read_state(KubeletState::count_devices)
    }

    /// Devices of a resource; empty if the resource is unknown.
    pub fn resource_devices(&self, resource: &str) -> PluginDevices {
        self.core()
            .read_state(|state| state.listed_devices(resource))
    }

    /// Admits a pod and starts its containers, one pod at a time, as the kubelet does. There is no
    /// time limit. If the caller drops the future, the pod is not admitted.
    ///
    /// # Errors
    /// If the pod is rejected or a container cannot start, with the kubelet's message.
    pub async fn admit_pod(&self, pod: Pod) -> Result<AdmittedPod, AdmissionError> {
        self.core().run_admission(pod).await
    }

    /// Starts a container of an admitted pod again, with the devices of its admission.
    ///
    /// # Errors
    /// If there is no such container, or PreStartContainer fails.
    pub async fn restart_container(
        &self,
        pod: &pod::PodId,
        container: &str,
    ) -> Result<GrantedDevices, AdmissionError> {
        self.core().start_container(pod, container).await
    }

    /// Admits a pod of the node again whose containers no longer run, as after a reboot of the
    /// node. A rejected pod is removed.
    ///
    /// # Errors
    /// If a device that the pod held is missing or unhealthy, with the kubelet's message.
    pub async fn readmit_pod(&self, pod: &pod::PodId) -> Result<(), AdmissionError> {
        self.core().run_readmission(pod).await
    }

    /// Removes a pod and frees its devices; the plugin is not told (the API has no deallocate
    /// call). Returns true if the pod was on the node.
    pub fn remove_pod(&self, pod: &pod::PodId) -> bool {
        let found = self.core().change_state(|state| {
            let found = state.pods.remove(pod).is_some();
            state.free_removed_pods();
            found
        });
        self.core().save_checkpoint();
        found
    }

    /// Ends a resource's ListAndWatch streams. Returns true if there was a stream.
    pub fn cut_stream(&self, resource: &str) -> bool {
        self.core().read_state(|state| {
            let clients = state.clients.get(resource).into_iter().flatten();
            clients.map(|client| client.cut.cancel()).count() > 0
        })
    }

    /// Drops a resource's endpoint while its streams stay open and are ignored. Only a zero in the
    /// node's status remains. Returns true if the resource was known.
    pub fn forget_resource(&self, resource: &str) -> bool {
        let found = self.core().change_state(|state| {
            for client in state.clients.remove(resource).into_iter().flatten() {
                client.forgotten.store(true, Ordering::Relaxed);
            }
            state.resources.remove(resource).is_some()
        });
        self.core().save_checkpoint();
        found
    }

    /// Refuses the next `count` registrations with `message`.
    pub fn refuse_next(&self, count: usize, message: &str) {
        self.core().change_state(|state| {
            let messages = std::iter::repeat_n(message.to_owned(), count);
            state.faults.refuse.extend(messages);
        });
    }

    /// Delays each call of Register that arrives from now on by `time`: `Duration::MAX` means for
    /// ever, zero ends the delay.
    pub fn stall(&self, time: Duration) {
        self.core().change_state(|state| state.faults.stall = time);
    }

    /// All calls of Register so far, oldest first, over all restarts.
    pub fn registrations(&self) -> Vec<Registration> {
        self.core()
            .read_state(|state| state.record.registrations.clone())
    }

    /// Lists of a resource so far, oldest first; at most the newest 1000.
    pub fn device_lists(&self, resource: &str) -> Vec<DeviceList> {
        self.core().read_state(|state| {
            let lists = state.record.lists.get(resource).into_iter().flatten();
            lists.cloned().collect()
        })
    }

    /// Successful calls of Allocate so far, oldest first.
    pub fn allocations(&self) -> Vec<Allocation> {
        self.core()
            .read_state(|state| state.record.allocations.clone())
    }

    /// Breaches of the device plugin contract so far, oldest first.
    pub fn violations(&self) -> Vec<Violation> {
        self.core()
            .read_state(|state| state.record.violations.clone())
    }

    /// Device plugin directory.
    pub fn plugin_dir(&self) -> &Path {
        &self.core().settings.dir
    }

    fn core(&self) -> &Arc<KubeletCore> {
        &self.owner.core
    }
}

impl fmt::Debug for Kubelet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubelet")
            .field("settings", &self.core().settings)
            .field("node", &self.node_status())
            .finish()
    }
}

// === impl KubeletSettings ===

impl KubeletSettings {
    /// Settings with the default era and the real kubelet's timeouts, without pod resources.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            pod_resources: None,
            era: Era::default(),
            // `endpointStopGracePeriod` of the device manager: five minutes.
            grace: Duration::from_secs(300),
            // The kubelet dials a plugin with a blocking call that is limited to ten seconds.
            dial: Duration::from_secs(10),
            library: LIBRARY.to_owned(),
        }
    }
}

// === impl KubeletOwner ===

impl Drop for KubeletOwner {
    fn drop(&mut self) {
        self.core.kill_tasks();
    }
}

// === impl KubeletCore ===

impl KubeletCore {
    /// Reads the state under its lock.
    fn read_state<T>(&self, read: impl FnOnce(&KubeletState) -> T) -> T {
        read(&lock_state(&self.state))
    }

    /// Changes the state and wakes all waiters.
    fn change_state<T>(&self, change: impl FnOnce(&mut KubeletState) -> T) -> T {
        let result = change(&mut lock_state(&self.state));
        self.changed.send_modify(|count| *count += 1);
        result
    }

    /// Writes the checkpoint. A failure is only logged, as in the kubelet.
    fn save_checkpoint(&self) {
        let _turn = lock_state(&self.saving);
        let contents = self.read_state(checkpoint::encode);
        if let Err(error) = checkpoint::write_checkpoint(&self.settings.dir, &contents) {
            tracing::warn!(%error, "cannot write the checkpoint");
        }
    }

    /// Starts a task that ends with this run of the kubelet. A task that panicked is reported when
    /// the next one starts.
    fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock_state(&self.tasks);
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

/// Locks a mutex, poisoned or not: no code under these locks leaves the data half changed.
fn lock_state<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
