//! Description of the links between devices: the reason for which placement chose them together.

use model::{Ancestor, Device, Link};

use super::tell::list;

/// Describes the links that two or more devices have in common; empty for fewer devices.
pub(super) fn why(devices: &[&Device]) -> String {
    let [first, rest @ ..] = devices else {
        return String::new();
    };
    if rest.is_empty() {
        return String::new();
    }
    if rest.iter().all(|other| other.card_id() == first.card_id()) {
        return "they are parts of one card".to_owned();
    }
    let links: Vec<Option<&Link>> = pairs(devices).map(|(a, b)| link(a, b)).collect();
    let mut reasons = Vec::new();
    reasons.extend(lanes(&links));
    reasons.extend(way(&links));
    match first.numa {
        Some(numa) if rest.iter().all(|other| other.numa == first.numa) => {
            reasons.push(format!("are on NUMA node {numa}"));
        }
        _ => {}
    }
    match reasons.is_empty() {
        true => "nothing is known of what joins them".to_owned(),
        false => format!("they {}", list(&reasons)),
    }
}

fn pairs<'a>(devices: &'a [&'a Device]) -> impl Iterator<Item = (&'a Device, &'a Device)> {
    let later = move |at: usize| &devices[at + 1..];
    devices
        .iter()
        .enumerate()
        .flat_map(move |(at, a)| later(at).iter().map(move |b| (*a, *b)))
}

fn link<'a>(a: &'a Device, b: &Device) -> Option<&'a Link> {
    a.links.iter().find(|link| link.peer == *b.card_id())
}

/// Describes the direct links: NVSwitch, or the smallest number of NVLinks between two devices.
fn lanes(links: &[Option<&Link>]) -> Option<String> {
    let known: Option<Vec<&Link>> = links.iter().copied().collect();
    let known = known?;
    if known.iter().all(|link| link.switched) {
        return Some("reach each other through NVSwitch".to_owned());
    }
    match known.iter().map(|link| link.lanes).min()? {
        0 => None,
        1 => Some("are joined by an NVLink".to_owned()),
        count => Some(format!("are joined by {count} NVLinks")),
    }
}

/// Describes the closest PCIe ancestor that all devices share.
fn way(links: &[Option<&Link>]) -> Option<String> {
    let ancestors: Option<Vec<Ancestor>> =
        links.iter().map(|link| link.as_ref()?.ancestor).collect();
    let shared = match ancestors?.into_iter().max()? {
        Ancestor::Board => "are on one board",
        Ancestor::Switch => "share a PCIe switch",
        Ancestor::Switches => "sit behind the same PCIe switches",
        Ancestor::HostBridge => "share a PCIe host bridge",
        Ancestor::Node | Ancestor::System => return None,
    };
    Some(shared.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Kind;
    use rstest::rstest;

    fn card(id: &str, numa: u32, links: Vec<Link>) -> Device {
        Device {
            numa: Some(numa),
            links,
            ..Device::card_of("nvidia", id, "A100")
        }
    }

    fn part(id: &str, parent: &str) -> Device {
        Device {
            kind: Kind::Partition {
                parent: parent.into(),
                profile: Some("1g.5gb".to_owned()),
            },
            ..card(id, 0, Vec::new())
        }
    }

    #[rstest]
    #[case(
        0,
        true,
        Some(Ancestor::Switches),
        "they reach each other through NVSwitch, sit behind the same PCIe switches and are on NUMA node 0"
    )]
    #[case(
        2,
        false,
        Some(Ancestor::Switch),
        "they are joined by 2 NVLinks, share a PCIe switch and are on NUMA node 0"
    )]
    #[case(
        1,
        false,
        Some(Ancestor::Node),
        "they are joined by an NVLink and are on NUMA node 0"
    )]
    #[case(0, false, None, "they are on NUMA node 0")]
    fn names_what_joins_two_cards(
        #[case] lanes: u32,
        #[case] switched: bool,
        #[case] ancestor: Option<Ancestor>,
        #[case] expected: &str,
    ) {
        let peer = "GPU-b".into();
        let link = Link {
            peer,
            ancestor,
            lanes,
            switched,
        };
        let (a, b) = (card("GPU-a", 0, vec![link]), card("GPU-b", 0, Vec::new()));
        assert_eq!(why(&[&a, &b]), expected);
    }

    #[test]
    fn parts_of_one_card_need_no_other_reason() {
        let (a, b) = (part("MIG-a", "GPU-a"), part("MIG-b", "GPU-a"));
        assert_eq!(why(&[&a, &b]), "they are parts of one card");
    }

    #[test]
    fn says_so_when_nothing_is_known() {
        let (a, b) = (card("GPU-a", 0, Vec::new()), card("GPU-b", 1, Vec::new()));
        assert_eq!(why(&[&a, &b]), "nothing is known of what joins them");
        assert_eq!(why(&[&a]), "");
    }
}
