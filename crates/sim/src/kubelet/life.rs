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
    Core, Error, Kubelet, checkpoint, lock,
    register::Registrar,
    resources::Lister,
    state::{Endpoint, Resource},
    wire::Cut,
};

// === impl Kubelet ===

impl Kubelet {
    /// Stops like a killed process: connections end and socket files stay. The node's status and
    /// the pods do not change.
    pub async fn stop(&self) {
        let mut tasks = self.core().kill();
        tasks.shutdown().await;
    }

    /// Starts after [`stop`](Self::stop): deletes every socket in the directory, reads resources
    /// and allocations from the checkpoint, and has no devices until plugins register.
    ///
    /// # Errors
    /// If the kubelet is running, the directory cannot be prepared, or a socket cannot be bound.
    pub async fn start_again(&self) -> Result<(), Error> {
        self.core().begin()
    }

    /// Stops and starts the kubelet.
    ///
    /// # Errors
    /// As [`start_again`](Self::start_again).
    pub async fn restart(&self) -> Result<(), Error> {
        self.stop().await;
        self.start_again().await
    }

    /// Restarts twice: `kubelet.sock` is created two times within about half of `within`.
    ///
    /// # Errors
    /// As [`start_again`](Self::start_again).
    pub async fn restart_twice(&self, within: Duration) -> Result<(), Error> {
        self.restart().await?;
        tokio::time::sleep(within / 2).await;
        self.restart().await
    }
}

// === impl Core ===

impl Core {
    /// Ends all tasks and connections. The caller may wait for the end of the returned tasks.
    pub(super) fn kill(&self) -> tokio::task::JoinSet<()> {
        let mut tasks = mem::take(&mut *lock(&self.tasks));
        // The tasks first: a task that saw its connection end would mark its resource unhealthy.
        tasks.abort_all();
        let life = self.change(|state| {
            state.clients.clear();
            state.life.take()
        });
        if let Some(life) = life {
            life.cancel();
        }
        tasks
    }

    fn begin(self: &Arc<Self>) -> Result<(), Error> {
        let dir = &self.settings.dir;
        if self.look(|state| state.life.is_some()) {
            return Err(Error::Running { path: dir.clone() });
        }
        clean(dir).map_err(|source| Error::Directory {
            path: dir.clone(),
            source,
        })?;
        self.load();
        let life = CancellationToken::new();
        let registrar = Registrar {
            core: Arc::clone(self),
            life: life.clone(),
        };
        // Bound before `kubelet.sock`: a plugin that sees `kubelet.sock` appear must find this one
        // as well.
        let lister = match &self.settings.pod_resources {
            Some(path) => Some((path, listen(path)?)),
            None => None,
        };
        let registration = listen(&dir.join(KUBELET_SOCKET))?;
        self.change(|state| state.life = Some(life.clone()));
        if let Some((_, listener)) = lister {
            let service = PodResourcesListerServer::new(Lister::new(Arc::clone(self)));
            self.serve(Server::builder().add_service(service), listener, &life);
        }
        let service = RegistrationServer::new(registrar);
        self.serve(Server::builder().add_service(service), registration, &life);
        Ok(())
    }

    /// Loads the checkpoint and drops the rest of the device state. A checkpoint that cannot be
    /// read is ignored with a warning.
    fn load(self: &Arc<Self>) {
        let loaded = checkpoint::read(&self.settings.dir).unwrap_or_else(|error| {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "going on without the checkpoint");
            checkpoint::Loaded::default()
        });
        // Devices are not in the checkpoint, so all resources start without any.
        self.change(|state| {
            state.entries = loaded.entries;
            state.resources.clear();
            for name in &loaded.resources {
                state.named.insert(name.clone());
                // Registered without devices and with a stopped endpoint (manager.go,
                // readCheckpoint).
                let resource = Resource {
                    devices: Some(Default::default()),
                    endpoint: Endpoint {
                        stopped: Some(Instant::now()),
                        ..Endpoint::default()
                    },
                };
                state.resources.insert(name.clone(), resource);
            }
        });
        for name in loaded.resources {
            self.expire_later(name);
        }
    }

    fn serve(&self, router: Router, listener: UnixListener, life: &CancellationToken) {
        let (accepted, ended) = (life.clone(), life.clone().cancelled_owned());
        let incoming = UnixListenerStream::new(listener)
            .map(move |stream| stream.map(|stream| Cut::new(stream, accepted.clone())));
        self.spawn(async move {
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
fn clean(dir: &Path) -> io::Result<()> {
    fs_err::create_dir_all(dir)?;
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        // A kubelet removes sockets only: the checkpoint and sub-directories stay.
        if entry.file_type()?.is_socket() {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Binds a socket and replaces a stale one.
fn listen(path: &Path) -> Result<UnixListener, Error> {
    let bind = || {
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        remove(path)?;
        UnixListener::bind(path)
    };
    bind().map_err(|source| Error::Listen {
        path: path.to_owned(),
        source,
    })
}

/// Removes a file. A file that a plugin has removed in the meantime is no error.
fn remove(path: &Path) -> io::Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
