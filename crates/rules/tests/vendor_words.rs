//! Only a vendor's own folders use its words. Every other line with such a word is counted here, by
//! file and with the reason. A line more or less fails the test, so that the list stays true.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Words of NVIDIA. `fabric` is one of them: its probe has two conditions with this name.
const WORDS: [&str; 19] = [
    "compute_capability",
    "compute_instance",
    "cuda",
    "fabric",
    "gdrcopy",
    "gds",
    "gpu_instance",
    "imex",
    "mig",
    "mofed",
    "mps",
    "nvidia",
    "nvlink",
    "nvml",
    "nvswitch",
    "remap",
    "tegra",
    "wsl",
    "xid",
];

/// Folders of a vendor, and of the simulator, which imitates one vendor's hardware.
const ROOMS: [&str; 12] = [
    "config/src/backends/acme",
    "config/src/backends/nvidia",
    "config/src/nvidia",
    "nvml/",
    "ostler/src/cli/demo",
    "ostler/src/cli/nvidia",
    "ostler/src/cli/probe/nvidia",
    "ostler/src/cli/sim",
    "sim-driver/",
    "sim-node/",
    "sim/",
    "vendors/",
];

/// Files that are compiled for tests only.
const TEST_FILES: [&str; 3] = ["brute.rs", "machines.rs", "sample.rs"];

const DROP_IN: &str = "the drop-in speaks NVIDIA's flags and file";
const OLD_FILE: &str = "reads what an older agent wrote";
const PROTOCOL: &str =
    "a field of the probe protocol, which has its next version with the backends of others";
const SECTION: &str = "the line, or the few, that each vendor has here";
const METHOD: &str = "`mps` is the config's word for a way of sharing";

/// Remaining lines, by file.
const REMAIN: [(&str, usize, &str); 25] = [
    ("config/src/backends.rs", 13, SECTION),
    ("config/src/error.rs", 2, DROP_IN),
    ("config/src/lib.rs", 3, SECTION),
    ("config/src/pools/check.rs", 1, METHOD),
    ("config/src/pools/handover.rs", 4, SECTION),
    ("config/src/pools/sharing.rs", 1, METHOD),
    ("grant/src/check.rs", 1, DROP_IN),
    ("health/src/check.rs", 6, OLD_FILE),
    ("health/src/record/persist.rs", 3, OLD_FILE),
    ("health/src/saved.rs", 4, OLD_FILE),
    ("inventory/src/inventory/old_facts.rs", 4, OLD_FILE),
    ("inventory/src/state.rs", 1, OLD_FILE),
    ("model/src/backend.rs", 1, PROTOCOL),
    ("model/src/driver_files.rs", 3, PROTOCOL),
    ("model/src/link.rs", 1, OLD_FILE),
    ("model/src/verdict.rs", 3, OLD_FILE),
    ("ostler/src/cli.rs", 6, DROP_IN),
    ("ostler/src/cli/devices.rs", 2, PROTOCOL),
    ("ostler/src/cli/probe.rs", 3, SECTION),
    ("ostler/src/run.rs", 1, DROP_IN),
    ("ostler/src/run/probe.rs", 1, SECTION),
    ("ostler/src/vendors.rs", 1, SECTION),
    ("pool/src/plan.rs", 1, METHOD),
    ("pool/src/share.rs", 3, METHOD),
    ("rules/src/vendor.rs", 2, METHOD),
];

#[test]
fn no_vendor_is_named_outside_its_rooms() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeMap::new();
    for file in sources(&crates) {
        let path = file.strip_prefix(&crates).unwrap().to_str().unwrap();
        let text = fs_err::read_to_string(&file).unwrap();
        let lines: Vec<&str> = product_lines(&text).filter(|line| speaks(line)).collect();
        if !lines.is_empty() && !ROOMS.iter().any(|room| path.starts_with(room)) {
            found.insert(path.to_owned(), lines.len());
        }
    }
    let remain = REMAIN
        .iter()
        .map(|(path, count, _)| ((*path).to_owned(), *count));
    let remain: BTreeMap<String, usize> = remain.collect();
    assert_eq!(found, remain, "lines that name a vendor, by file");
    assert_eq!(remain.len(), REMAIN.len(), "each file once");
}

#[test]
fn words_are_whole_words_in_any_spelling() {
    for line in [
        "let mig = 1;",
        "MigStrategy::None",
        "xids: Xids,",
        "// not this; nvml_library",
        "has_nvlinks",
        "NVLink",
        "gpuInstance",
        "\"CUDA_VISIBLE_DEVICES\"",
    ] {
        assert!(speaks(line), "{line}");
    }
    for line in [
        "migrate()",
        "let stamps = maps;",
        "attempts",
        "remapped",
        "fabricate",
    ] {
        assert!(!speaks(line), "{line}");
    }
    let text = "/// mig\nlet a = 1; // mig\n#[cfg(test)]\nmod tests {\n    mig\n}\n";
    assert!(!product_lines(text).any(speaks));
}

/// Returns the source files of the product, without tests.
fn sources(crates: &Path) -> Vec<PathBuf> {
    let mut folders = vec![crates.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).expect("the sources can be read") {
            let path = entry.expect("the sources can be read").path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let is_test = matches!(name, "tests" | "tests.rs" | "broken" | "broken.rs");
            let is_other = matches!(name, "examples" | "oracle" | "target");
            if path.is_dir() && !is_test && !is_other {
                folders.push(path);
            } else if name.ends_with(".rs") && !is_test && !TEST_FILES.contains(&name) {
                files.push(path);
            }
        }
    }
    files
}

/// Returns the lines before the tests of a file, without comments.
fn product_lines(text: &str) -> impl Iterator<Item = &str> {
    let product = text.split("\n#[cfg(test)]\nmod tests {").next();
    let lines = product.unwrap_or_default().lines();
    lines.map(|line| line.split("//").next().unwrap_or_default())
}

fn speaks(line: &str) -> bool {
    // The spellings `NVLink` and `NvLink` are one word.
    let line = line.replace("NVLink", "Nvlink").replace("NvLink", "Nvlink");
    let line = line.replace("NVSwitch", "Nvswitch");
    let parts = split(&line);
    WORDS.iter().any(|word| {
        let word: Vec<&str> = word.split('_').collect();
        parts.windows(word.len()).any(|window| {
            let same = |(part, word): (&String, &&str)| {
                part == word || part.strip_suffix('s').is_some_and(|part| part == *word)
            };
            window.iter().zip(&word).all(same)
        })
    })
}

/// Splits a line into words in lower case. `MigStrategy` and `mig_strategy` both have two.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in line.chars() {
        if !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && was_lower) {
            words.push(std::mem::take(&mut word));
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase();
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}
