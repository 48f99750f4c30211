//! Shapes: partitions that are possible on a card, and need not exist.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One kind of partition that is possible on a card.
///
/// A shape is a fact of the card and does not tell which partitions exist. Partitions of different
/// shapes fit on one card if their placements do not overlap and the card has enough of everything
/// else, such as engines.
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
    /// Vendor's name of the shape, e.g. `1g.5gb`. A partition of this shape has it as its
    /// `profile`.
    pub profile: String,
    /// Number of partitions of this shape that fit on an empty card.
    pub most: u32,
    /// Bytes of memory of one such partition; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Memory slices that one such partition may occupy, one entry for each possibility. Empty if
    /// not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<Span>,
}

/// Adjacent memory slices of a card.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Span {
    /// First slice. Slices of a card are counted from 0.
    pub start: u32,
    /// Number of slices.
    pub size: u32,
}
