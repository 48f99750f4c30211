//! Load test: the config file is rewritten again and again, sometimes with invalid text, while
//! devices are allocated.

use std::{cell::Cell, collections::HashMap, time::Duration};

use kubelet_api::deviceplugin::{
    AllocateRequest, ContainerAllocateRequest, ContainerAllocateResponse,
    device_plugin_client::DevicePluginClient,
};
use sim::kubelet::Era;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tonic::transport::{Channel, Endpoint};

use crate::rig::{DGX, Rig, Running, took};

/// Duration of the test in seconds, unless `OSTLER_LONG` is set.
const USUAL: u32 = 3;
const LONG: u32 = 30;
/// Calls of Allocate per second, for each of two resources.
const RATE: u32 = 330;
/// Time between two configs. It is longer than the 200 ms that the agent waits for a writer.
const PAUSE: Duration = Duration::from_millis(250);

const SLICE: &str = "nvidia.com/slice";
const WHOLE: &str = "nvidia.com/whole";
/// Variable that only the second config sets for whole cards.
const CAPABILITIES: &str = "NVIDIA_DRIVER_CAPABILITIES";

/// Two configs that differ in everything except the ids of the two resources, and an invalid one.
const CONFIGS: [&str; 3] = [
    "pools:
  - {name: a, select: {index: 0}, resource: nvidia.com/slice, sharing: {replicas: 10}}
  - {name: b, select: {index: [1, 2, 3, 4]}, resource: nvidia.com/whole}
  - {name: rest, resource: nvidia.com/rest}
",
    "exclude: [{index: 7}]
pools:
  - name: a
    select: {index: 0}
    resource: nvidia.com/slice
    sharing: {replicas: 10, onePerRequest: true}
    placement: packed
  - name: b
    select: {index: [1, 2, 3, 4]}
    resource: nvidia.com/whole
    placement: first-fit
    handover: {nvidia: {capabilities: 'compute,utility'}}
  - {name: rest, resource: nvidia.com/others, sharing: {replicas: 3}}
",
    "pools:
  - {name: a, resource: nvidia.com/slice, sharing: {replicas: 0}}
  - {name: a, resourc: nvidia.com/whole}
",
];

/// Allocates at [`RATE`], one unit after the other. Returns the number of answers by the second
/// config.
async fn visit(running: &Running, resource: &'static str, count: u32) -> u32 {
    let units: Vec<String> = running.ids(resource).into_iter().collect();
    let mut client = connect(running, resource).await;
    let mut turns = interval(Duration::from_secs(1) / RATE);
    turns.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut second = 0;
    for unit in units.iter().cycle().take(count.try_into().unwrap()) {
        turns.tick().await;
        let container = ContainerAllocateRequest {
            device_ids: vec![unit.clone()],
        };
        let request = AllocateRequest {
            container_requests: vec![container],
        };
        let answer = client.allocate(request).await;
        let answer = answer.unwrap_or_else(|status| panic!("{unit} of {resource}: {status}"));
        let [answer] = &answer.into_inner().container_responses[..] else {
            panic!("{unit} of {resource}: not one answer");
        };
        second += u32::from(check(resource, unit, answer));
    }
    second
}

/// Connects to a resource's socket, beside the kubelet's connection.
async fn connect(running: &Running, resource: &str) -> DevicePluginClient<Channel> {
    let registrations = running.kubelet.registrations();
    let its = registrations.iter().find(|r| r.resource == resource);
    let socket = running.kubelet.plugin_dir().join(&its.unwrap().endpoint);
    let address = format!("unix:{}", socket.display());
    let channel = Endpoint::from_shared(address).unwrap().connect().await;
    DevicePluginClient::new(channel.unwrap())
}

/// Checks that an answer is entirely by one of the valid configs. Returns true if by the second.
fn check(resource: &str, unit: &str, answer: &ContainerAllocateResponse) -> bool {
    let card = unit.split("::").next().unwrap();
    let mut wanted = HashMap::from([("NVIDIA_VISIBLE_DEVICES".to_owned(), card.to_owned())]);
    let second = answer.envs.contains_key(CAPABILITIES);
    if second && resource == WHOLE {
        wanted.insert(CAPABILITIES.to_owned(), "compute,utility".to_owned());
    }
    assert_eq!(answer.envs, wanted, "{unit} of {resource}");
    let own = |path: &str| path.strip_prefix("/dev/nvidia")?.parse::<u32>().ok();
    let nodes = answer.devices.iter();
    let cards = nodes.filter(|node| own(&node.container_path).is_some());
    assert_eq!(cards.count(), 1, "{:?}", answer.devices);
    second
}

/// Writes the configs in turn until it is cancelled, and counts them.
async fn rewrite(running: &Running, written: &Cell<u32>) {
    for config in CONFIGS.iter().cycle() {
        running.rewrite(config);
        written.update(|count| count + 1);
        sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn no_call_fails_while_the_config_is_rewritten_all_the_time() {
    let seconds = match std::env::var_os("OSTLER_LONG") {
        Some(_) => LONG,
        None => USUAL,
    };
    let rig = Rig::new(DGX);
    let kubelet = rig.kubelet(Era::V1_37).await;
    let agent = rig.agent(CONFIGS[0]);
    let running = Running {
        agent,
        kubelet,
        rig,
    };
    let all = [(SLICE, 10), (WHOLE, 4), ("nvidia.com/rest", 3)];
    running.offers(&all).await;
    let (begun, written, count) = (Instant::now(), Cell::new(0), RATE * seconds);
    let calls =
        async { tokio::join!(visit(&running, SLICE, count), visit(&running, WHOLE, count)) };
    let (_, second) = tokio::select! {
        () = rewrite(&running, &written) => panic!("it writes for ever"),
        seconds = calls => seconds,
    };
    let written = written.get();
    took(&format!("{} calls and {written} configs", 2 * count), begun);
    assert!(written >= 3, "each config was there");

    let registrations = running.kubelet.registrations();
    for resource in [SLICE, WHOLE] {
        let its = registrations.iter().filter(|r| r.resource == resource);
        assert_eq!(its.count(), 1, "{resource}");
        assert_eq!(
            running.kubelet.device_lists(resource).len(),
            1,
            "{resource}"
        );
    }
    assert!(second > 0, "the second config was at work");
    running.agent.logged("the new config is not used").await;

    running.rewrite(CONFIGS[0]);
    running.offers(&all).await;
    assert_eq!(running.breaches(), [""; 0]);
}
