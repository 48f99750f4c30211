//! CRI-O's config: the main file, then the files of the folder `crio.conf.d` in the order of their names.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{CdiKeys, SupportEvidence, list_files, path_below, read_toml};

/// Folder of the config.
const FOLDER: &str = "/etc/crio";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CrioFile {
    crio: CrioSection,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CrioSection {
    runtime: CdiKeys,
}

/// Evidence in CRI-O's config; `None` if there is none.
pub(super) fn judge_crio(dir: &Path, root: &Path) -> Option<Result<SupportEvidence, String>> {
    let folder = path_below(root, Path::new(FOLDER));
    let mut paths: Vec<PathBuf> = vec![folder.join("crio.conf")];
    paths.extend(list_files(&folder.join("crio.conf.d"), |name| {
        name.ends_with(".conf")
    }));
    let mut keys: Option<CdiKeys> = None;
    for path in paths {
        match read_toml::<CrioFile>(&path) {
            Ok(None) => {}
            Ok(Some(file)) => keys.get_or_insert_default().override_by(file.crio.runtime),
            Err(why) => return Some(Err(why)),
        }
    }
    let keys = keys?;
    let name = folder.display().to_string();
    Some(Ok(match keys.passes_over(dir, &name) {
        Some(against) => against,
        None if keys.enable_cdi == Some(false) => {
            SupportEvidence::new(false, format!("{name} has enable_cdi = false"))
        }
        None => SupportEvidence::new(true, format!("{name} is of CRI-O, which takes CDI names")),
    }))
}
