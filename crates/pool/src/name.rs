//! The resource name of a device, filled in from its pool's template. Everything that can be wrong
//! with a name is found here.

use config::Template;
use model::{Device, Index, InvalidResourceName, ResourceName};

/// Marks that products carry in their names and that say nothing.
const MARKS: [&str; 3] = ["(r)", "(tm)", "(c)"];

/// Why a template makes no name for a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The template has a place that does not exist.
    #[error(
        "`{template}` has the unknown place `{{{place}}}`; there are {{profile}}, {{model}}, \
         {{memory}}, {{vendor}} and {{index}}"
    )]
    Place {
        /// The template.
        template: String,
        /// The place.
        place: String,
    },
    /// The device does not have what the template asks for.
    #[error("`{template}` needs its {fact}, which it does not have or does not tell")]
    Missing {
        /// The template.
        template: String,
        /// What is missing, for a person.
        fact: &'static str,
    },
    /// The filled-in text is no resource name.
    #[error(transparent)]
    Invalid(#[from] InvalidResourceName),
}

/// The name that a template makes for a device.
pub fn name(template: &Template, device: &Device) -> Result<ResourceName, Error> {
    let mut text = String::new();
    let mut rest = template.0.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        // A brace that stays open is a wrong letter like others, and is named below.
        let Some((place, after)) = after.split_once('}') else {
            break;
        };
        text.push_str(before);
        text.push_str(&fill(template, place, device)?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text.parse()?)
}

/// A product name as lower-case words with `-` between them: `NVIDIA A100-SXM4-40GB` is
/// `nvidia-a100-sxm4-40gb`.
pub fn slug(model: &str) -> String {
    let mut model = model.to_ascii_lowercase();
    for mark in MARKS {
        model = model.replace(mark, " ");
    }
    let words = model.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

fn fill(template: &Template, place: &str, device: &Device) -> Result<String, Error> {
    let (fact, value) = match place {
        "profile" => ("partition profile", shape(device)),
        "model" => ("product name", device.product().map(slug)),
        "memory" => ("memory size", device.memory().map(gigabytes)),
        "vendor" => ("vendor", Some(device.vendor.clone())),
        "index" => ("index", device.index.map(dashed)),
        _ => {
            return Err(Error::Place {
                template: template.to_string(),
                place: place.to_owned(),
            });
        }
    };
    let value = value.filter(|value| !value.is_empty());
    value.ok_or_else(|| Error::Missing {
        template: template.to_string(),
        fact,
    })
}

/// NVIDIA's way: `1g.10gb+me` becomes `1g.10gb.me`.
fn shape(device: &Device) -> Option<String> {
    device.profile().map(|profile| profile.replace('+', "."))
}

/// An index without the colon, which a resource name may not have: `3-0`.
fn dashed(index: Index) -> String {
    index.to_string().replace(':', "-")
}

/// Whole gigabytes, rounded up: drivers keep a part of the memory that a card is sold with.
fn gigabytes(bytes: u64) -> String {
    match bytes {
        0 => String::new(),
        bytes => format!("{}gb", bytes.div_ceil(1 << 30)),
    }
}

#[cfg(test)]
mod tests;
