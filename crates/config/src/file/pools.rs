//! The pools of `ostler.yaml`.

use std::path::PathBuf;

use schemars::JsonSchema;

use super::OneOrMany;
use crate::{
    Distinct, Handover, IdStrategy, ListStrategy, Method, Period, Placement, Policy, PreStart,
    PreStartMode, Selector, Sharing, Template, Weights, source::Said,
};

/// Devices under one resource name, or under one name for each shape.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub struct PoolFile {
    /// What people call it; unique.
    pub name: Said<String>,
    /// Which devices it takes: any that one of these matches. Without, it takes all.
    #[schemars(with = "Option<OneOrMany<Selector>>")]
    pub select: Option<Said<Vec<Selector>>>,
    /// Of the devices it takes, those that are never offered.
    #[schemars(with = "Option<OneOrMany<Selector>>")]
    pub reserved: Option<Said<Vec<Selector>>>,
    /// How many devices it takes at most, the first by the driver's index.
    #[schemars(range(min = 1))]
    pub limit: Option<Said<u32>>,
    /// The resource name, or how it is made.
    pub resource: Said<Template>,
    /// How a device is shared: a method, or a map.
    #[schemars(with = "Option<WordOr<Method, SharingFile>>")]
    pub sharing: SharingFile,
    /// Which units are best together: a policy, or a map.
    #[schemars(with = "Option<WordOr<Policy, PlacementFile>>")]
    pub placement: PlacementFile,
    /// What a container is given, where it differs from `handover` of the whole file.
    #[schemars(default)]
    pub handover: HandoverFile,
    /// What is done with a device before a container starts on it.
    pub pre_start: Option<Said<PreStartMode>>,
    /// The command for `reset` and `exec`: a text for `/bin/sh -c`, or a program and its arguments.
    /// Without one, `reset` runs `nvidia-smi --gpu-reset`.
    #[schemars(with = "Option<OneOrMany<String>>")]
    pub pre_start_command: Option<Said<Vec<String>>>,
    /// How long it may take in all, at most 25 s.
    pub pre_start_limit: Option<Said<Period>>,
}

/// How a device is shared.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SharingFile {
    /// By which means; `time-slicing` where only `replicas` is said.
    pub method: Option<Said<Method>>,
    /// How many units a device becomes.
    #[schemars(range(min = 1, max = Sharing::MOST))]
    pub replicas: Option<Said<u32>>,
    /// Whether a container may have only one of them.
    pub one_per_request: Option<Said<bool>>,
    /// Whether the units of one container must be on different cards.
    pub distinct: Option<Said<Distinct>>,
}

/// Which units are best together.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PlacementFile {
    /// The rule.
    pub policy: Option<Said<Policy>>,
    /// For the policy `weighted`: what counts how much.
    pub weights: Option<Said<Weights>>,
}

/// What a container is given for its devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HandoverFile {
    /// How the container runtime is told which devices; an empty list: not at all.
    #[schemars(with = "Option<OneOrMany<ListStrategy>>")]
    pub lists: Option<Said<Vec<ListStrategy>>>,
    /// By which ids.
    pub ids: Option<Said<IdStrategy>>,
    /// Whether device nodes are handed over through the kubelet.
    pub device_nodes: Option<Said<bool>>,
    /// The folder on the host under which `/dev/nvidia*` are.
    pub dev_root: Option<Said<PathBuf>>,
    /// The beginning of the CDI annotation's key.
    pub annotation_prefix: Option<Said<String>>,
    /// `NVIDIA_DRIVER_CAPABILITIES`, if it is to be set.
    pub capabilities: Option<Said<String>>,
    /// GPUDirect Storage.
    pub gds: Option<Said<bool>>,
    /// GDRCopy.
    pub gdrcopy: Option<Said<bool>>,
    /// MOFED: RDMA devices.
    pub mofed: Option<Said<bool>>,
    /// IMEX channels.
    #[schemars(with = "Option<OneOrMany<u32>>")]
    pub imex: Option<Said<Vec<u32>>>,
    /// The folder on the host with the MPS daemon's files.
    pub mps_root: Option<Said<PathBuf>>,
}

/// A word, or a map that says more: a form for the schema alone.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made from it, no value ever is")]
enum WordOr<W, M> {
    /// The word.
    Word(W),
    /// The map.
    Map(M),
}

// === impl PoolFile ===

impl PoolFile {
    /// What is done before a container starts, with every default filled in.
    pub(crate) fn prepare(&self) -> PreStart {
        let default = PreStart::default();
        let (mode, limit) = (self.pre_start.as_ref(), self.pre_start_limit.as_ref());
        let command = self.pre_start_command.as_ref();
        PreStart {
            mode: mode.map_or(default.mode, |said| said.value),
            command: command.map_or(default.command, |said| said.value.clone()),
            limit: limit.map_or(default.limit, |said| said.value.get()),
        }
    }
}

// === impl SharingFile ===

impl SharingFile {
    /// With every default filled in.
    pub(crate) fn resolve(&self) -> Sharing {
        let replicas = self.replicas.as_ref().map(|said| said.value);
        let method = match (&self.method, replicas) {
            (Some(method), _) => method.value,
            (None, Some(2..)) => Method::TimeSlicing,
            (None, _) => Method::None,
        };
        Sharing {
            method,
            replicas: replicas.unwrap_or(1),
            one_per_request: self.one_per_request.as_ref().is_some_and(|said| said.value),
            distinct: self
                .distinct
                .as_ref()
                .map_or_else(Distinct::default, |said| said.value),
        }
    }
}

// === impl PlacementFile ===

impl PlacementFile {
    /// With every default filled in.
    pub(crate) fn resolve(&self) -> Placement {
        let weights = self.weights.as_ref().map(|said| said.value);
        let policy = match (&self.policy, weights) {
            (Some(policy), _) => policy.value,
            (None, Some(_)) => Policy::Weighted,
            (None, None) => Placement::default().policy,
        };
        let weights = weights.unwrap_or_default();
        Placement { policy, weights }
    }
}

// === impl HandoverFile ===

impl HandoverFile {
    /// What is said here, laid over `base`.
    pub(crate) fn over(&self, base: &Handover) -> Handover {
        fn pick<T: Clone>(said: &Option<Said<T>>, base: &T) -> T {
            said.as_ref()
                .map_or_else(|| base.clone(), |said| said.value.clone())
        }
        fn pick_some<T: Clone>(said: &Option<Said<T>>, base: &Option<T>) -> Option<T> {
            said.as_ref()
                .map_or_else(|| base.clone(), |said| Some(said.value.clone()))
        }
        Handover {
            lists: pick(&self.lists, &base.lists),
            ids: pick(&self.ids, &base.ids),
            device_nodes: pick(&self.device_nodes, &base.device_nodes),
            dev_root: pick(&self.dev_root, &base.dev_root),
            annotation_prefix: pick(&self.annotation_prefix, &base.annotation_prefix),
            capabilities: pick_some(&self.capabilities, &base.capabilities),
            gds: pick(&self.gds, &base.gds),
            gdrcopy: pick(&self.gdrcopy, &base.gdrcopy),
            mofed: pick(&self.mofed, &base.mofed),
            imex: pick(&self.imex, &base.imex),
            mps_root: pick_some(&self.mps_root, &base.mps_root),
        }
    }

    /// What is said, by key, and where.
    pub(crate) fn said(&self) -> Vec<(&'static str, crate::source::Place)> {
        fn at<T>(said: &Option<Said<T>>) -> Option<crate::source::Place> {
            said.as_ref().map(|said| said.place)
        }
        let all = [
            ("lists", at(&self.lists)),
            ("ids", at(&self.ids)),
            ("deviceNodes", at(&self.device_nodes)),
            ("devRoot", at(&self.dev_root)),
            ("annotationPrefix", at(&self.annotation_prefix)),
            ("capabilities", at(&self.capabilities)),
            ("gds", at(&self.gds)),
            ("gdrcopy", at(&self.gdrcopy)),
            ("mofed", at(&self.mofed)),
            ("imex", at(&self.imex)),
            ("mpsRoot", at(&self.mps_root)),
        ];
        let there = |(key, place): (_, Option<_>)| Some((key, place?));
        all.into_iter().filter_map(there).collect()
    }
}
