//! What is known of the way between two cards, put together from what each of them says.

use model::{Ancestor, Device, Link};
use serde::Serialize;

/// The way between two cards. Where the two disagree, the worse is believed; where one is silent,
/// the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Way {
    /// The closest point they share on the way through the machine.
    pub ancestor: Option<Ancestor>,
    /// Direct lanes between the two (NVLink).
    pub lanes: u32,
    /// Whether both hang on one switched fabric (NVSwitch).
    pub fabric: bool,
    /// Whether they are on one NUMA node, where both say.
    pub same_numa: Option<bool>,
}

// === impl Way ===

impl Way {
    /// The way between two whole cards.
    pub fn between(a: &Device, b: &Device) -> Self {
        let numa = a.numa.zip(b.numa).map(|(a, b)| a == b);
        let there = a.links.iter().find(|link| link.peer == b.id);
        let back = b.links.iter().find(|link| link.peer == a.id);
        let way = match (there, back) {
            (Some(there), Some(back)) => Self::worse(Self::of(there), Self::of(back)),
            (Some(one), None) | (None, Some(one)) => Self::of(one),
            (None, None) => Self::default(),
        };
        Self {
            same_numa: numa,
            ..way
        }
    }

    fn of(link: &Link) -> Self {
        Self {
            ancestor: link.ancestor,
            lanes: link.lanes,
            fabric: link.fabric,
            same_numa: None,
        }
    }

    fn worse(a: Self, b: Self) -> Self {
        Self {
            ancestor: a.ancestor.max(b.ancestor),
            lanes: a.lanes.min(b.lanes),
            fabric: a.fabric && b.fabric,
            same_numa: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(
        id: &str,
        numa: Option<u32>,
        link: Option<(&str, Option<Ancestor>, u32, bool)>,
    ) -> Device {
        let links = link.map(|(peer, ancestor, lanes, fabric)| Link {
            peer: peer.into(),
            ancestor,
            lanes,
            fabric,
        });
        Device {
            numa,
            links: links.into_iter().collect(),
            ..Device::card_of("nvidia", id, "A100")
        }
    }

    #[test]
    fn believes_the_worse_of_two_that_disagree() {
        let a = card("a", Some(0), Some(("b", Some(Ancestor::Switch), 4, true)));
        let b = card("b", Some(1), Some(("a", Some(Ancestor::Node), 2, false)));
        let expected = Way {
            ancestor: Some(Ancestor::Node),
            lanes: 2,
            fabric: false,
            same_numa: Some(false),
        };
        assert_eq!(Way::between(&a, &b), expected);
        assert_eq!(Way::between(&b, &a), expected);
    }

    #[test]
    fn believes_the_one_that_speaks() {
        let a = card("a", None, Some(("b", None, 0, true)));
        let b = card("b", Some(1), Some(("a", Some(Ancestor::System), 0, true)));
        let silent = card("b", Some(1), None);
        assert_eq!(Way::between(&a, &b).ancestor, Some(Ancestor::System));
        assert!(Way::between(&a, &silent).fabric);
        assert!(Way::between(&silent, &a).fabric);
        assert_eq!(Way::between(&a, &silent).same_numa, None);
        assert_eq!(
            Way::between(&card("a", None, None), &silent),
            Way::default()
        );
    }
}
