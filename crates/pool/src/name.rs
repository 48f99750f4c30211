//! Resource name of a device, made from the template of its pool. All errors in such a name are
//! found here.

use config::Template;
use model::{Device, Index, InvalidResourceName, ResourceName};

/// Trade marks in product names, which are left out.
const MARKS: [&str; 3] = ["(r)", "(tm)", "(c)"];

/// Reason why a template gives no name for a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The template has an unknown placeholder.
    #[error(
        "`{template}` has the unknown place `{{{place}}}`; there are {{profile}}, {{model}}, \
         {{memory}}, {{vendor}} and {{index}}"
    )]
    Place {
        /// Template of the pool.
        template: String,
        /// Placeholder, without braces.
        place: String,
    },
    /// The device does not report a fact that the template needs.
    #[error("`{template}` needs its {fact}, which it does not have or does not tell")]
    Missing {
        /// Template of the pool.
        template: String,
        /// Name of the missing fact, for a person.
        fact: &'static str,
    },
    /// The filled-in text is not a valid resource name.
    #[error(transparent)]
    Invalid(#[from] InvalidResourceName),
}

/// Returns the resource name that a template gives for a device.
///
/// # Errors
/// The template has an unknown placeholder, the device lacks a fact, or the result is not a valid
/// name.
pub fn resource_name(template: &Template, device: &Device) -> Result<ResourceName, Error> {
    let mut text = String::new();
    let mut rest = template.0.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        // An open brace is an invalid character like others. The parser below refuses it and says
        // so.
        let Some((place, after)) = after.split_once('}') else {
            break;
        };
        text.push_str(before);
        text.push_str(&fill_placeholder(template, place, device)?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text.parse()?)
}

/// Turns a product name into lower-case words with `-` between them.
///
/// ```
/// assert_eq!(pool::slug("NVIDIA A100-SXM4-40GB"), "nvidia-a100-sxm4-40gb");
/// ```
pub fn slug(model: &str) -> String {
    let mut model = model.to_ascii_lowercase();
    for mark in MARKS {
        model = model.replace(mark, " ");
    }
    let words = model.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

fn fill_placeholder(template: &Template, place: &str, device: &Device) -> Result<String, Error> {
    let (fact, value) = match place {
        "profile" => ("partition profile", write_profile(device)),
        "model" => ("product name", device.product_name().map(slug)),
        "memory" => ("memory size", device.memory_bytes().map(round_gigabytes)),
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

/// Returns the profile as NVIDIA's plugin writes it in resource names: `1g.10gb+me` becomes
/// `1g.10gb.me`.
fn write_profile(device: &Device) -> Option<String> {
    device
        .partition_profile()
        .map(|profile| profile.replace('+', "."))
}

/// Writes an index without the colon, which is not valid in a resource name: `3-0`.
fn dashed(index: Index) -> String {
    index.to_string().replace(':', "-")
}

/// Returns whole gigabytes, rounded up: a driver reports less memory than the product's name says,
/// because it keeps some for itself.
fn round_gigabytes(bytes: u64) -> String {
    match bytes {
        0 => String::new(),
        bytes => format!("{}gb", bytes.div_ceil(1 << 30)),
    }
}

#[cfg(test)]
mod tests;
