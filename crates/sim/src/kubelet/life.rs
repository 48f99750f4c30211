//! Start, stop and restart of the kubelet.

use std::{io, mem, os::unix::fs::FileTypeExt as _, path::Path, sync::Arc, time::Duration};

use kubelet_api::{
    KUBELET_SOCKET, deviceplugin::registration_server::RegistrationServer,
    podresources::pod_resources_lister_server::PodResourcesListerServer,
};
use tokio::{net::UnixListener, time::Instant};
use tokio_stream::{StreamExt as _, wrappers::UnixListenerStream};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Server, server::Router};

use super::{
    Error, Kubelet, KubeletCore, checkpoint, lock_state,
    register::RegistrationService,
    resources::PodResourcesService,
    state::{KubeletResource, PluginEndpoint},
    wire::CuttableStream,
};

// === impl Kubelet ===

impl Kubelet {
    /// Stops like a killed process: connections end and socket files stay. The node's status and
    /// the pods do not change.
    pub async fn stop_kubelet(&self) {
        let mut tasks = self.core().kill_tasks();
        tasks.shutdown().await;
    }

    /// Starts after [`stop_kubelet`](Self::stop_kubelet): deletes every socket in the directory, reads resources
    /// and allocations from the checkpoint, and has no devices until plugins register.
    ///
    /// # Errors
    /// If the kubelet is running, the directory cannot be prepared, or a socket cannot be bound.
    pub async fn start_again(&self) -> Result<(), Error> {
        self.core().begin_run()
    }

    /// Stops and starts the kubelet.
    ///
    /// # Errors
    /// As [`start_again`](Self::start_again).
    pub async fn restart_kubelet(&self) -> Result<(), Error> {
        self.stop_kubelet().await;
        self.start_again().await
    }

    /// Restarts twice: `kubelet.sock` is created two times within about half of `within`.
    ///
    /// # Errors
    /// As [`start_again`](Self::start_again).
    pub async fn restart_twice(&self, within: Duration) -> Result<(), Error> {
        self.restart_kubelet().await?;
        tokio::time::sleep(within / 2).await;
        self.restart_kubelet().await
    }
}

// === impl KubeletCore ===

impl KubeletCore {
    /// Ends all tasks and connections. The caller may wait for the end of the returned tasks.
    pub(super) fn kill_tasks(&self) -> tokio::task::JoinSet<()> {
        let mut tasks = mem::take(&mut *lock_state(&self.tasks));
        // The tasks first: a task that saw its connection end would mark its resource unhealthy.
        tasks.abort_all();
        let life = self.change_state(|state| {
            state.clients.clear();
            state.life.take()
        });
        if let Some(life) = life {
            life.cancel();
        }
        tasks
    }

    fn begin_run(self: &Arc<Self>) -> Result<(), Error> {
        let dir = &self.settings.dir;
        if self.read_state(|state| state.life.is_some()) {
            return Err(Error::Running { path: dir.clone() });
        }
        remove_sockets(dir).map_err(|source| Error::Directory {
            path: dir.clone(),
            source,
        })?;
        self.load_checkpoint();
        let life = CancellationToken::new();
        let registrar = RegistrationService {
            core: Arc::clone(self),
            life: life.clone(),
        };
        // Bound before `kubelet.sock`: a plugin that sees `kubelet.sock` appear must find this one
        // as well.
        let lister = match &self.settings.pod_resources {
            Some(path) => Some((path, bind_socket(path)?)),
            None => None,
        };
        let registration = bind_socket(&dir.join(KUBELET_SOCKET))?;
        self.change_state(|state| state.life = Some(life.clone()));
        if let Some((_, listener)) = lister {
            let service = PodResourcesListerServer::new(PodResourcesService::new(Arc::clone(self)));
            self.serve_socket(Server::builder().add_service(service), listener, &life);
        }
        let service = RegistrationServer::new(registrar);
        self.serve_socket(Server::builder().add_service(service), registration, &life);
        Ok(())
    }

    /// Loads the checkpoint and drops the rest of the device state. A checkpoint that cannot be
    /// read is ignored with a warning.
    fn load_checkpoint(self: &Arc<Self>) {
        let loaded = checkpoint::read_checkpoint(&self.settings.dir).unwrap_or_else(|error| {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "going on without the checkpoint");
            checkpoint::LoadedCheckpoint::default()
        });
        // Devices are not in the checkpoint, so all resources start without any.
        self.change_state(|state| {
            state.entries = loaded.entries;
            state.resources.clear();
            for name in &loaded.resources {
                state.named.insert(name.clone());
                // Registered without devices and with a stopped endpoint (manager.go,
                // readCheckpoint).
                let resource = KubeletResource {
                    devices: Some(Default::default()),
                    endpoint: PluginEndpoint {
                        stopped: Some(Instant::now()),
                        ..PluginEndpoint::default()
                    },
                };
                state.resources.insert(name.clone(), resource);
            }
        });
        for name in loaded.resources {
            self.expire_later(name);
        }
    }

    fn serve_socket(&self, router: Router, listener: UnixListener, life: &CancellationToken) {
        let (accepted, ended) = (life.clone(), life.clone().cancelled_owned());
        let incoming = UnixListenerStream::new(listener)
            .map(move |stream| stream.map(|stream| CuttableStream::new(stream, accepted.clone())));
        self.spawn_task(async move {
            if let Err(error) = router.serve_with_incoming_shutdown(incoming, ended).await {
                let error: &dyn std::error::Error = &error;
                tracing::error!(
                    error,
                    "a socket of the simulated kubelet is not served any more"
                );
            }
        });
    }
}

/// Creates the directory and deletes every socket in it; files and folders stay.
fn remove_sockets(dir: &Path) -> io::Result<()> {
    fs_err::create_dir_all(dir)?;
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        // A kubelet removes sockets only: the checkpoint and sub-directories stay.
        if entry.file_type()?.is_socket() {
            remove_if_present(&entry.path())?;
        }
    }
    Ok(())
}

/// Binds a socket and replaces a stale one.
fn bind_socket(path: &Path) -> Result<UnixListener, Error> {
    let bind = || {
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        remove_if_present(path)?;
        UnixListener::bind(path)
    };
    bind().map_err(|source| Error::Listen {
        path: path.to_owned(),
        source,
    })
}

/// Removes a file. A file that a plugin has removed in the meantime is no error.
fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
