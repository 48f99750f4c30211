//! Devices for the tests of all crates. A test sets the facts that it is about.

use crate::{
    AttributeName, Backend, CallFailure, Device, DeviceId, DeviceNode, Driver, Extras, Index, Kind,
    NodeRole, Phase, Version,
};

/// Vendor of the samples.
pub const VENDOR: &str = "nvidia";

/// Card `n` of a node: the A100 `GPU-n`.
pub fn sample_card(n: u32) -> Device {
    let own = (format!("/dev/nvidia{n}"), NodeRole::Own);
    let control = ["/dev/nvidiactl", "/dev/nvidia-uvm"];
    let control = control.map(|path| (path.to_owned(), NodeRole::Control));
    let nodes = [own].into_iter().chain(control);
    Device {
        index: Some(Index::of_card(n)),
        pci: format!("0000:{n:02x}:00.0").parse().ok(),
        numa: Some(n / 4),
        nodes: nodes
            .map(|(path, role)| DeviceNode { path, role })
            .collect(),
        ..Device::card_of(VENDOR, format!("GPU-{n}"), "NVIDIA A100-SXM4-40GB")
            .with_attribute(
                AttributeName::from_static("cudaComputeCapability"),
                Version::of_two(8, 0),
            )
            .with_memory(42_505_273_344)
    }
}

/// MIG device `part` of card `n`: `MIG-n-part`, with the profile `1g.5gb`.
pub fn sample_partition(n: u32, part: u32) -> Device {
    let card = sample_card(n);
    Device {
        id: DeviceId::new(format!("MIG-{n}-{part}")),
        index: Some(Index::of_card(n).with_part(part)),
        kind: Kind::Partition {
            parent: card.id.clone(),
            profile: Some("1g.5gb".to_owned()),
        },
        ..card
            .with_attribute(AttributeName::from_static("gpuInstance"), part + 7)
            .with_attribute(AttributeName::from_static("computeInstance"), 0_u32)
            .with_memory(4864 << 20)
    }
}

/// Failure of a call because its card was lost.
pub fn lost_call() -> CallFailure {
    CallFailure {
        call: "nvmlDeviceGetUUID".to_owned(),
        code: "GPU_IS_LOST".to_owned(),
        fatal: true,
    }
}

/// Running backend without findings.
pub fn running_backend() -> Backend {
    Backend {
        name: VENDOR.to_owned(),
        phase: Phase::Running,
        message: String::new(),
        driver: None,
        stuck: Vec::new(),
        unreadable: Vec::new(),
        extras: Extras::default(),
    }
}

/// Driver, loaded for the nth time.
pub fn loaded_driver(nth: u32) -> Driver {
    Driver {
        version: "580".to_owned(),
        cuda: None,
        library: None,
        instance: Some(nth.to_string()),
    }
}
