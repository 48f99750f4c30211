//! Upgrades facts of devices in the form of older agents: top-level fields instead of attributes
//! and capacities, and the fields of the kind beside its name.

use model::names;
use serde_json::{Map, Value, json};

/// Value of older agents for a fact that could not be read.
const UNKNOWN: &str = "unknown";

/// Returns the facts in the present form. Facts that have this form already stay as they are.
pub(super) fn upgrade_facts(mut facts: Value) -> Value {
    let Some(device) = facts.as_object_mut() else {
        return facts;
    };
    let mut attributes = Map::new();
    for (old, name) in [
        ("model", names::PRODUCT.as_str()),
        ("compute_capability", "cudaComputeCapability"),
        ("display", names::DISPLAY.as_str()),
        ("coherent", names::COHERENT.as_str()),
        ("gpu_instance", "gpuInstance"),
        ("compute_instance", "computeInstance"),
    ] {
        let value = device.remove(old).filter(|value| value != UNKNOWN);
        let value = value.map(|value| match old {
            "compute_capability" => json!({ "version": value }),
            _ => value,
        });
        attributes.extend(value.map(|value| (name.to_owned(), value)));
    }
    if device
        .get("profile")
        .is_some_and(|profile| profile == UNKNOWN)
    {
        device.remove("profile");
    }
    if let Some(kind) = device
        .get("kind")
        .and_then(Value::as_str)
        .map(str::to_owned)
    {
        let fields = ["partitioned", "parent", "profile"];
        let fields = fields.map(|name| device.remove(name).map(|value| (name.to_owned(), value)));
        let fields: Map<String, Value> = fields.into_iter().flatten().collect();
        device.insert("kind".to_owned(), json!({ kind: fields }));
    }
    if let Some(bytes) = device.remove("memory_bytes") {
        device.insert(
            "capacity".to_owned(),
            json!({ names::MEMORY.as_str(): bytes }),
        );
    }
    if !attributes.is_empty() {
        device.insert("attributes".to_owned(), attributes.into());
    }
    facts
}

#[cfg(test)]
mod tests {
    use model::Device;

    use super::*;

    fn read_facts(facts: Value) -> Device {
        serde_json::from_value(upgrade_facts(facts)).unwrap()
    }

    #[test]
    fn facts_of_an_old_agent_are_read() {
        let device = read_facts(json!({
            "id": "MIG-1", "vendor": "nvidia", "kind": "partition", "parent": "GPU-1",
            "profile": "1g.5gb", "gpu_instance": 7, "compute_instance": 0, "index": "all",
            "model": "NVIDIA A100", "memory_bytes": 5, "compute_capability": "8.0", "display": true,
        }));
        assert_eq!(
            (device.product_name(), device.memory_bytes()),
            (Some("NVIDIA A100"), Some(5))
        );
        assert_eq!(device.partition_profile(), Some("1g.5gb"));
        let capability = nvidia_rules::names::compute_capability(&device);
        assert_eq!(capability, Some(&"8.0".parse().unwrap()));
        assert_eq!(device.bool_attribute(&names::DISPLAY), Some(true));
        assert_eq!(
            device.attributes[&nvidia_rules::names::GPU_INSTANCE].as_int(),
            Some(7)
        );
        assert_eq!(device.index, None);
    }

    #[test]
    fn a_word_for_nothing_becomes_nothing() {
        let device = read_facts(json!({
            "id": "MIG-1", "vendor": "nvidia", "kind": "partition", "parent": "GPU-1",
            "profile": "unknown", "model": "unknown",
        }));
        assert_eq!(
            (device.product_name(), device.partition_profile()),
            (None, None)
        );
    }

    #[test]
    fn present_facts_stay_as_they_are() {
        let device = Device::card_of("nvidia", "GPU-1", "T4").with_memory(7);
        assert_eq!(read_facts(serde_json::to_value(&device).unwrap()), device);
    }
}
