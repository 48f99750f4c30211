//! Which simulated nodes NVIDIA's programs can run on.

use sim::{Profile, profile};

/// The profiles that come with the simulator and have NVML, sorted.
pub(crate) fn profiles() -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for name in profile::names() {
        let state = Profile::named(name)?.state()?;
        if state.machine.platform.has_nvml() {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}
