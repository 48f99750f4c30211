//! Evidence that the kubelet passes CDI names on: files in its root folder that only newer releases write.
//!
//! A kubelet before 1.29 drops the CDI names of an answer without a log line, and so does a kubelet of 1.29 or
//! 1.30 whose feature gate `DevicePluginCDIDevices` is off (pkg/features/kube_features.go: alpha in 1.28, on in
//! 1.29, locked in 1.31). Neither its calls nor its checkpoint of devices tell its release. But:
//!
//! - `dra_manager_state` is written when a kubelet with DRA starts (pkg/kubelet/cm/dra/manager.go, `NewManager`,
//!   and pkg/kubelet/cm/dra/state/checkpointer.go, `GetOrCreate`). DRA is on since 1.34 and locked since 1.35. The
//!   file has the group `checkpoint.dra.kubelet.k8s.io` in releases newer than the types of 1.31. The older form
//!   proves nothing, because 1.27 wrote it, too.
//! - `allocated_pods_state` is written with the first pod that a kubelet since 1.33 admits
//!   (pkg/kubelet/allocation/allocation_manager.go, `NewManager`, and state/state_checkpoint.go, `storeState`); the
//!   gate `InPlacePodVerticalScaling` is on since 1.33 and locked since 1.35. Before, the file was called
//!   `pod_status_manager_state`.
//!
//! Neither is removed by an older kubelet that takes the place of a newer one.

use std::{
    io,
    path::{Path, PathBuf},
};

use cdi::SupportEvidence;
use config::{Cdi, RuntimeSupport};
use host::small;
use serde::Deserialize;

use super::TEXT_LIMIT;

/// File with the kubelet's state of DRA claims.
const CLAIMS: &str = "dra_manager_state";
/// API group in the newer form of that file.
const CLAIMS_GROUP: &str = "checkpoint.dra.kubelet.k8s.io/";
/// File with the resources of admitted pods.
const PODS: &str = "allocated_pods_state";

/// State of DRA claims as on the disk. The field `AllocationData` is a string with JSON text in it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ClaimsFile {
    data: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimsHeader {
    api_version: String,
}

/// Reads the evidence on the kubelet with this device plugin folder, on the host under `host_root`. The call
/// blocks. It never fails: a file that cannot be read is no evidence, and the reason says so.
pub(super) fn find_kubelet_support(
    cdi: &Cdi,
    kubelet_dir: &Path,
    host_root: &Path,
) -> SupportEvidence {
    match cdi.runtime {
        RuntimeSupport::Supported => SupportEvidence::new(true, "the config says `supported`"),
        RuntimeSupport::Unsupported => SupportEvidence::new(false, "the config says `unsupported`"),
        RuntimeSupport::Auto => search_roots(&list_root_folders(kubelet_dir, host_root)),
    }
}

/// Paths at which the agent may see the kubelet's root folder. A pod often mounts the device plugin folder of
/// the host, but not its parent. Then the root folder is below `host_root`.
fn list_root_folders(kubelet_dir: &Path, host_root: &Path) -> Vec<PathBuf> {
    let Some(beside) = kubelet_dir.parent() else {
        return Vec::new();
    };
    let below = host_root.join(beside.strip_prefix("/").unwrap_or(beside));
    let mut roots = vec![beside.to_owned(), below];
    roots.dedup();
    roots
}

fn search_roots(roots: &[PathBuf]) -> SupportEvidence {
    let mut against = Vec::new();
    for root in roots {
        for found in [
            check_claims_state(&root.join(CLAIMS)),
            pods(&root.join(PODS)),
        ] {
            match found {
                Ok(Some(reason)) => return SupportEvidence::new(true, reason),
                Ok(None) => {}
                Err(why) => against.push(why),
            }
        }
    }
    let places: Vec<String> = roots
        .iter()
        .map(|root| root.display().to_string())
        .collect();
    against.push(format!(
        "no {CLAIMS} or {PODS} of a kubelet of 1.31 or newer is in {}; if it is 1.29 or newer, set \
         cdi.runtime: supported",
        places.join(" or ")
    ));
    SupportEvidence::new(false, against.join("; "))
}

/// Evidence in the state of claims; `None` if there is no such file.
fn check_claims_state(path: &Path) -> Result<Option<String>, String> {
    let name = path.display();
    let text = match small::read_text(path, TEXT_LIMIT) {
        Ok(text) => text,
        Err(small::Error::Io(error)) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(format!("{name} cannot be read: {error}")),
    };
    let file: Option<ClaimsFile> = serde_json::from_str(&text).ok();
    let claims = file.and_then(|file| serde_json::from_str::<ClaimsHeader>(&file.data).ok());
    match claims.is_some_and(|claims| claims.api_version.starts_with(CLAIMS_GROUP)) {
        true => Ok(Some(format!(
            "{name} is of a kubelet of 1.31 or newer, which pass CDI names on"
        ))),
        false => Err(format!(
            "{name} is not in the form that kubelets of 1.31 and newer write"
        )),
    }
}

/// Evidence in the resources of pods; `None` if there is no such file. Only the name and the size count: the
/// file can be large, and its form differs between releases.
fn pods(path: &Path) -> Result<Option<String>, String> {
    let name = path.display();
    match fs_err::metadata(path) {
        Ok(file) if file.is_file() && file.len() > 0 => Ok(Some(format!(
            "{name} is of a kubelet of 1.33 or newer, which pass CDI names on"
        ))),
        Ok(_) => Err(format!("{name} is no file that a kubelet wrote")),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(format!("{name} cannot be looked at: {error}")),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
pub(super) mod tests;
