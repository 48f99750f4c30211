use super::*;
use config::IdStrategy;
use config::{Handover, ListStrategy::*, NvidiaHandover, Pool};
use nvidia_rules::sample::*;

/// One line for each note; `!` marks parts that containers miss.
fn lines(notes: &[GrantNote]) -> String {
    let mark = |note: &GrantNote| if note.problem { "! " } else { "" };
    let line = |note: &GrantNote| format!("{}{}\n", mark(note), note.text);
    notes.iter().map(line).collect()
}

#[test]
fn there_is_nothing_to_say_of_the_default() {
    assert_eq!(handover_notes(&four_cards(handover_pool(|_| ()))), []);
}

#[test]
fn all_that_is_asked_for_and_not_there_is_named() {
    let pool = handover_pool(|handover| {
        *handover = Handover {
            lists: vec![Auto],
            ids: IdStrategy::Index,
            nvidia: NvidiaHandover {
                gds: true,
                gdrcopy: true,
                mofed: true,
                imex: vec![3, 0],
                ..NvidiaHandover::default()
            },
            ..Handover::default()
        }
    });
    let blind = Device {
        index: None,
        nodes: Vec::new(),
        ..indexed_card(1)
    };
    let mut half = indexed_card(2);
    half.nodes.retain(|node| node.role == NodeRole::Control);
    let offer = offer_of_devices(
        "nvidia.com/gpu",
        pool,
        vec![indexed_card(0), blind, half, foreign()],
    );
    insta::assert_snapshot!(lines(&handover_notes(&offer)), @r"
    ! IMEX channel 0 is not handed over: /dev/nvidia-caps-imex-channels/channel0 is not visible to the agent
    ! IMEX channel 3 is not handed over: /dev/nvidia-caps-imex-channels/channel3 is not visible to the agent
    ! gdrcopy is on, but no device node of it is visible to the agent
    ! gds is on, but no device node of it is visible to the agent
    ! mofed is on, but no device node of it is visible to the agent
    GPU-c has no index and is named by its UUID
    ! the device node of GPU-b is not visible to the agent, so it is not handed over; let the agent see the host's /dev
    ! the device node of GPU-c is not visible to the agent, so it is not handed over; let the agent see the host's /dev
    ");

    let mut complete = with_extras(all_extras(), four_cards(Pool::clone(&offer.pool)));
    complete.pool = std::sync::Arc::new(Pool {
        handover: Handover {
            nvidia: NvidiaHandover {
                imex: vec![0],
                ..offer.pool.handover.nvidia.clone()
            },
            lists: vec![Envvar],
            ..offer.pool.handover.clone()
        },
        ..Pool::clone(&offer.pool)
    });
    assert_eq!(handover_notes(&complete), []);
}

#[test]
fn a_bare_response_is_a_risk() {
    let bare = handover_pool(|handover| handover.device_nodes = false);
    let said = handover_notes(&four_cards(bare.clone()));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].text.contains("when systemd reloads"), "{said:?}");
    assert!(!said[0].problem, "it is what the config asks for");
    // A Tegra board has no device node, with or without CDI.
    for pool in [bare, handover_pool(|_| ())] {
        assert_eq!(
            handover_notes(&offer_of_devices(
                "nvidia.com/gpu",
                pool,
                vec![tegra_device()]
            )),
            []
        );
    }
}

#[test]
fn a_shared_device_is_named_once() {
    let pool = sharing_pool(config::Method::TimeSlicing, 3);
    let blind = Device {
        nodes: Vec::new(),
        ..indexed_card(0)
    };
    assert_eq!(
        handover_notes(&offer_of_devices("nvidia.com/gpu", pool, vec![blind])).len(),
        1
    );
}
