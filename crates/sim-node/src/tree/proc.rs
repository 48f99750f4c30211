//! `/proc`: files of the kernel driver, and the capability files of MIG.

use super::{HostTree, dev, driver::LibraryMachine};
use crate::{
    identity::made_up_uuid,
    mig::{COMPUTE_INSTANCES, GPU_INSTANCES},
    state::{Gpu, NodeState},
};

/// Adds the files below `/proc`.
pub(super) fn add_proc(tree: &mut HostTree, state: &NodeState) {
    boot(tree, state);
    if !state.machine.platform.has_bus() {
        return;
    }
    let version = &state.driver.version;
    let machine = LibraryMachine::machine_of_state(state).kernel_name();
    let version = format!(
        "NVRM version: NVIDIA UNIX {machine} Kernel Module  {version}  \
         Tue Sep 23 10:11:16 UTC 2025\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
    );
    tree.add_file("proc/driver/nvidia/version", version);
    let majors = "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n226 drm\n\
                  234 nvidia-nvswitch\n235 nvidia-caps\n511 nvidia-uvm\n\nBlock devices:\n259 blkext\n";
    tree.add_file("proc/devices", majors);
    for gpu in &state.gpus {
        let name = state.models.get(&gpu.model).map_or("", |m| m.name.as_str());
        let path = format!("proc/driver/nvidia/gpus/{}/information", gpu.pci);
        tree.add_file(path, information(gpu, name));
    }
    rights(tree, state);
}

fn boot(tree: &mut HostTree, state: &NodeState) {
    let boot = match state.reboots {
        0 => made_up_uuid("boot", &[&state.profile]),
        count => made_up_uuid("boot", &[&state.profile, &count.to_string()]),
    };
    let boot = boot.trim_start_matches("boot-");
    tree.add_file("proc/sys/kernel/random/boot_id", format!("{boot}\n"));
}

fn information(gpu: &Gpu, name: &str) -> String {
    let Gpu {
        uuid, pci, minor, ..
    } = gpu;
    let irq = 130_u32.saturating_add(*minor);
    format!(
        "Model: \t\t {name}\nIRQ:   \t\t {irq}\nGPU UUID: \t {uuid}\n\
         Video BIOS: \t 92.00.45.00.03\nBus Type: \t PCIe\nDMA Size: \t 47 bits\n\
         DMA Mask: \t 0x7fffffffffff\nBus Location: \t {pci}\nDevice Minor: \t {minor}\n\
         GPU Excluded:\t No\n"
    )
}

/// Adds the list of MIG capabilities. The driver numbers all capabilities that could exist, whether
/// or not the instance does.
fn rights(tree: &mut HostTree, state: &NodeState) {
    // One file for all cards, by minor number: `/proc/driver/nvidia-caps/mig-minors`.
    let mut minors = "config 1\nmonitor 2\n".to_owned();
    let mut numbers: Vec<u32> = state.gpus.iter().map(|gpu| gpu.minor).collect();
    numbers.sort_unstable();
    for gpu in numbers {
        for gi in 0..GPU_INSTANCES {
            minors += &format!("gpu{gpu}/gi{gi}/access {}\n", dev::right(gpu, gi, None));
            for ci in 0..COMPUTE_INSTANCES {
                let right = dev::right(gpu, gi, Some(ci));
                minors += &format!("gpu{gpu}/gi{gi}/ci{ci}/access {right}\n");
            }
        }
    }
    tree.add_file("proc/driver/nvidia-caps/mig-minors", minors);
    let mut capability = |path: &str, right: u32| {
        let text = format!("DeviceFileMinor: {right}\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
        tree.add_file(format!("proc/driver/nvidia/capabilities/{path}"), text);
    };
    capability("mig/config", 1);
    capability("mig/monitor", 2);
    // Unlike `mig-minors`, these files exist only for instances that exist.
    for gpu in &state.gpus {
        for gi in gpu.instances.iter().map(|instance| instance.id) {
            let path = format!("gpu{}/mig/gi{gi}/access", gpu.minor);
            capability(&path, dev::right(gpu.minor, gi, None));
        }
        for mig in &gpu.migs {
            let (minor, gi, ci) = (gpu.minor, mig.gi, mig.ci);
            let at = format!("gpu{minor}/mig/gi{gi}");
            capability(&format!("{at}/access"), dev::right(minor, gi, None));
            capability(
                &format!("{at}/ci{ci}/access"),
                dev::right(minor, gi, Some(ci)),
            );
        }
    }
}
