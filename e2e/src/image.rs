//! Images that are built here around our own programs, without a registry.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::{place, process};

/// Image of the pods: `/witness` prints the container's environment, mounts and devices.
pub const WITNESS: &str = "localhost/witness:e2e";
/// Image that holds a pod's namespaces.
pub const PAUSE: &str = "localhost/pause:e2e";
/// Image of the agent.
pub const AGENT: &str = "localhost/ostler:e2e";

/// Builds all images and imports them into containerd.
///
/// # Errors
/// If a tool is missing or containerd rejects an image.
pub async fn import_all() -> Result<()> {
    import(WITNESS, "witness", json!({ "Entrypoint": ["/witness"] })).await?;
    let pause = json!({ "Entrypoint": ["/witness", "--pause"] });
    import(PAUSE, "witness", pause).await?;
    // NVIDIA's image requests the driver from the container runtime by this variable.
    let env = ["NVIDIA_VISIBLE_DEVICES=all"];
    let agent = json!({ "Entrypoint": ["/ostler", "run"], "Env": env });
    import(AGENT, "ostler", agent).await
}

async fn import(name: &str, program: &str, settings: Value) -> Result<()> {
    let folder = Path::new(place::IMAGES).join(name.replace(['/', ':'], "-"));
    let tree = folder.join("tree");
    fill(&tree, program).await?;
    let text = |path: PathBuf| path.display().to_string();
    let layer = text(folder.join("layer.tar"));
    process::run("tar", &["-C", &text(tree.clone()), "-cf", &layer, "."]).await?;
    let sum = process::run("sha256sum", &[&layer]).await?;
    let digest = sum.split_whitespace().next().context("sha256sum is mute")?;
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": settings,
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{digest}")] },
    });
    let manifest = json!([{
        "Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"],
    }]);
    fs_err::write(folder.join("config.json"), config.to_string())?;
    fs_err::write(folder.join("manifest.json"), manifest.to_string())?;
    let archive = text(folder.join("image.tar"));
    let parts = ["config.json", "layer.tar", "manifest.json"];
    let mut words = vec!["-C".to_owned(), text(folder.clone()), "-cf".to_owned()];
    words.push(archive.clone());
    words.extend(parts.map(str::to_owned));
    process::run("tar", &words).await?;
    let ctr = place::program("ctr");
    let address = ["-a", place::CONTAINERD, "-n", "k8s.io"];
    let words = [&address[..], &["images", "import", &archive]].concat();
    process::run(&ctr, &words).await?;
    Ok(fs_err::remove_dir_all(folder)?)
}

/// Copies a program and its libraries into a folder.
async fn fill(tree: &Path, program: &str) -> Result<()> {
    for folder in ["dev", "proc", "sys", "tmp", "etc", "run", "var"] {
        fs_err::create_dir_all(tree.join(folder))?;
    }
    let source = place::program(program);
    fs_err::copy(&source, tree.join(program))?;
    for library in libraries(&process::run("ldd", &[&source]).await?) {
        let target = tree.join(library.trim_start_matches('/'));
        let above = target.parent().context("a library lies in a folder")?;
        fs_err::create_dir_all(above)?;
        fs_err::copy(library, target)?;
    }
    Ok(())
}

/// Files in the output of `ldd`.
fn libraries(output: &str) -> BTreeSet<String> {
    let path = |word: &&str| word.starts_with('/');
    let lines = output.lines();
    lines
        .filter_map(|line| line.split_whitespace().find(path))
        .map(str::to_owned)
        .collect()
}

/// Architecture of this machine, as image configurations name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_libraries_and_the_loader() {
        let output = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
        let expected = ["/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(libraries(output), expected.map(str::to_owned).into());
    }
}
