//! Spec files of any vendor, JSON or YAML, as a runtime finds them.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// Where runtimes look; what comes later wins.
pub(super) const DIRS: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];

/// A spec file.
#[derive(Debug)]
pub(super) struct SpecFile {
    pub(super) path: PathBuf,
    /// The contents, or why there are none.
    pub(super) spec: Result<Value, String>,
}

// === impl SpecFile ===

impl SpecFile {
    fn read(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            spec: read(path),
        }
    }

    /// The qualified names in it.
    pub(super) fn names(&self) -> Vec<String> {
        let Ok(spec) = &self.spec else {
            return Vec::new();
        };
        let kind = spec.get("kind").and_then(Value::as_str).unwrap_or("?");
        let devices = spec.get("devices").and_then(Value::as_array);
        let devices = devices.into_iter().flatten();
        let names = devices.filter_map(|device| device.get("name")?.as_str());
        names.map(|name| format!("{kind}={name}")).collect()
    }

    /// The version of CDI that it declares.
    pub(super) fn version(&self) -> &str {
        let spec = self.spec.as_ref().ok();
        let version = spec.and_then(|spec| spec.get("cdiVersion")?.as_str());
        version.unwrap_or("-")
    }
}

/// The spec files at these places: files, and what runtimes would read of folders. A folder that
/// runtimes look into by themselves need not exist.
pub(super) fn find(places: &[PathBuf]) -> anyhow::Result<Vec<SpecFile>> {
    let mut files = Vec::new();
    for place in places {
        if !place.is_dir() {
            match place.exists() || !DIRS.iter().any(|dir| Path::new(dir) == place) {
                true => files.push(SpecFile::read(place)),
                false => continue,
            }
            continue;
        }
        let mut paths = Vec::new();
        for entry in fs_err::read_dir(place)? {
            paths.push(entry?.path());
        }
        paths.retain(|path| is_spec(path));
        paths.sort();
        files.extend(paths.iter().map(|path| SpecFile::read(path)));
    }
    Ok(files)
}

/// The places that were named, or else those where runtimes look.
pub(super) fn or_usual(named: Vec<PathBuf>) -> Vec<PathBuf> {
    match named.is_empty() {
        true => DIRS.map(PathBuf::from).into(),
        false => named,
    }
}

/// Whether a runtime takes the file for a spec.
fn is_spec(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    matches!(ending, Some("json" | "yaml")) && path.is_file()
}

fn read(path: &Path) -> Result<Value, String> {
    let text = fs_err::read_to_string(path).map_err(|error| error.to_string())?;
    if path.extension().is_some_and(|ending| ending == "json") {
        return serde_json::from_str(&text).map_err(|error| format!("it is no JSON: {error}"));
    }
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(&text, options)
        .map_err(|error| format!("it is no YAML: {error}"))
}
