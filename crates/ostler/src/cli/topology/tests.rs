use model::{Ancestor, Device, Entry, Link, Snapshot};

use super::*;

/// Machine with two cards behind each PCIe switch, and four on each NUMA node.
fn machine(count: usize, lanes: impl Fn(usize, usize) -> u32, switched: bool) -> Snapshot {
    let id = |n: usize| format!("GPU-{n:02}");
    let link = |a: usize, b: usize| Link {
        peer: id(b).into(),
        ancestor: Some(match (a / 2 == b / 2, a / 4 == b / 4) {
            (true, _) => Ancestor::Switch,
            (_, true) => Ancestor::HostBridge,
            _ => Ancestor::System,
        }),
        lanes: lanes(a.min(b), a.max(b)),
        switched,
    };
    let card = |a: usize| {
        Entry::from(Device {
            index: a.to_string().parse().ok(),
            numa: u32::try_from(a / 4).ok(),
            links: (0..count).filter(|b| *b != a).map(|b| link(a, b)).collect(),
            ..Device::card_of("nvidia", id(a), "A<B & \"C\"")
        })
    };
    Snapshot {
        devices: (0..count).map(card).collect(),
        ..Snapshot::empty_at(jiff::Timestamp::UNIX_EPOCH)
    }
}

fn bridged() -> Snapshot {
    machine(
        6,
        |a, b| if b - a == 2 { 4 } else { u32::from(b - a == 4) },
        false,
    )
}

#[test]
fn the_matrix_says_how_each_pair_is_joined() {
    let mut snapshot = bridged();
    let lone = snapshot.devices[5].device_mut();
    lone.links.clear();
    lone.numa = None;
    for entry in &mut snapshot.devices[..5] {
        entry
            .device_mut()
            .links
            .retain(|link| link.peer.as_str() != "GPU-05");
    }
    insta::assert_snapshot!(matrix::format_matrix(&CardTopology::from_snapshot(
        &snapshot
    )));
    assert_eq!(
        matrix::format_matrix(&CardTopology::from_snapshot(&machine(0, |_, _| 0, false))),
        "no cards\n"
    );
}

#[test]
fn a_switch_shows_with_the_way_through_the_machine() {
    insta::assert_snapshot!(matrix::format_matrix(&CardTopology::from_snapshot(
        &machine(3, |_, _| 0, true)
    )));
}

#[test]
fn the_graph_has_a_cluster_for_each_numa_node() {
    insta::assert_snapshot!(dot::graph(&CardTopology::from_snapshot(&bridged())));
    insta::assert_snapshot!(
        "switch",
        dot::graph(&CardTopology::from_snapshot(&machine(2, |_, _| 0, true)))
    );
}

#[test]
fn programs_get_every_pair_once_with_its_score() {
    let snapshot = machine(3, |_, b| u32::from(b == 2), false);
    let topology = CardTopology::from_snapshot(&snapshot);
    let picture = serde_json::to_value(picture(&topology)).unwrap();
    assert_eq!(picture["cards"].as_array().unwrap().len(), 3);
    let scores: Vec<u64> = picture["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| pair["score"].as_u64().unwrap())
        .collect();
    assert_eq!(scores, [50, 130, 130]);
    assert_eq!(picture["pairs"][0]["ancestor"], "switch");
}

/// Values of an attribute, for every element whose text has a certain beginning.
fn numbers(svg: &str, element: &str, attribute: &str) -> Vec<f64> {
    let key = format!(" {attribute}=\"");
    svg.split('<')
        .filter(|part| part.starts_with(element))
        .filter_map(|part| part.split_once(key.as_str()))
        .map(|(_, rest)| rest.split('"').next().unwrap().parse().unwrap())
        .collect()
}

#[rstest::rstest]
fn in_the_picture_cards_lie_apart_and_inside(#[values(1, 2, 3, 4, 8, 16, 24)] count: usize) {
    let snapshot = machine(count, |_, _| 1, false);
    let svg = svg::draw(&CardTopology::from_snapshot(&snapshot));
    let card = "rect class=\"card\"";
    let corners: Vec<(f64, f64)> = numbers(&svg, card, "x")
        .into_iter()
        .zip(numbers(&svg, card, "y"))
        .collect();
    let (wide, high) = (
        numbers(&svg, card, "width")[0],
        numbers(&svg, card, "height")[0],
    );
    let page = (
        numbers(&svg, "svg", "width")[0],
        numbers(&svg, "svg", "height")[0],
    );
    assert_eq!(corners.len(), count);
    for (at, (x, y)) in corners.iter().enumerate() {
        assert!(*x >= 0.0 && *y >= 40.0 && x + wide <= page.0 && y + high <= page.1);
        for (ox, oy) in &corners[..at] {
            assert!(
                (x - ox).abs() >= wide || (y - oy).abs() >= high,
                "card {at} lies on another"
            );
        }
    }
    assert_eq!(
        svg.matches("<path class=\"link\" stroke-width=\"3.0\" d=\"M")
            .count(),
        {
            let pairs = count * (count - 1) / 2;
            pairs + usize::from(pairs > 0)
        }
    );
}

#[test]
fn the_picture_is_well_formed_whatever_a_model_is_called() {
    let mut snapshot = machine(8, |a, b| u32::from(b - a == 4), false);
    snapshot.devices[3].verdict.state = State::Unhealthy;
    let svg = svg::draw(&CardTopology::from_snapshot(&snapshot));
    assert!(svg.contains("A&lt;B &amp; \"C\""));
    assert_eq!(
        svg.matches("card bad").count(),
        2,
        "the card, and the legend"
    );
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap();
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}
