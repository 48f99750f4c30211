//! Flags and variables over the file, the file over the defaults; and who said what.

use std::path::{Path, PathBuf};

use crate::{
    Config, Error, File, Handover, Health, Needs, Origin, Origins, Overrides, Pool, Pools, Problem,
    Problems, Resolved, Severity,
    file::{HandoverFile, PoolFile},
    source::{Place, Said, Source},
};

/// Reads the config file, if there is one, and lays flags and variables over it. `from` tells
/// for a flag's name whether the flag or its variable said it.
pub fn native(
    path: Option<&Path>,
    overrides: Overrides,
    from: &dyn Fn(&str) -> Origin,
) -> Result<Resolved, Error> {
    let file = match path {
        Some(path) => crate::load(path)?,
        None => File::default(),
    };
    let resolved = Resolved::new(overrides, file, from);
    resolved.check()?;
    Ok(resolved)
}

/// Takes values over, and notes where they came from.
struct Layers<'a> {
    source: Source,
    origins: Origins,
    from: &'a dyn Fn(&str) -> Origin,
}

// === impl Resolved ===

impl Resolved {
    /// Lays flags and variables over the file, and the file over the defaults.
    pub fn new(overrides: Overrides, file: File, from: &dyn Fn(&str) -> Origin) -> Self {
        let mut layers = Layers {
            source: file.source.clone(),
            origins: file.origins.clone(),
            from,
        };
        let mut config = Config::default();
        layers.values(&mut config, &file);
        layers.flags(&mut config, overrides);
        config.pools = layers.pools(&file);
        layers.settle(&mut config);
        config.pools.needs = Needs::of(&config);
        Self {
            config,
            origins: layers.origins,
            warnings: file.warnings,
        }
    }

    /// Lays what our own flags and variables say over a config that was made another way.
    pub(crate) fn lay_over(&mut self, overrides: Overrides, from: &dyn Fn(&str) -> Origin) {
        let mut layers = Layers {
            source: Source::default(),
            origins: std::mem::take(&mut self.origins),
            from,
        };
        layers.flags(&mut self.config, overrides);
        layers.settle(&mut self.config);
        self.config.pools.needs = Needs::of(&self.config);
        self.origins = layers.origins;
    }

    /// Checks what flags and file say together.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, (message, help)| {
            problems.push(Problem {
                severity: Severity::Error,
                at: self.origins.of(key),
                key: key.to_owned(),
                message,
                help,
                snippet: None,
            });
        };
        if let Some(words) = self.config.kubelet.lacks_room() {
            wrong("kubelet.dir", words);
        }
        for (key, path) in self.config.flag_paths() {
            if path.is_some_and(|path| path.to_str().is_none()) {
                let message = "the path is not a text in UTF-8".to_owned();
                let help = "use a path that is: it is handed on and shown as a text".to_owned();
                wrong(key, (message, help));
            }
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(Problems(problems))),
        }
    }
}

// === impl Config ===

impl Config {
    /// The paths that a flag can say, by their keys.
    fn flag_paths(&self) -> [(&'static str, Option<&PathBuf>); 8] {
        let (kubelet, nvidia) = (&self.kubelet, &self.backends.nvidia);
        let socket = &kubelet.pod_resources_socket;
        [
            ("kubelet.dir", Some(&kubelet.dir)),
            ("kubelet.podResourcesSocket", Some(socket)),
            ("hostRoot", Some(&self.host_root)),
            ("backends.nvidia.driverPath", nvidia.driver_path.as_ref()),
            ("backends.nvidia.nvmlLibrary", nvidia.nvml_library.as_ref()),
            ("backends.nvidia.mpsPath", nvidia.mps_path.as_ref()),
            ("controlSocket", Some(&self.control_socket)),
            ("cdi.dir", Some(&self.cdi.dir)),
        ]
    }
}

// === impl Layers ===

impl Layers<'_> {
    /// What flags and variables say.
    fn flags(&mut self, config: &mut Config, flags: Overrides) {
        let mut flag = |key: &str, flag: &str, value: Option<PathBuf>| {
            if value.is_some() {
                self.origins.set(key, (self.from)(flag));
            }
            value
        };
        let (kubelet, nvidia) = (&mut config.kubelet, &mut config.backends.nvidia);
        if let Some(dir) = flag("kubelet.dir", "kubelet-dir", flags.kubelet_dir) {
            kubelet.dir = dir;
        }
        let key = "kubelet.podResourcesSocket";
        if let Some(socket) = flag(key, "pod-resources-socket", flags.pod_resources_socket) {
            kubelet.pod_resources_socket = socket;
        }
        if let Some(root) = flag("hostRoot", "host-root", flags.host_root) {
            config.host_root = root;
        }
        let key = "backends.nvidia.driverPath";
        if let Some(path) = flag(key, "driver-path", flags.driver_path) {
            nvidia.driver_path = Some(path);
        }
        let key = "backends.nvidia.nvmlLibrary";
        if let Some(library) = flag(key, "nvml-library", flags.nvml_library) {
            nvidia.nvml_library = Some(library);
        }
        let key = "backends.nvidia.mpsPath";
        if let Some(path) = flag(key, "mps-path", flags.mps_path) {
            nvidia.mps_path = Some(path);
        }
        if let Some(socket) = flag("controlSocket", "control-socket", flags.control_socket) {
            config.control_socket = socket;
        }
        if let Some(dir) = flag("cdi.dir", "cdi-dir", flags.cdi_dir) {
            config.cdi.dir = dir;
        }
    }

    /// What the file says.
    fn values(&mut self, config: &mut Config, file: &File) {
        self.set(
            "failOnInitError",
            &mut config.fail_on_init_error,
            &file.fail_on_init_error,
        );
        self.set("hostRoot", &mut config.host_root, &file.host_root);
        self.set(
            "controlSocket",
            &mut config.control_socket,
            &file.control_socket,
        );
        self.set(
            "imexRequired",
            &mut config.imex_required,
            &file.imex_required,
        );
        config.kubelet.clone_from(&file.kubelet);
        config.probe.clone_from(&file.probe);
        config.backends.clone_from(&file.backends);
        config.cdi.clone_from(&file.cdi);
        config.health.clone_from(&file.health);
    }

    /// Fills in what follows from other values.
    fn settle(&self, config: &mut Config) {
        let health = &mut config.health;
        if self.origins.of("health.stateFile") == Origin::Default {
            health.state_file = Some(config.kubelet.dir.join(Health::STATE_FILE));
        }
        health.hold_down_limit = health.hold_down_limit.max(health.hold_down);
        config.pools.unknown = health.unknown;
    }

    fn pools(&mut self, file: &File) -> Pools {
        let base = file.handover.over(&Handover::default());
        let mig = file.mig.as_ref().map(|said| said.value);
        let mut pools = mig.map_or_else(Pools::default, Pools::of);
        self.set("mig", &mut pools.mig, &file.mig);
        self.set("include", &mut pools.include, &file.include);
        self.set("exclude", &mut pools.exclude, &file.exclude);
        let Some(said) = &file.pools else {
            for (n, pool) in pools.pools.iter_mut().enumerate() {
                self.handover(n, &file.handover);
                pool.handover = base.clone();
            }
            return pools;
        };
        pools.pools.clear();
        for (n, pool) in said.iter().enumerate() {
            self.origins_of(n, pool);
            self.handover(n, &file.handover);
            self.handover(n, &pool.handover);
            pools.pools.push(pool.resolve(&base));
        }
        pools
    }

    fn origins_of(&mut self, n: usize, pool: &PoolFile) {
        fn at<T>(said: &Option<Said<T>>) -> Option<Place> {
            said.as_ref().map(|said| said.place)
        }
        let (sharing, placement) = (&pool.sharing, &pool.placement);
        let places = [
            ("name", Some(pool.name.place)),
            ("resource", Some(pool.resource.place)),
            ("select", at(&pool.select)),
            ("reserved", at(&pool.reserved)),
            ("limit", at(&pool.limit)),
            ("sharing.method", at(&sharing.method)),
            ("sharing.replicas", at(&sharing.replicas)),
            ("sharing.onePerRequest", at(&sharing.one_per_request)),
            ("sharing.distinct", at(&sharing.distinct)),
            ("placement.policy", at(&placement.policy)),
            ("placement.weights", at(&placement.weights)),
            ("preStart", at(&pool.pre_start)),
            ("preStartCommand", at(&pool.pre_start_command)),
            ("preStartLimit", at(&pool.pre_start_limit)),
        ];
        for (name, place) in places {
            if let Some(place) = place {
                self.note(&format!("pools[{n}].{name}"), place);
            }
        }
    }

    fn handover(&mut self, n: usize, handover: &HandoverFile) {
        for (name, place) in handover.said() {
            self.note(&format!("pools[{n}].handover.{name}"), place);
        }
    }

    fn set<T: Clone>(&mut self, key: &str, value: &mut T, said: &Option<Said<T>>) {
        if let Some(said) = said {
            value.clone_from(&said.value);
            self.note(key, said.place);
        }
    }

    fn note(&mut self, key: &str, place: Place) {
        self.origins.set(key, self.source.origin(place));
    }
}

// === impl PoolFile ===

impl PoolFile {
    /// With every default filled in.
    fn resolve(&self, base: &Handover) -> Pool {
        let selectors = |said: &Option<Said<Vec<_>>>| {
            let said = said.as_ref();
            said.map_or_else(Vec::new, |said| said.value.clone())
        };
        Pool {
            name: self.name.value.clone(),
            selectors: selectors(&self.select),
            reserved: selectors(&self.reserved),
            limit: self.limit.as_ref().map(|said| said.value),
            resource: self.resource.value.clone(),
            sharing: self.sharing.resolve(),
            placement: self.placement.resolve(),
            handover: self.handover.over(base),
            pre_start: self.prepare(),
        }
    }
}
