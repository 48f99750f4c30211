//! Translates NVIDIA's flags, variables and file into [`Config`]. No other place knows both.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{
    File, Flags,
    flags::Value,
    merge::{Merge, Pick},
    pools::{self, Wishes},
    validate,
};
use crate::{
    Config, Discovery, Error, Handover, IdStrategy, Mig, NvidiaCdi, NvidiaHandover, Origin,
    Origins, Overrides, Policy, Pools, Problem, Problems, Resolved, XidBase, XidSet, source::Word,
};

/// Folder of the MPS daemons' files in the plugin's container, as NVIDIA's chart mounts it.
const MPS_PATH: &str = "/mps";

/// Reads the file that the flags name, if any, and makes the config. `overrides` are the values of
/// our own variables. `from` returns, for the name of a flag of ours, the variable that was given.
///
/// # Errors
/// The errors of [`load`](super::load), then those of [`resolve`].
pub fn config(
    flags: &Flags,
    overrides: Overrides,
    from: &dyn Fn(&str) -> Origin,
) -> Result<Resolved, Error> {
    let file = match flags.config_file() {
        Some(path) => super::load(Path::new(path))?,
        None => File::default(),
    };
    resolve(flags, &file, overrides, from)
}

/// Makes the config of flags and file. The warnings of both are in the result.
///
/// # Errors
/// [`Error::Invalid`] has every problem of the merged values.
pub fn resolve(
    flags: &Flags,
    file: &File,
    overrides: Overrides,
    from: &dyn Fn(&str) -> Origin,
) -> Result<Resolved, Error> {
    let mut translation = Translation {
        merge: Merge {
            flags,
            file,
            problems: Vec::new(),
        },
        config: Config::default(),
        origins: Origins::default(),
    };
    translation.run();
    let mut problems = translation.merge.problems;
    problems.sort_by_key(Problem::position);
    if problems.iter().any(Problem::is_error) {
        return Err(Error::Invalid(Problems(problems)));
    }
    let known = flags.warnings.iter().chain(&file.warnings).cloned();
    let mut resolved = Resolved {
        config: translation.config,
        origins: translation.origins,
        warnings: known.chain(problems).collect(),
    };
    resolved.lay_over(overrides, from)?;
    Ok(resolved)
}

struct Translation<'a> {
    merge: Merge<'a>,
    config: Config,
    origins: Origins,
}

/// Values of `--shared-devices-allocation-policy`.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SharedPolicy {
    Distributed,
    Packed,
}

// === impl Translation ===

impl Translation<'_> {
    fn run(&mut self) {
        self.kubelet();
        self.driver();
        self.xids();
        let mig = self.mig();
        let handover = self.handover();
        let policy = self.policy();
        let wishes = Wishes {
            mig: mig.1,
            shared_policy: policy.1,
            handover: handover.0,
        };
        validate::sharing(&mut self.merge, &mig, &wishes.handover);
        let built = pools::build(&mut self.merge, &wishes);
        for (key, origin) in handover.1 {
            self.origins.set(format!("handover.{key}"), origin);
        }
        for (n, pool) in built.iter().enumerate() {
            let key = format!("pools[{n}].handover");
            self.origins.inherit("handover", &key);
            for (key, origin) in pool.origins(&policy.0.origin) {
                self.origins.set(format!("pools[{n}].{key}"), origin);
            }
        }
        self.config.handover = wishes.handover;
        self.config.backends.nvidia.mig = wishes.mig;
        self.config.pools = Pools {
            include: Vec::new(),
            exclude: Vec::new(),
            pools: built.into_iter().map(|built| built.pool).collect(),
        };
    }

    /// Returns a value, and stores its origin.
    fn take<T>(&mut self, key: &str, pick: Pick<T>) -> T {
        self.origins.set(key, pick.origin);
        pick.value
    }

    fn kubelet(&mut self) {
        // NVIDIA's plugin has the folder as a constant, and `--kubelet-socket` does not move it.
        // Here the folder is that of the socket.
        let socket = self.merge.text("kubelet-socket", "", &None);
        let path = Path::new(&socket.value);
        self.config.kubelet.register = !socket.value.is_empty();
        self.origins.set("kubelet.register", socket.origin.clone());
        if socket.value.is_empty() {
            return;
        }
        if path.file_name().is_none_or(|name| name != "kubelet.sock") {
            let message = format!(
                "the kubelet's socket is called kubelet.sock, not `{}`",
                socket.value
            );
            let help = "its folder is used, and kubelet.sock in it";
            self.merge.warn(&socket, message, help);
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        self.config.kubelet.dir = dir.unwrap_or(Path::new(".")).to_owned();
        self.origins.set("kubelet.dir", socket.origin);
    }

    fn driver(&mut self) {
        let (file, merge) = (&self.merge.file.flags, &self.merge);
        let fail = merge.said("fail-on-init-error", "", &file.fail_on_init_error);
        let root = merge.path("driver-root", "", &file.driver_root);
        let key = "flags.plugin.containerDriverRoot";
        let inner = &file.plugin.container_driver_root;
        let inner = merge.text("driver-root-ctr-path", key, inner);
        let hook = merge.path("nvidia-cdi-hook-path", "", &file.plugin.ctk_path);
        let key = "flags.deviceDiscoveryStrategy";
        let discovery = merge.text("device-discovery-strategy", key, &file.discovery);
        let required = merge.is("imex-required", "", &merge.file.imex.required);
        // NVIDIA's default is true. Here the agent waits for the driver unless true is set.
        if let Some(fail) = fail {
            let startup = self.take("backends.nvidia.failOnInitError", fail);
            self.config.backends.nvidia.startup.fail_on_init_error = startup;
        }
        let way = self.merge.word(&discovery);
        self.config.backends.nvidia.probe.discovery = way.unwrap_or(Discovery::Auto);
        self.origins
            .set("backends.nvidia.discovery", discovery.origin);
        let driver_root = self.take("backends.nvidia.cdi.driverRoot", root);
        let hook_path = self.take("backends.nvidia.cdi.hookPath", hook);
        let flags = "backends.nvidia.cdi.featureFlags";
        let hooks = "backends.nvidia.cdi.disableHooks";
        self.config.backends.nvidia.cdi = NvidiaCdi {
            driver_root: driver_root.into(),
            hook_path: hook_path.into(),
            feature_flags: self.names("cdi-feature-flags", flags),
            disable_hooks: self.names("cdi-disable-hooks", hooks),
        };
        self.config.backends.nvidia.imex_required =
            self.take("backends.nvidia.imexRequired", required);
        let nvidia = &mut self.config.backends.nvidia.probe;
        if !matches!(inner.value.as_str(), "" | "/") {
            let path = PathBuf::from(&inner.value);
            nvidia.driver_path = Some(path.clone());
            nvidia.dev_path = Some(path);
            self.origins
                .set("backends.nvidia.driverPath", inner.origin.clone());
            self.origins.set("backends.nvidia.devPath", inner.origin);
        }
        nvidia.loader_fallback = true;
        nvidia.mps_path = Some(MPS_PATH.into());
    }

    /// Returns a list of names without empty ones.
    fn names(&mut self, flag: &str, key: &str) -> Vec<String> {
        let Some(given) = self.merge.flags.given.get(flag) else {
            return Vec::new();
        };
        self.origins.set(key, given.origin.clone());
        match &given.value {
            Value::Texts(texts) => texts
                .iter()
                .filter(|text| !text.is_empty())
                .cloned()
                .collect(),
            _ => Vec::new(),
        }
    }

    fn xids(&mut self) {
        let (flags, meant) = (self.merge.flags, &mut self.config.backends.nvidia.xids);
        meant.base = XidBase::Nvidia;
        if let Some(text) = &flags.disable_xids {
            meant.ignore = xids(text);
            let origin = Origin::variable("DP_DISABLE_HEALTHCHECKS");
            self.origins.set("backends.nvidia.xids.ignore", origin);
        }
        if let Some(text) = &flags.enable_xids {
            meant.heed = xids(text);
            let origin = Origin::variable("DP_ENABLE_HEALTHCHECKS");
            self.origins.set("backends.nvidia.xids.heed", origin);
        }
    }

    fn mig(&mut self) -> (Pick<String>, Mig) {
        let file = &self.merge.file.flags;
        let pick = self
            .merge
            .text("mig-strategy", "flags.migStrategy", &file.mig_strategy);
        let mig = self.merge.word(&pick).unwrap_or(Mig::None);
        self.origins.set("backends.nvidia.mig", pick.origin.clone());
        (pick, mig)
    }

    fn policy(&mut self) -> (Pick<String>, Policy) {
        let file = &self.merge.file.flags.plugin;
        let (name, key) = (
            "shared-devices-allocation-policy",
            "flags.plugin.sharedDevicesAllocationPolicy",
        );
        let pick = self.merge.text(name, key, &file.allocation_policy);
        let policy = match self.merge.word(&pick) {
            Some(SharedPolicy::Packed) => Policy::Packed,
            Some(SharedPolicy::Distributed) | None => Policy::Spread,
        };
        (pick, policy)
    }

    /// Returns the parts that containers are given, with their origins.
    fn handover(&mut self) -> (Handover, Vec<(&'static str, Origin)>) {
        let (merge, flags) = (&self.merge, &self.merge.file.flags);
        let plugin = &flags.plugin;
        let nodes = merge.said("pass-device-specs", "", &plugin.pass_device_specs);
        let ids = merge.text(
            "device-id-strategy",
            "flags.plugin.deviceIDStrategy",
            &plugin.device_id_strategy,
        );
        let key = "flags.nvidiaDriverRoot";
        let root = merge.path("driver-root", key, &flags.driver_root);
        let key = "flags.nvidiaDevRoot";
        let dev = merge.path_or("dev-root", key, &flags.dev_root, &root);
        let key = "flags.plugin.cdiAnnotationPrefix";
        let prefix = merge.text("cdi-annotation-prefix", key, &plugin.cdi_annotation_prefix);
        let gds = merge.is("gds-enabled", "", &flags.gds);
        let gdrcopy = merge.is("gdrcopy-enabled", "", &flags.gdrcopy);
        let mofed = merge.is("mofed-enabled", "", &flags.mofed);
        let mps = merge.text("mps-root", "flags.mpsRoot", &flags.mps_root);
        validate::roots(&mut self.merge, &dev, &mps);
        validate::prefix(&mut self.merge, &prefix);
        let lists = validate::lists(&mut self.merge);
        let imex = validate::imex(&mut self.merge);
        let id = self.merge.word(&ids);
        let node_origin = nodes
            .as_ref()
            .map_or(Origin::Default, |pick| pick.origin.clone());
        let origins = vec![
            ("lists", lists.1),
            ("ids", ids.origin),
            ("deviceNodes", node_origin),
            ("nvidia.devRoot", dev.origin),
            ("nvidia.annotationPrefix", prefix.origin),
            ("nvidia.gds", gds.origin),
            ("nvidia.gdrcopy", gdrcopy.origin),
            ("nvidia.mofed", mofed.origin),
            ("nvidia.imex", imex.1),
            ("nvidia.mpsRoot", mps.origin),
        ];
        let handover = Handover {
            lists: lists.0,
            ids: id.unwrap_or(IdStrategy::Uuid),
            device_nodes: nodes.is_none_or(|pick| pick.value),
            nvidia: NvidiaHandover {
                dev_root: dev.value.into(),
                annotation_prefix: prefix.value,
                capabilities: None,
                gds: gds.value,
                gdrcopy: gdrcopy.value,
                mofed: mofed.value,
                imex: imex.0,
                mps_root: (!mps.value.is_empty()).then(|| mps.value.into()),
            },
            ..Handover::default()
        };
        (handover, origins)
    }
}

// === impl SharedPolicy ===

impl Word for SharedPolicy {}

/// Parses a health variable: numbers of XIDs, or `all` or `xids`. Any other word is left out, as in
/// NVIDIA's plugin (internal/rm/health.go).
fn xids(text: &str) -> XidSet {
    let lower = text.to_lowercase();
    let mut found = Vec::new();
    for word in lower.split(',').map(str::trim) {
        match word {
            "all" | "xids" => return XidSet::All,
            word => found.extend(word.parse::<u32>().ok()),
        }
    }
    XidSet::Some(found)
}

#[cfg(test)]
pub(super) mod tests;
