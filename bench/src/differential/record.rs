//! Running a program in a case, and writing down what it does.

use std::{
    collections::BTreeMap, fs::Permissions, os::unix::fs::PermissionsExt as _, path::Path,
    time::Duration,
};

use anyhow::Context as _;

use super::{
    ask,
    case::{Case, Ours},
    recording::{Device, Outcome, Recording},
    watch::{self, Settled},
};
use crate::peer::{Desk, Launch, Program, Programs, Site};

/// How long a program may take to end.
const LIMIT: Duration = Duration::from_secs(20);

/// What stands in for the MPS control daemon: NVIDIA's plugin asks it for one figure at its start
/// and wants a number.
const MPS_CONTROL: &str = "#!/bin/sh\necho 100.0\n";

/// The resources whose MPS daemon is up; Ostler looks for the file that a daemon makes.
const SHARED: [&str; 2] = ["nvidia.com/gpu", "nvidia.com/gpu.shared"];

/// Where a program finds the driver's files, in the folder of its kubelet.
const DRIVER_ROOT: &str = "driver";

/// What NVIDIA's plugin does in a case.
pub(crate) async fn upstream(
    site: &Site,
    case: &Case,
    programs: &Programs,
) -> anyhow::Result<Recording> {
    let launch = Launch::of(programs, Program::NvidiaPlugin)?;
    let name = format!("nvidia-device-plugin {}", version(programs));
    record(site, case, name, with(launch, case)).await
}

/// What Ostler does in a case; nothing where it cannot be started for it yet.
pub(crate) async fn ours(
    site: &Site,
    case: &Case,
    programs: &Programs,
) -> anyhow::Result<Option<Recording>> {
    let mut launch = Launch::of(programs, Program::Ostler)?;
    match case.ours {
        Ours::Pending => return Ok(None),
        Ours::Native => {}
        Ours::Same => {
            launch.args = vec![Program::NvidiaPlugin.name().to_owned()];
            launch = with(launch, case);
        }
    }
    record(site, case, "ostler".to_owned(), launch)
        .await
        .map(Some)
}

/// The version of NVIDIA's programs, which the name of their folder ends with.
fn version(programs: &Programs) -> String {
    let folder = programs.nvidia.as_deref().and_then(Path::file_name);
    let name = folder.unwrap_or_default().to_string_lossy();
    let version = name.rsplit_once('-').map(|(_, version)| version);
    version.unwrap_or("of an unknown version").to_owned()
}

/// The program with the flags and the environment of the case.
fn with(mut launch: Launch, case: &Case) -> Launch {
    launch.args.extend(case.flags.iter().cloned());
    launch.env.extend(case.env.clone());
    launch
}

async fn record(
    site: &Site,
    case: &Case,
    program: String,
    mut launch: Launch,
) -> anyhow::Result<Recording> {
    let desk = site.desk().await?;
    furnish(&desk, case, &mut launch)?;
    let mut process = desk.start(&launch).await?;
    let outcome = match watch::settle(&desk, &mut process).await? {
        Settled::Idles => Outcome::Idles,
        Settled::Dies(words) => Outcome::Dies(words),
        Settled::Serves => serves(&desk)
            .await
            .with_context(|| format!("{program} does not answer; it said:\n{}", process.log()))?,
    };
    if !matches!(outcome, Outcome::Dies(_)) {
        process.stop(LIMIT).await?;
    }
    Ok(Recording {
        program,
        outcome,
        cdi: specs(&desk)?,
    })
}

/// The CDI specs in the folder that programs write them to.
fn specs(desk: &Desk) -> anyhow::Result<BTreeMap<String, serde_json::Value>> {
    let mut specs = BTreeMap::new();
    for entry in fs_err::read_dir(desk.run().join("cdi"))
        .into_iter()
        .flatten()
    {
        let entry = entry?;
        let spec = serde_json::from_slice(&fs_err::read(entry.path())?)
            .with_context(|| format!("{} is no JSON", entry.path().display()))?;
        specs.insert(entry.file_name().to_string_lossy().into_owned(), spec);
    }
    Ok(specs)
}

/// Writes the files that the case asks for.
fn furnish(desk: &Desk, case: &Case, launch: &mut Launch) -> anyhow::Result<()> {
    let is_cdi = |flag: &String| flag.contains("cdi-cri") || flag.contains("cdi-annotations");
    if case.flags.iter().any(is_cdi) {
        // Specs are made from the driver's files, which are where a container would have them.
        let root = desk.folder().join(DRIVER_ROOT);
        let root = root.display().to_string();
        *launch = launch.clone().env("CONTAINER_DRIVER_ROOT", &root);
    }
    let Some(config) = &case.config else {
        return Ok(());
    };
    let file = desk.folder().join("config.yaml");
    fs_err::write(&file, config)?;
    *launch = launch
        .clone()
        .env("CONFIG_FILE", &file.display().to_string());
    if config.contains("mps:") {
        let folder = desk.folder().join("bin");
        let control = folder.join("nvidia-cuda-mps-control");
        fs_err::create_dir_all(&folder)?;
        fs_err::write(&control, MPS_CONTROL)?;
        fs_err::set_permissions(&control, Permissions::from_mode(0o755))?;
        let path = std::env::var("PATH").unwrap_or_default();
        let daemons = desk.folder().join("mps");
        for resource in SHARED {
            fs_err::create_dir_all(daemons.join(resource))?;
            fs_err::write(daemons.join(resource).join(".started"), "")?;
        }
        *launch = launch
            .clone()
            .env("PATH", &format!("{}:{path}", folder.display()))
            .env("OSTLER_MPS_PATH", &daemons.display().to_string());
    }
    Ok(())
}

/// Asks every resource that was registered.
async fn serves(desk: &Desk) -> anyhow::Result<Outcome> {
    let mut resources = BTreeMap::new();
    for registration in desk.kubelet.registrations() {
        let lists = desk.kubelet.device_lists(&registration.resource);
        let list = lists.last().context("the list is gone")?;
        let devices = list.devices.iter().map(|d| (d.id.clone(), Device::from(d)));
        let socket = desk.socket(&registration.endpoint);
        let mut resource = ask::ask(&socket, devices.collect()).await?;
        resource.socket = registration.endpoint;
        resources.insert(registration.resource, resource);
    }
    Ok(Outcome::Serves(resources))
}
