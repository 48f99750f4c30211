//! Partitions that are possible on a card, which need not exist.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One kind of partition that is possible on a card.
///
/// Shapes are facts of the card and say nothing of the partitions that it has now. Partitions of
/// different shapes fit beside each other where their placements do not overlap and the card has enough
/// of everything else, such as engines.
///
/// ```
/// # use model::{Shape, Span};
/// // Two halves of a card with eight slices of memory.
/// let half: Shape = serde_json::from_str(
///     r#"{"profile": "3g.20gb", "most": 2, "memory": 21072183296,
///         "placements": [{"start": 0, "size": 4}, {"start": 4, "size": 4}]}"#,
/// ).unwrap();
/// assert_eq!(half.placements[1], Span { start: 4, size: 4 });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// The vendor's name, e.g. `1g.5gb`. Partitions of this shape have it as their `profile`.
    pub profile: String,
    /// The number of partitions of this shape that fit on an empty card.
    pub most: u32,
    /// The bytes of memory of one such partition, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The memory slices that one such partition may occupy, one entry for each possibility. Empty where
    /// they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<Span>,
}

/// Neighbouring memory slices of a card.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Span {
    /// The first slice. A card's slices are counted from 0.
    pub start: u32,
    /// The number of slices.
    pub size: u32,
}
