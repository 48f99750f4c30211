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
pub(crate) struct TextPlace {
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// Number of characters of the line that belong to the place.
    pub(crate) width: usize,
}

/// Value and its place.
#[derive(Clone, Debug)]
pub(crate) struct YamlNode {
    pub(crate) place: TextPlace,
    pub(crate) value: YamlValue,
}

/// Value of a node.
#[derive(Clone, Debug)]
pub(crate) enum YamlValue {
    /// Nothing, `null` or `~`, not in quotes.
    Null,
    /// Single value. It is plain if it is not in quotes.
    Scalar { text: String, plain: bool },
    /// List of values.
    List(Vec<YamlNode>),
    /// Keys and values, in order. A key can be there twice.
    Map(Vec<YamlEntry>),
}

/// Key and its value.
#[derive(Clone, Debug)]
pub(crate) struct YamlEntry {
    pub(crate) key: String,
    pub(crate) place: TextPlace,
    pub(crate) node: YamlNode,
}

/// Reason why a text cannot be parsed.
#[derive(Clone, Debug)]
pub(crate) struct YamlFault {
    pub(crate) place: TextPlace,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

struct TreeBuilder<'t> {
    events: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, (YamlNode, usize)>,
    nodes: usize,
    last: TextPlace,
}

/// Parses a text. `None` if the text has no value.
pub(crate) fn parse_yaml(text: &str) -> Result<Option<YamlNode>, YamlFault> {
    let mut options = granit_parser::options! {
        flow_nesting_limit: DEPTH_LIMIT,
        block_nesting_limit: DEPTH_LIMIT,
    };
    options.set_emit_comments(false);
    let mut builder = TreeBuilder {
        events: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        nodes: 0,
        last: TextPlace {
            line: 1,
            column: 1,
            width: 1,
        },
    };
    builder.document()
}

// === impl TreeBuilder ===

impl<'t> TreeBuilder<'t> {
    fn document(&mut self) -> Result<Option<YamlNode>, YamlFault> {
        let mut root = None;
        while let Some((event, place)) = self.next_event()? {
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_some() => {
                    let help = "a config is one document: remove this `---` and what follows";
                    return Err(make_fault(place, "there is a second YAML document", help));
                }
                Event::DocumentStart(..) => {}
                event => root = Some(self.read_node(event, place, 0)?),
            }
        }
        Ok(root.filter(|node| !matches!(node.value, YamlValue::Null)))
    }

    fn next_event(&mut self) -> Result<Option<(Event<'t>, TextPlace)>, YamlFault> {
        match self.events.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                self.last = TextPlace::from_span(span);
                Ok(Some((event, self.last)))
            }
            Some(Err(error)) => {
                let place = TextPlace::from_marker(*error.marker(), 1);
                let message = format!("not valid YAML: {}", error.info());
                let help = "check indentation, quotes and brackets at this place and just above";
                Err(make_fault(place, message, help))
            }
        }
    }

    /// Returns the next event inside an open list or map. An error if the text ends there.
    fn inner(&mut self) -> Result<(Event<'t>, TextPlace), YamlFault> {
        let last = self.last;
        let end = || make_fault(last, "the text ends too early", "close what is open");
        self.next_event()?.ok_or_else(end)
    }

    fn count_nodes(&mut self, nodes: usize, place: TextPlace) -> Result<(), YamlFault> {
        self.nodes += nodes;
        if self.nodes > NODE_LIMIT {
            let message = format!("the config has more than {NODE_LIMIT} keys and values");
            let help = "make it shorter; an alias counts as all that it stands for";
            return Err(make_fault(place, message, help));
        }
        Ok(())
    }

    fn read_node(
        &mut self,
        event: Event<'t>,
        place: TextPlace,
        depth: usize,
    ) -> Result<YamlNode, YamlFault> {
        if depth > DEPTH_LIMIT {
            let help = "no key of a config is that deep";
            return Err(make_fault(place, "nested too deep", help));
        }
        let before = self.nodes;
        self.count_nodes(1, place)?;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                // `!!str` makes a text of a word such as `null`.
                let text_tag = tag.is_some_and(|tag| tag.core_suffix() == Some("str"));
                let plain = style == ScalarStyle::Plain && !text_tag;
                let value = match plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL") {
                    true => YamlValue::Null,
                    false => YamlValue::Scalar {
                        text: text.into_owned(),
                        plain,
                    },
                };
                (anchor, value)
            }
            Event::SequenceStart(_, anchor, _) => (anchor, self.read_sequence(depth)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.read_mapping(depth)?),
            Event::Alias(id) => return self.alias(id, place),
            _ => return Err(make_fault(place, "unexpected YAML", "write plain YAML")),
        };
        let node = YamlNode { place, value };
        // The parser numbers anchors from 1. 0 means no anchor.
        if anchor != 0 {
            let size = self.nodes - before;
            self.anchors.insert(anchor, (node.clone(), size));
            // The copy is kept as long as the node itself, so it counts too.
            self.count_nodes(size, place)?;
        }
        Ok(node)
    }

    fn read_sequence(&mut self, depth: usize) -> Result<YamlValue, YamlFault> {
        let mut list = Vec::new();
        loop {
            match self.inner()? {
                (Event::SequenceEnd, _) => return Ok(YamlValue::List(list)),
                (event, place) => list.push(self.read_node(event, place, depth + 1)?),
            }
        }
    }

    fn read_mapping(&mut self, depth: usize) -> Result<YamlValue, YamlFault> {
        let (mut entries, mut merged) = (Vec::new(), Vec::new());
        loop {
            let (event, place) = self.inner()?;
            if event == Event::MappingEnd {
                break;
            }
            let merge = matches!(&event, Event::Scalar(key, ScalarStyle::Plain, ..) if key == "<<");
            let key = match self.read_node(event, place, depth + 1)?.value {
                YamlValue::Scalar { text, .. } => text,
                YamlValue::Null => "null".to_owned(),
                _ => {
                    return Err(make_fault(
                        place,
                        "a key must be a text",
                        "write `key: value`",
                    ));
                }
            };
            let (event, at) = self.inner()?;
            let node = self.read_node(event, at, depth + 1)?;
            match merge {
                true => merged.extend(merge_entries(node)?),
                false => entries.push(YamlEntry { key, place, node }),
            }
        }
        // A key of the map itself wins over a merged one (yaml.org/type/merge.html).
        for entry in merged {
            if !entries.iter().any(|e: &YamlEntry| e.key == entry.key) {
                entries.push(entry);
            }
        }
        Ok(YamlValue::Map(entries))
    }

    fn alias(&mut self, id: usize, place: TextPlace) -> Result<YamlNode, YamlFault> {
        // The parser refuses unknown names itself. An anchor that is not complete yet is one of the
        // lists and maps around the alias.
        let Some((node, size)) = self.anchors.get(&id) else {
            let help = "write the value out";
            return Err(make_fault(
                place,
                "an alias within what it stands for",
                help,
            ));
        };
        let (node, size) = (node.clone(), *size);
        self.count_nodes(size, place)?;
        Ok(node)
    }
}

// === impl TextPlace ===

impl TextPlace {
    fn from_span(span: Span) -> Self {
        let width = match span.start.line() == span.end.line() {
            true => span.end.col().saturating_sub(span.start.col()),
            false => 1,
        };
        Self::from_marker(span.start, width.max(1))
    }

    fn from_marker(marker: Marker, width: usize) -> Self {
        Self {
            line: marker.line().max(1),
            column: marker.col() + 1,
            width,
        }
    }
}

/// Returns the entries that `<<` adds: those of a map, or of each map in a list.
fn merge_entries(node: YamlNode) -> Result<Vec<YamlEntry>, YamlFault> {
    match node.value {
        YamlValue::Map(entries) => Ok(entries),
        YamlValue::List(list) => {
            let lists: Result<Vec<_>, _> = list.into_iter().map(merge_entries).collect();
            Ok(lists?.into_iter().flatten().collect())
        }
        _ => {
            let help = "write `<<: *anchor`";
            Err(make_fault(node.place, "`<<` needs a map", help))
        }
    }
}

fn make_fault(place: TextPlace, message: impl Into<String>, help: &'static str) -> YamlFault {
    YamlFault {
        place,
        message: message.into(),
        help,
    }
}
