//! Which simulated nodes NVIDIA's programs can run on.

use sim::{NodeProfile, profile};

/// The profiles that come with the simulator and have NVML, sorted.
pub(crate) fn profiles() -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for name in profile::names() {
        let state = NodeProfile::find_profile(name)?.to_state()?;
        if state.machine.platform.has_nvml() {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}
