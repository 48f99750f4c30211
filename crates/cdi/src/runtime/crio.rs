//! CRI-O's config: the main file, then the files of the folder `crio.conf.d` in the order of their names.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{CdiKeys, Evidence, below, files, read_toml};

/// Folder of the config.
const FOLDER: &str = "/etc/crio";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    crio: Crio,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Crio {
    runtime: CdiKeys,
}

/// Evidence in CRI-O's config; `None` if there is none.
pub(super) fn judge(dir: &Path, root: &Path) -> Option<Result<Evidence, String>> {
    let folder = below(root, Path::new(FOLDER));
    let mut paths: Vec<PathBuf> = vec![folder.join("crio.conf")];
    paths.extend(files(&folder.join("crio.conf.d"), |name| {
        name.ends_with(".conf")
    }));
    let mut keys: Option<CdiKeys> = None;
    for path in paths {
        match read_toml::<File>(&path) {
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
            Evidence::new(false, format!("{name} has enable_cdi = false"))
        }
        None => Evidence::new(true, format!("{name} is of CRI-O, which takes CDI names")),
    }))
}
