//! Tests of the kubelet's calls, each with good and bad requests.

use std::sync::Arc;

use kubelet_api::deviceplugin::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest, Empty,
    PreStartContainerRequest, PreferredAllocationRequest,
};
use pool::{Offer, Offers, UnitId};
use rstest::rstest;
use tonic::Code;

use crate::{
    node::{GPU, cards},
    setting::setting,
};

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn allocation(containers: &[&[&str]]) -> AllocateRequest {
    AllocateRequest {
        container_requests: containers
            .iter()
            .map(|container| ContainerAllocateRequest {
                device_ids: ids(container),
            })
            .collect(),
    }
}

fn preference(available: &[&str], required: &[&str], size: i32) -> PreferredAllocationRequest {
    PreferredAllocationRequest {
        container_requests: vec![ContainerPreferredAllocationRequest {
            available_device_ids: ids(available),
            must_include_device_ids: ids(required),
            allocation_size: size,
        }],
    }
}

/// Offers of pools with `preStart: check`.
fn guarded(offers: Offers) -> Offers {
    let guard = |offer: &Arc<Offer>| {
        let mut pool = config::Pool::clone(&offer.pool);
        pool.pre_start.mode = config::PreStartMode::Check;
        Arc::new(Offer {
            pool: Arc::new(pool),
            ..Offer::clone(offer)
        })
    };
    offers.iter().map(guard).collect()
}

#[tokio::test]
async fn options_offer_preference_and_no_pre_start() {
    let mut at = setting(cards(1, &[])).await;
    let options = at.plugin.get_device_plugin_options(Empty {}).await.unwrap();
    let options = options.into_inner();
    assert!(options.get_preferred_allocation_available && !options.pre_start_required);
    let request = PreStartContainerRequest {
        device_ids: ids(&["GPU-0000"]),
    };
    at.plugin.pre_start_container(request).await.unwrap();
}

#[tokio::test]
async fn a_pool_that_wants_it_is_asked_before_a_start() {
    let mut at = setting(guarded(cards(2, &[]))).await;
    let options = at.plugin.get_device_plugin_options(Empty {}).await.unwrap();
    assert!(options.into_inner().pre_start_required);
    let start = |names: &[&str]| PreStartContainerRequest {
        device_ids: ids(names),
    };
    let free = at.plugin.pre_start_container(start(&["GPU-0000"])).await;
    free.unwrap();
    let both = start(&["GPU-0000", "GPU-0001"]);
    let taken = at.plugin.pre_start_container(both).await.unwrap_err();
    assert_eq!(taken.code(), Code::FailedPrecondition);
    assert!(taken.message().contains("process 7"), "{taken}");
    let unknown = at.plugin.pre_start_container(start(&["GPU-9"])).await;
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
}

/// The kubelet asks for the options at a registration only, so new options need a new registration.
#[tokio::test]
async fn options_that_change_are_registered_anew() {
    let mut at = setting(cards(1, &[])).await;
    at.node.offers.send_replace(guarded(cards(1, &[])));
    let (mut plugin, _stream) = at.kubelet.admit().await;
    let options = plugin.get_device_plugin_options(Empty {}).await.unwrap();
    assert!(options.into_inner().pre_start_required);
}

#[tokio::test]
async fn allocation_answers_each_container_in_order() {
    let mut at = setting(cards(4, &[])).await;
    let request = allocation(&[&["GPU-0002", "GPU-0001"], &["GPU-0003"]]);
    let answer = at.plugin.allocate(request).await.unwrap().into_inner();
    let given: Vec<_> = answer
        .container_responses
        .iter()
        .map(|container| {
            let paths: Vec<&str> = container
                .devices
                .iter()
                .map(|d| d.host_path.as_str())
                .collect();
            (container.envs["NVIDIA_VISIBLE_DEVICES"].as_str(), paths)
        })
        .collect();
    assert_eq!(
        given,
        [
            ("GPU-0002,GPU-0001", vec!["/dev/nvidia1", "/dev/nvidia2"]),
            ("GPU-0003", vec!["/dev/nvidia3"]),
        ]
    );
    assert!(
        answer.container_responses[0]
            .devices
            .iter()
            .all(|d| d.permissions == "rw")
    );
}

/// Copies of the offers with changed pools.
fn pooled(offers: &Offers, change: impl Fn(&mut config::Pool)) -> Offers {
    let changed = offers.iter().map(|offer| {
        let mut offer = Offer::clone(offer);
        change(Arc::make_mut(&mut offer.pool));
        offer.lists = rules::resolve_lists(&offer.pool.handover, rules::CdiSupport::default());
        Arc::new(offer)
    });
    changed.collect()
}

#[tokio::test]
async fn an_answer_carries_all_that_is_granted() {
    let offers = pooled(&cards(2, &[]), |pool| {
        pool.sharing.method = config::Method::Mps;
        pool.handover.nvidia.mps_root = Some("/srv/mps".into());
        pool.handover.lists = vec![
            config::ListStrategy::VolumeMounts,
            config::ListStrategy::CdiAnnotations,
            config::ListStrategy::CdiCri,
        ];
        pool.handover.nvidia.dev_root = "/run/nvidia/driver".into();
    });
    let mut at = setting(offers).await;
    let request = allocation(&[&["GPU-0001"], &["GPU-0000"]]);
    let answer = at.plugin.allocate(request).await.unwrap().into_inner();
    assert_eq!(answer.container_responses.len(), 2);
    let container = &answer.container_responses[0];
    let mounts = container.mounts.iter();
    let mounts: Vec<_> = mounts
        .map(|m| (m.host_path.as_str(), m.container_path.as_str(), m.read_only))
        .collect();
    let named = "/var/run/nvidia-container-devices/GPU-0001";
    let expected = [
        (
            "/srv/mps/nvidia.com/gpu/pipe",
            "/mps/nvidia.com/gpu/pipe",
            false,
        ),
        ("/srv/mps/shm", "/dev/shm", false),
        ("/dev/null", named, false),
    ];
    assert_eq!(mounts, expected);
    assert_eq!(
        container.envs["CUDA_MPS_PIPE_DIRECTORY"],
        "/mps/nvidia.com/gpu/pipe"
    );
    let node = &container.devices[0];
    assert_eq!(node.host_path, "/run/nvidia/driver/dev/nvidia1");
    assert_eq!(node.container_path, "/dev/nvidia1");
    let name = "k8s.device-plugin.nvidia.com/gpu=GPU-0001";
    assert_eq!(container.cdi_devices[0].name, name);
    let (key, value) = container.annotations.iter().next().unwrap();
    assert!(key.starts_with("cdi.k8s.io/nvidia-device-plugin_"), "{key}");
    assert_eq!(value, name);
}

/// Offer of two cards with two units each.
fn shares(change: impl Fn(&mut config::Sharing)) -> Offers {
    let offers = pooled(&cards(2, &[]), |pool| change(&mut pool.sharing));
    let mut offer = Offer::clone(&offers[0]);
    let share = |unit: &pool::Unit, n| pool::Unit {
        id: UnitId::new(format!("{}::{n}", unit.id)),
        ..unit.clone()
    };
    let units = offer.units.iter();
    offer.units = units
        .flat_map(|unit| [0, 1].map(|n| share(unit, n)))
        .collect();
    Arc::new([Arc::new(offer)])
}

#[tokio::test]
async fn more_than_one_share_is_refused_where_the_pool_says_so() {
    let mut at = setting(shares(|sharing| sharing.one_per_request = true)).await;
    let two = allocation(&[&["GPU-0000::0", "GPU-0001::0"]]);
    let status = at.plugin.allocate(two).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("maximum is 1"), "{status}");
    // The limit is per container: two containers get one share each.
    let each = allocation(&[&["GPU-0000::0"], &["GPU-0000::1"]]);
    at.plugin.allocate(each).await.unwrap();
}

#[tokio::test]
async fn shares_of_one_card_are_refused_where_the_pool_says_so() {
    let require = |sharing: &mut config::Sharing| sharing.distinct = config::Distinct::Require;
    let mut at = setting(shares(require)).await;
    let same = allocation(&[&["GPU-0000::0", "GPU-0000::1"]]);
    let status = at.plugin.allocate(same).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("distinct: require"), "{status}");
    let other = allocation(&[&["GPU-0000::0", "GPU-0001::1"]]);
    at.plugin.allocate(other).await.unwrap();

    let same = ["GPU-0000::0", "GPU-0000::1"];
    for required in [&[][..], &same] {
        let request = preference(&same, required, 2);
        let refused = at.plugin.get_preferred_allocation(request).await;
        assert_eq!(refused.unwrap_err().code(), Code::FailedPrecondition);
    }
}

#[rstest]
#[case::no_container(&[], Code::InvalidArgument, "no container")]
#[case::no_id(&[&[][..]], Code::InvalidArgument, "no device")]
#[case::unknown(&[&["GPU-9"][..]], Code::NotFound, "GPU-9")]
#[case::twice(&[&["GPU-0000", "GPU-0000"][..]], Code::InvalidArgument, "twice")]
#[case::unhealthy(&[&["GPU-0001"][..]], Code::FailedPrecondition, "XID 79")]
#[case::oversized(&[&["a", "b", "c"][..]], Code::OutOfRange, "only 2")]
#[case::second_of_two(&[&["GPU-0000"][..], &["GPU-9"][..]], Code::NotFound, "GPU-9")]
#[tokio::test]
async fn a_bad_allocation_is_refused_precisely_and_the_next_one_served(
    #[case] containers: &[&[&str]],
    #[case] code: Code,
    #[case] part: &str,
) {
    let mut at = setting(cards(2, &[1])).await;
    let request = allocation(containers);
    let status = at.plugin.allocate(request).await.unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(part), "{status}");
    at.plugin
        .allocate(allocation(&[&["GPU-0000"]]))
        .await
        .unwrap();
}

#[tokio::test]
async fn preference_answers_with_the_size_and_what_must_be_included() {
    let mut at = setting(cards(4, &[])).await;
    let available = ["GPU-0000", "GPU-0001", "GPU-0002"];
    let request = preference(&available, &["GPU-0002"], 2);
    let answer = at.plugin.get_preferred_allocation(request).await.unwrap();
    let chosen = &answer.into_inner().container_responses[0].device_ids;
    assert_eq!(chosen.len(), 2);
    assert!(chosen.contains(&"GPU-0002".to_owned()), "{chosen:?}");
    assert!(chosen.iter().all(|id| available.contains(&id.as_str())));
}

#[rstest]
#[case::negative(&["GPU-0000"], &[], -1, Code::InvalidArgument, "-1")]
#[case::too_many(&["GPU-0000"], &[], 2, Code::OutOfRange, "only 1")]
#[case::more_required(&["GPU-0000", "GPU-0001"], &["GPU-0000", "GPU-0001"], 1, Code::InvalidArgument, "must be included")]
#[case::required_elsewhere(&["GPU-0000"], &["GPU-0001"], 1, Code::InvalidArgument, "GPU-0001")]
#[tokio::test]
async fn a_preference_that_cannot_be_met_is_refused_precisely(
    #[case] available: &[&str],
    #[case] required: &[&str],
    #[case] size: i32,
    #[case] code: Code,
    #[case] part: &str,
) {
    let mut at = setting(cards(2, &[])).await;
    let request = preference(available, required, size);
    let status = at
        .plugin
        .get_preferred_allocation(request)
        .await
        .unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(part), "{status}");
}

#[tokio::test]
async fn placement_that_goes_round_remembers_what_was_granted() {
    let mut pool = config::Pool::of_all_devices("gpu", GPU);
    pool.placement.policy = config::Policy::RoundRobin;
    let pool = Arc::new(pool);
    let plain = cards(3, &[]);
    let turning = plain.iter().map(|offer| {
        Arc::new(Offer {
            pool: Arc::clone(&pool),
            ..Offer::clone(offer)
        })
    });
    let mut at = setting(turning.collect()).await;
    let all = ["GPU-0000", "GPU-0001", "GPU-0002"];
    for expected in ["GPU-0000", "GPU-0001", "GPU-0002", "GPU-0000"] {
        let request = preference(&all, &[], 1);
        let answer = at.plugin.get_preferred_allocation(request).await.unwrap();
        let chosen = &answer.into_inner().container_responses[0].device_ids;
        assert_eq!(*chosen, [expected]);
        let request = allocation(&[&[expected]]);
        at.plugin.allocate(request).await.unwrap();
    }
}
