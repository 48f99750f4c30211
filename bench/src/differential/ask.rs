//! The questions that every plugin is asked, over its own socket, as the kubelet asks them.

use std::{path::Path, time::Duration};

use kubelet_api::deviceplugin::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest, Empty,
    PreferredAllocationRequest, device_plugin_client::DevicePluginClient,
};
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};

use super::recording::{Allocate, Answer, Device, Grant, Prefer, Resource};

/// How many devices are asked for one by one.
const SINGLES: usize = 4;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(60);

/// An id that no plugin has.
const UNKNOWN: &str = "GPU-00000000-0000-0000-0000-000000000000";

/// A connection to a plugin.
#[derive(Debug)]
struct Client {
    plugin: DevicePluginClient<Channel>,
}

/// Asks the plugin behind a socket everything, about these devices.
pub(crate) async fn ask(socket: &Path, devices: Vec<(String, Device)>) -> anyhow::Result<Resource> {
    let address = format!("unix:{}", socket.display());
    let channel = Endpoint::from_shared(address)?
        .timeout(LIMIT)
        .connect()
        .await?;
    let mut client = Client {
        plugin: DevicePluginClient::new(channel),
    };
    let options = client.plugin.get_device_plugin_options(Empty {}).await?;
    let options = options.into_inner();
    let mut resource = Resource {
        pre_start: options.pre_start_required,
        preferred: options.get_preferred_allocation_available,
        devices: devices.into_iter().collect(),
        ..Resource::default()
    };
    let ids: Vec<_> = resource.devices.keys().map(String::as_str).collect();
    for (name, ids) in allocations(&ids) {
        resource.allocate.push(client.allocate(name, ids).await);
    }
    for (name, available, required, size) in preferences(&ids) {
        let mut prefer = Prefer {
            name: name.to_owned(),
            available,
            required,
            size,
            answer: Answer::Given(Vec::new()),
        };
        prefer.answer = client.prefer(&prefer).await;
        resource.prefer.push(prefer);
    }
    Ok(resource)
}

/// Which devices are asked for at a time.
fn allocations(ids: &[&str]) -> Vec<(String, Vec<String>)> {
    let mut asked: Vec<(String, Vec<&str>)> = Vec::new();
    for (number, id) in ids.iter().take(SINGLES).enumerate() {
        asked.push((format!("one ({})", number + 1), vec![id]));
    }
    if let [first, second, ..] = ids {
        asked.push(("two".to_owned(), vec![first, second]));
        asked.push(("two, turned round".to_owned(), vec![second, first]));
    }
    if let [first, _, .., last] = ids {
        asked.push(("first and last".to_owned(), vec![first, last]));
    }
    asked.push(("all".to_owned(), ids.to_vec()));
    asked.push(("unknown".to_owned(), vec![UNKNOWN]));
    if let Some(first) = ids.first() {
        asked.push(("known and unknown".to_owned(), vec![first, UNKNOWN]));
    }
    asked
        .into_iter()
        .map(|(name, ids)| (name, own(&ids)))
        .collect()
}

/// What is offered, what must be chosen, and how many. The choice itself is each plugin's own.
type Question = (&'static str, Vec<String>, Vec<String>, usize);

fn preferences(ids: &[&str]) -> Vec<Question> {
    let mut asked = vec![
        ("all of all", own(ids), Vec::new(), ids.len()),
        (
            "more than there are",
            own(&ids[..ids.len().min(1)]),
            Vec::new(),
            2,
        ),
    ];
    if let [first, second, third, fourth, ..] = *ids {
        let four = own(&[first, second, third, fourth]);
        asked.push(("two of four", four.clone(), Vec::new(), 2));
        asked.push(("two of four, one required", four, own(&[third]), 2));
    }
    if let [first, second, ..] = *ids {
        let two = own(&[first, second]);
        asked.push(("two of two, both required", two.clone(), two, 2));
    }
    asked
}

fn own(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

// === impl Client ===

impl Client {
    async fn allocate(&mut self, name: String, ids: Vec<String>) -> Allocate {
        let request = AllocateRequest {
            container_requests: vec![ContainerAllocateRequest {
                device_ids: ids.clone(),
            }],
        };
        let result = self.plugin.allocate(Request::new(request)).await;
        let answer = Answer::new(result, |answer| {
            let first = answer.container_responses.into_iter().next();
            first.map(Grant::from).unwrap_or_default()
        });
        Allocate { name, ids, answer }
    }

    async fn prefer(&mut self, asked: &Prefer) -> Answer<Vec<String>> {
        let request = PreferredAllocationRequest {
            container_requests: vec![ContainerPreferredAllocationRequest {
                available_device_ids: asked.available.clone(),
                must_include_device_ids: asked.required.clone(),
                allocation_size: i32::try_from(asked.size).unwrap_or(i32::MAX),
            }],
        };
        let result = self.plugin.get_preferred_allocation(request).await;
        Answer::new(result, |answer| {
            let first = answer.container_responses.into_iter().next();
            let mut ids = first.map(|first| first.device_ids).unwrap_or_default();
            // Only which ones counts, and upstream's order is random.
            ids.sort();
            ids
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_device_is_asked_for_too() {
        let names: Vec<_> = allocations(&["a"])
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["one (1)", "all", "unknown", "known and unknown"]);
        assert_eq!(preferences(&["a"]).len(), 2);
    }

    #[test]
    fn asks_for_what_is_required() {
        let asked = preferences(&["a", "b", "c", "d", "e"]);
        for (name, available, required, size) in asked {
            assert!(required.iter().all(|id| available.contains(id)), "{name}");
            assert!(required.len() <= size, "{name}");
        }
    }
}
