//! Spec files of any vendor, JSON or YAML, found as a container runtime finds them.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// Folders that runtimes read; a name in a later one wins (container-device-interface,
/// pkg/cdi/spec-dirs.go, `DefaultSpecDirs`).
pub(super) const DIRS: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];

/// One spec file.
#[derive(Debug)]
pub(super) struct SpecFile {
    pub(super) path: PathBuf,
    /// Contents, or the reason for which they cannot be read.
    pub(super) spec: Result<Value, String>,
}

// === impl SpecFile ===

impl SpecFile {
    fn load_spec_file(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            spec: parse_spec_file(path),
        }
    }

    /// Qualified names in the file: `vendor/class=name`. Empty if the file cannot be read.
    pub(super) fn qualified_names(&self) -> Vec<String> {
        let Ok(spec) = &self.spec else {
            return Vec::new();
        };
        let kind = spec.get("kind").and_then(Value::as_str).unwrap_or("?");
        let devices = spec.get("devices").and_then(Value::as_array);
        let devices = devices.into_iter().flatten();
        let names = devices.filter_map(|device| device.get("name")?.as_str());
        names.map(|name| format!("{kind}={name}")).collect()
    }

    /// CDI version that the file declares; `-` without one.
    pub(super) fn declared_version(&self) -> &str {
        let spec = self.spec.as_ref().ok();
        let version = spec.and_then(|spec| spec.get("cdiVersion")?.as_str());
        version.unwrap_or("-")
    }
}

/// Reads the spec files at these places: files, and in folders those that a runtime would read. The
/// folders of [`DIRS`] may be absent.
///
/// # Errors
/// A folder cannot be read. A file that cannot be read is no error here: see [`SpecFile::spec`].
pub(super) fn find_spec_files(places: &[PathBuf]) -> anyhow::Result<Vec<SpecFile>> {
    let mut files = Vec::new();
    for place in places {
        if !place.is_dir() {
            match place.exists() || !DIRS.iter().any(|dir| Path::new(dir) == place) {
                true => files.push(SpecFile::load_spec_file(place)),
                false => continue,
            }
            continue;
        }
        let mut paths = Vec::new();
        for entry in fs_err::read_dir(place)? {
            paths.push(entry?.path());
        }
        paths.retain(|path| is_spec(path));
        // The order of readdir(3) differs between file systems.
        paths.sort();
        files.extend(paths.iter().map(|path| SpecFile::load_spec_file(path)));
    }
    Ok(files)
}

/// The places that were named, or else [`DIRS`].
pub(super) fn or_usual(named: Vec<PathBuf>) -> Vec<PathBuf> {
    match named.is_empty() {
        true => DIRS.map(PathBuf::from).into(),
        false => named,
    }
}

/// True if a runtime reads the file as a spec: it goes by the ending (container-device-interface,
/// pkg/cdi/spec-dirs.go, `scanSpecDirs`).
fn is_spec(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    matches!(ending, Some("json" | "yaml")) && path.is_file()
}

fn parse_spec_file(path: &Path) -> Result<Value, String> {
    let text = fs_err::read_to_string(path).map_err(|error| error.to_string())?;
    if path.extension().is_some_and(|ending| ending == "json") {
        return serde_json::from_str(&text).map_err(|error| format!("it is no JSON: {error}"));
    }
    // Only `true` and `false` are booleans, so that a name such as `no` stays a string.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(&text, options)
        .map_err(|error| format!("it is no YAML: {error}"))
}
