//! Which devices a container gets: the rules of the device manager, without the calls.

use std::{
    collections::{BTreeSet, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use super::state::State;

/// Device ids.
pub(super) type Ids = BTreeSet<String>;

/// One container's need of one resource.
pub(super) struct Need<'a> {
    pub(super) container: &'a str,
    pub(super) resource: &'a str,
    pub(super) count: usize,
}

/// What the kubelet does next for a need.
pub(super) enum Choice {
    /// These ones.
    Made(Ids),
    /// As many of `available` as are missing from `taken`; the plugin may say which.
    Open { available: Ids, taken: Ids },
}

// === impl Need ===

impl Need<'_> {
    pub(super) fn choose(&self, state: &State, reusable: &Ids) -> Result<Choice, String> {
        present(state, self.resource, &Ids::new())?;
        let taken: Ids = reusable.iter().take(self.count).cloned().collect();
        let missing = self.count - taken.len();
        if missing == 0 {
            return Ok(Choice::Made(taken));
        }
        let in_use = state.in_use(self.resource);
        let mut available = healthy(state, self.resource);
        available.retain(|id| !in_use.contains(id));
        if available.len() < missing {
            return Err(format!(
                "requested number of devices unavailable for {}. Requested: {missing}, Available: {}",
                self.resource,
                available.len()
            ));
        }
        if available.len() == missing {
            return Ok(Choice::Made(available.into_iter().chain(taken).collect()));
        }
        Ok(Choice::Open { available, taken })
    }
}

/// The kubelet's conditions on a resource that somebody wants, or on what a pod holds already.
pub(super) fn present(state: &State, resource: &str, held: &Ids) -> Result<(), String> {
    let known = state.resources.get(resource);
    if known.is_none_or(|known| known.devices.is_none()) {
        return Err(format!("cannot allocate unregistered device {resource}"));
    }
    let healthy = healthy(state, resource);
    if healthy.is_empty() {
        return Err(format!(
            "no healthy devices present; cannot allocate unhealthy devices {resource}"
        ));
    }
    if !healthy.is_superset(held) {
        return Err(format!(
            "previously allocated devices are no longer healthy; cannot allocate unhealthy devices {resource}"
        ));
    }
    Ok(())
}

fn healthy(state: &State, resource: &str) -> Ids {
    let devices = state.devices(resource).into_iter();
    let healthy = devices.filter(|(_, device)| device.healthy);
    healthy.map(|(id, _)| id).collect()
}

/// What is wrong with a preferred allocation, if anything.
pub(super) fn flaw(answer: &[String], available: &Ids, must: &Ids, size: usize) -> Option<String> {
    let distinct: HashSet<_> = answer.iter().collect();
    if distinct.len() != answer.len() {
        return Some("a device is named twice".to_owned());
    }
    if let Some(id) = answer.iter().find(|id| !available.contains(*id)) {
        return Some(format!("device {id} is not available"));
    }
    if let Some(id) = must.iter().find(|id| !distinct.contains(id)) {
        return Some(format!("device {id} must be included"));
    }
    (answer.len() != size).then(|| format!("{} devices instead of {size}", answer.len()))
}

/// The ids in an order that means nothing, as Go's maps give them; the same for the same ids.
pub(super) fn shuffled(ids: &Ids) -> Vec<String> {
    let mut ids: Vec<_> = ids.iter().cloned().collect();
    ids.sort_by_cached_key(|id| {
        let mut hash = DefaultHasher::new();
        id.hash(&mut hash);
        hash.finish()
    });
    ids
}
