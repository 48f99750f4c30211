//! Parses YAML, and JSON, which is a subset of it, into a tree in which every key and value has its
//! place.
//!
//! Depth and number of nodes are limited. An alias counts as all the nodes that it stands for:
//! otherwise ten lines with aliases of aliases could make millions of nodes. `<<` merges maps.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput};

/// Deepest nesting of a config. The options need seven levels.
const DEPTH_LIMIT: usize = 32;
/// Largest number of keys and values in a config.
const NODE_LIMIT: usize = 50_000;

/// Place in a text: line and column from 1, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// Number of characters of the line that belong to the place.
    pub(crate) width: usize,
}

/// Value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// Value of a node.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Nothing, `null` or `~`, not in quotes.
    Null,
    /// Single value. It is plain if it is not in quotes.
    Scalar { text: String, plain: bool },
    /// List of values.
    List(Vec<Node>),
    /// Keys and values, in order. A key can be there twice.
    Map(Vec<Entry>),
}

/// Key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) node: Node,
}

/// Reason why a text cannot be parsed.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) place: Place,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

struct Builder<'t> {
    events: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    last: Place,
}

/// Parses a text. `None` if the text has no value.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, Fault> {
    let mut options = granit_parser::options! {
        flow_nesting_limit: DEPTH_LIMIT,
        block_nesting_limit: DEPTH_LIMIT,
    };
    options.set_emit_comments(false);
    let mut builder = Builder {
        events: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        nodes: 0,
        last: Place {
            line: 1,
            column: 1,
            width: 1,
        },
    };
    builder.document()
}

// === impl Builder ===

impl<'t> Builder<'t> {
    fn document(&mut self) -> Result<Option<Node>, Fault> {
        let mut root = None;
        while let Some((event, place)) = self.next()? {
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_some() => {
                    let help = "a config is one document: remove this `---` and what follows";
                    return Err(fault(place, "there is a second YAML document", help));
                }
                Event::DocumentStart(..) => {}
                event => root = Some(self.node(event, place, 0)?),
            }
        }
        Ok(root.filter(|node| !matches!(node.value, Value::Null)))
    }

    fn next(&mut self) -> Result<Option<(Event<'t>, Place)>, Fault> {
        match self.events.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                self.last = Place::of(span);
                Ok(Some((event, self.last)))
            }
            Some(Err(error)) => {
                let place = Place::at(*error.marker(), 1);
                let message = format!("not valid YAML: {}", error.info());
                let help = "check indentation, quotes and brackets at this place and just above";
                Err(fault(place, message, help))
            }
        }
    }

    /// Returns the next event inside an open list or map. An error if the text ends there.
    fn inner(&mut self) -> Result<(Event<'t>, Place), Fault> {
        let last = self.last;
        let end = || fault(last, "the text ends too early", "close what is open");
        self.next()?.ok_or_else(end)
    }

    fn count(&mut self, nodes: usize, place: Place) -> Result<(), Fault> {
        self.nodes += nodes;
        if self.nodes > NODE_LIMIT {
            let message = format!("the config has more than {NODE_LIMIT} keys and values");
            let help = "make it shorter; an alias counts as all that it stands for";
            return Err(fault(place, message, help));
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'t>, place: Place, depth: usize) -> Result<Node, Fault> {
        if depth > DEPTH_LIMIT {
            let help = "no key of a config is that deep";
            return Err(fault(place, "nested too deep", help));
        }
        let before = self.nodes;
        self.count(1, place)?;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                // `!!str` makes a text of a word such as `null`.
                let text_tag = tag.is_some_and(|tag| tag.core_suffix() == Some("str"));
                let plain = style == ScalarStyle::Plain && !text_tag;
                let value = match plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL") {
                    true => Value::Null,
                    false => Value::Scalar {
                        text: text.into_owned(),
                        plain,
                    },
                };
                (anchor, value)
            }
            Event::SequenceStart(_, anchor, _) => (anchor, self.list(depth)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.map(depth)?),
            Event::Alias(id) => return self.alias(id, place),
            _ => return Err(fault(place, "unexpected YAML", "write plain YAML")),
        };
        let node = Node { place, value };
        // The parser numbers anchors from 1. 0 means no anchor.
        if anchor != 0 {
            let size = self.nodes - before;
            self.anchors.insert(anchor, (node.clone(), size));
            // The copy is kept as long as the node itself, so it counts too.
            self.count(size, place)?;
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut list = Vec::new();
        loop {
            match self.inner()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(list)),
                (event, place) => list.push(self.node(event, place, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Fault> {
        let (mut entries, mut merged) = (Vec::new(), Vec::new());
        loop {
            let (event, place) = self.inner()?;
            if event == Event::MappingEnd {
                break;
            }
            let merge = matches!(&event, Event::Scalar(key, ScalarStyle::Plain, ..) if key == "<<");
            let key = match self.node(event, place, depth + 1)?.value {
                Value::Scalar { text, .. } => text,
                Value::Null => "null".to_owned(),
                _ => return Err(fault(place, "a key must be a text", "write `key: value`")),
            };
            let (event, at) = self.inner()?;
            let node = self.node(event, at, depth + 1)?;
            match merge {
                true => merged.extend(merge_entries(node)?),
                false => entries.push(Entry { key, place, node }),
            }
        }
        // A key of the map itself wins over a merged one (yaml.org/type/merge.html).
        for entry in merged {
            if !entries.iter().any(|e: &Entry| e.key == entry.key) {
                entries.push(entry);
            }
        }
        Ok(Value::Map(entries))
    }

    fn alias(&mut self, id: usize, place: Place) -> Result<Node, Fault> {
        // The parser refuses unknown names itself. An anchor that is not complete yet is one of the
        // lists and maps around the alias.
        let Some((node, size)) = self.anchors.get(&id) else {
            let help = "write the value out";
            return Err(fault(place, "an alias within what it stands for", help));
        };
        let (node, size) = (node.clone(), *size);
        self.count(size, place)?;
        Ok(node)
    }
}

// === impl Place ===

impl Place {
    fn of(span: Span) -> Self {
        let width = match span.start.line() == span.end.line() {
            true => span.end.col().saturating_sub(span.start.col()),
            false => 1,
        };
        Self::at(span.start, width.max(1))
    }

    fn at(marker: Marker, width: usize) -> Self {
        Self {
            line: marker.line().max(1),
            column: marker.col() + 1,
            width,
        }
    }
}

/// Returns the entries that `<<` adds: those of a map, or of each map in a list.
fn merge_entries(node: Node) -> Result<Vec<Entry>, Fault> {
    match node.value {
        Value::Map(entries) => Ok(entries),
        Value::List(list) => {
            let lists: Result<Vec<_>, _> = list.into_iter().map(merge_entries).collect();
            Ok(lists?.into_iter().flatten().collect())
        }
        _ => {
            let help = "write `<<: *anchor`";
            Err(fault(node.place, "`<<` needs a map", help))
        }
    }
}

fn fault(place: Place, message: impl Into<String>, help: &'static str) -> Fault {
    Fault {
        place,
        message: message.into(),
        help,
    }
}
