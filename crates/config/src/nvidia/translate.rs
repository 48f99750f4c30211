//! Translates NVIDIA's flags, variables and file into [`Config`]. No other place knows both.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{
    GivenFlags, V1File,
    flags::FlagValue,
    merge::{FlagMerge, MergedValue},
    pools::{self, PoolOptions},
    validate,
};
use crate::{
    Config, ConfigProblem, ConfigProblems, Discovery, Error, Handover, IdStrategy, Mig, NvidiaCdi,
    NvidiaHandover, Origins, Overrides, Policy, Pools, Resolved, ValueOrigin, XidBase, XidSet,
    source::Word,
};

/// Folder of the MPS daemons' files in the plugin's container, as NVIDIA's chart mounts it.
const MPS_PATH: &str = "/mps";

/// Reads the file that the flags name, if any, and makes the config. `overrides` are the values of
/// our own variables. `from` returns, for the name of a flag of ours, the variable that was given.
///
/// # Errors
/// The errors of [`load_v1`](super::load_v1), then those of [`translate_file`].
pub fn translate_flags(
    flags: &GivenFlags,
    overrides: Overrides,
    from: &dyn Fn(&str) -> ValueOrigin,
) -> Result<Resolved, Error> {
    let file = match flags.config_file() {
        Some(path) => super::load_v1(Path::new(path))?,
        None => V1File::default(),
    };
    translate_file(flags, &file, overrides, from)
}

/// Makes the config of flags and file. The warnings of both are in the result.
///
/// # Errors
/// [`Error::Invalid`] has every problem of the merged values.
pub fn translate_file(
    flags: &GivenFlags,
    file: &V1File,
    overrides: Overrides,
    from: &dyn Fn(&str) -> ValueOrigin,
) -> Result<Resolved, Error> {
    let mut translation = Translation {
        merge: FlagMerge {
            flags,
            file,
            problems: Vec::new(),
        },
        config: Config::default(),
        origins: Origins::default(),
    };
    translation.translate_all();
    let mut problems = translation.merge.problems;
    problems.sort_by_key(ConfigProblem::sort_key);
    if problems.iter().any(ConfigProblem::is_error) {
        return Err(Error::Invalid(ConfigProblems(problems)));
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
    merge: FlagMerge<'a>,
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
    fn translate_all(&mut self) {
        self.translate_kubelet();
        self.translate_driver();
        self.translate_xids();
        let mig = self.translate_mig();
        let handover = self.handover();
        let policy = self.policy();
        let wishes = PoolOptions {
            mig: mig.1,
            shared_policy: policy.1,
            handover: handover.0,
        };
        validate::validate_mps(&mut self.merge, &mig, &wishes.handover);
        let built = pools::build_pools(&mut self.merge, &wishes);
        for (key, origin) in handover.1 {
            self.origins.set_origin(format!("handover.{key}"), origin);
        }
        for (n, pool) in built.iter().enumerate() {
            let key = format!("pools[{n}].handover");
            self.origins.inherit_origins("handover", &key);
            for (key, origin) in pool.list_pool_origins(&policy.0.origin) {
                self.origins.set_origin(format!("pools[{n}].{key}"), origin);
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
    fn take_value<T>(&mut self, key: &str, pick: MergedValue<T>) -> T {
        self.origins.set_origin(key, pick.origin);
        pick.value
    }

    fn translate_kubelet(&mut self) {
        // NVIDIA's plugin has the folder as a constant, and `--kubelet-socket` does not move it.
        // Here the folder is that of the socket.
        let socket = self.merge.merge_text("kubelet-socket", "", &None);
        let path = Path::new(&socket.value);
        self.config.kubelet.register = !socket.value.is_empty();
        self.origins
            .set_origin("kubelet.register", socket.origin.clone());
        if socket.value.is_empty() {
            return;
        }
        if path.file_name().is_none_or(|name| name != "kubelet.sock") {
            let message = format!(
                "the kubelet's socket is called kubelet.sock, not `{}`",
                socket.value
            );
            let help = "its folder is used, and kubelet.sock in it";
            self.merge.note_flag_warning(&socket, message, help);
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        self.config.kubelet.dir = dir.unwrap_or(Path::new(".")).to_owned();
        self.origins.set_origin("kubelet.dir", socket.origin);
    }

    fn translate_driver(&mut self) {
        let (file, merge) = (&self.merge.file.flags, &self.merge);
        let fail = merge.given_or_file("fail-on-init-error", "", &file.fail_on_init_error);
        let root = merge.merge_path("driver-root", "", &file.driver_root);
        let key = "flags.plugin.containerDriverRoot";
        let inner = &file.plugin.container_driver_root;
        let inner = merge.merge_text("driver-root-ctr-path", key, inner);
        let hook = merge.merge_path("nvidia-cdi-hook-path", "", &file.plugin.ctk_path);
        let key = "flags.deviceDiscoveryStrategy";
        let discovery = merge.merge_text("device-discovery-strategy", key, &file.discovery);
        let required = merge.merge_bool("imex-required", "", &merge.file.imex.required);
        // NVIDIA's default is true. Here the agent waits for the driver unless true is set.
        if let Some(fail) = fail {
            let startup = self.take_value("backends.nvidia.failOnInitError", fail);
            self.config.backends.nvidia.startup.fail_on_init_error = startup;
        }
        let way = self.merge.merge_choice(&discovery);
        self.config.backends.nvidia.probe.discovery = way.unwrap_or(Discovery::Auto);
        self.origins
            .set_origin("backends.nvidia.discovery", discovery.origin);
        let driver_root = self.take_value("backends.nvidia.cdi.driverRoot", root);
        let hook_path = self.take_value("backends.nvidia.cdi.hookPath", hook);
        let flags = "backends.nvidia.cdi.featureFlags";
        let hooks = "backends.nvidia.cdi.disableHooks";
        self.config.backends.nvidia.cdi = NvidiaCdi {
            driver_root: driver_root.into(),
            hook_path: hook_path.into(),
            feature_flags: self.list_names("cdi-feature-flags", flags),
            disable_hooks: self.list_names("cdi-disable-hooks", hooks),
        };
        self.config.backends.nvidia.imex_required =
            self.take_value("backends.nvidia.imexRequired", required);
        let nvidia = &mut self.config.backends.nvidia.probe;
        if !matches!(inner.value.as_str(), "" | "/") {
            let path = PathBuf::from(&inner.value);
            nvidia.driver_path = Some(path.clone());
            nvidia.dev_path = Some(path);
            self.origins
                .set_origin("backends.nvidia.driverPath", inner.origin.clone());
            self.origins
                .set_origin("backends.nvidia.devPath", inner.origin);
        }
        nvidia.loader_fallback = true;
        nvidia.mps_path = Some(MPS_PATH.into());
    }

    /// Returns a list of names without empty ones.
    fn list_names(&mut self, flag: &str, key: &str) -> Vec<String> {
        let Some(given) = self.merge.flags.given.get(flag) else {
            return Vec::new();
        };
        self.origins.set_origin(key, given.origin.clone());
        match &given.value {
            FlagValue::Texts(texts) => texts
                .iter()
                .filter(|text| !text.is_empty())
                .cloned()
                .collect(),
            _ => Vec::new(),
        }
    }

    fn translate_xids(&mut self) {
        let (flags, meant) = (self.merge.flags, &mut self.config.backends.nvidia.xids);
        meant.base = XidBase::Nvidia;
        if let Some(text) = &flags.disable_xids {
            meant.ignore = parse_xids(text);
            let origin = ValueOrigin::of_variable("DP_DISABLE_HEALTHCHECKS");
            self.origins
                .set_origin("backends.nvidia.xids.ignore", origin);
        }
        if let Some(text) = &flags.enable_xids {
            meant.heed = parse_xids(text);
            let origin = ValueOrigin::of_variable("DP_ENABLE_HEALTHCHECKS");
            self.origins.set_origin("backends.nvidia.xids.heed", origin);
        }
    }

    fn translate_mig(&mut self) -> (MergedValue<String>, Mig) {
        let file = &self.merge.file.flags;
        let pick = self
            .merge
            .merge_text("mig-strategy", "flags.migStrategy", &file.mig_strategy);
        let mig = self.merge.merge_choice(&pick).unwrap_or(Mig::None);
        self.origins
            .set_origin("backends.nvidia.mig", pick.origin.clone());
        (pick, mig)
    }

    fn policy(&mut self) -> (MergedValue<String>, Policy) {
        let file = &self.merge.file.flags.plugin;
        let (name, key) = (
            "shared-devices-allocation-policy",
            "flags.plugin.sharedDevicesAllocationPolicy",
        );
        let pick = self.merge.merge_text(name, key, &file.allocation_policy);
        let policy = match self.merge.merge_choice(&pick) {
            Some(SharedPolicy::Packed) => Policy::Packed,
            Some(SharedPolicy::Distributed) | None => Policy::Spread,
        };
        (pick, policy)
    }

    /// Returns the parts that containers are given, with their origins.
    fn handover(&mut self) -> (Handover, Vec<(&'static str, ValueOrigin)>) {
        let (merge, flags) = (&self.merge, &self.merge.file.flags);
        let plugin = &flags.plugin;
        let nodes = merge.given_or_file("pass-device-specs", "", &plugin.pass_device_specs);
        let ids = merge.merge_text(
            "device-id-strategy",
            "flags.plugin.deviceIDStrategy",
            &plugin.device_id_strategy,
        );
        let key = "flags.nvidiaDriverRoot";
        let root = merge.merge_path("driver-root", key, &flags.driver_root);
        let key = "flags.nvidiaDevRoot";
        let dev = merge.path_or("dev-root", key, &flags.dev_root, &root);
        let key = "flags.plugin.cdiAnnotationPrefix";
        let prefix = merge.merge_text("cdi-annotation-prefix", key, &plugin.cdi_annotation_prefix);
        let gds = merge.merge_bool("gds-enabled", "", &flags.gds);
        let gdrcopy = merge.merge_bool("gdrcopy-enabled", "", &flags.gdrcopy);
        let mofed = merge.merge_bool("mofed-enabled", "", &flags.mofed);
        let mps = merge.merge_text("mps-root", "flags.mpsRoot", &flags.mps_root);
        validate::warn_relative_roots(&mut self.merge, &dev, &mps);
        validate::warn_prefix(&mut self.merge, &prefix);
        let lists = validate::validate_lists(&mut self.merge);
        let imex = validate::validate_imex(&mut self.merge);
        let id = self.merge.merge_choice(&ids);
        let node_origin = nodes
            .as_ref()
            .map_or(ValueOrigin::Default, |pick| pick.origin.clone());
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
fn parse_xids(text: &str) -> XidSet {
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
