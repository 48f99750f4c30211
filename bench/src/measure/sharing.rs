//! Programs that share cards in time, by NVIDIA's config file.

use std::process::Command;

use crate::{
    peer::{Launch, Site},
    running::Running,
};

/// The command under which Ostler takes the flags and the config of NVIDIA's plugin.
const DROP_IN: &str = "nvidia-device-plugin";

/// A program that takes the flags of NVIDIA's plugin; none if ours does not know them.
///
/// # Errors
/// If ours cannot be asked.
pub(super) fn launch(launch: &Launch, ours: &Launch) -> anyhow::Result<Option<Launch>> {
    if launch.binary != ours.binary {
        return Ok(Some(launch.clone()));
    }
    let mut command = Command::new(&ours.binary);
    let known = command.args([DROP_IN, "--help"]).output()?.status.success();
    let launch = Launch {
        args: vec![DROP_IN.to_owned()],
        ..ours.clone()
    };
    Ok(known.then_some(launch))
}

/// Starts such a program with that many shares of each card.
///
/// # Errors
/// If it does not list exactly these.
pub(super) async fn start(
    site: &Site,
    launch: &Launch,
    replicas: usize,
) -> anyhow::Result<Running> {
    let units = site.node.list_gpus()?.len() * replicas;
    let desk = site.desk().await?;
    let file = desk.folder().join("config.yaml");
    fs_err::write(&file, config(replicas))?;
    let launch = launch.clone().file("--config-file", &file);
    Running::at(desk, &launch, units).await
}

/// What both are told.
fn config(replicas: usize) -> String {
    format!(
        "version: v1
sharing:
  timeSlicing:
    resources:
      - name: nvidia.com/gpu
        replicas: {replicas}
"
    )
}
