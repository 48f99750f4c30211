//! What is done with devices between their allocation and the start of a container on them.

use std::{fmt, pin::Pin, sync::Arc};

use config::PreStartMode;
use kubelet_api::deviceplugin::DevicePluginOptions;
use model::DeviceId;
use pool::Offer;

/// Prepares devices before a container starts on them. The kubelet waits for it, at most 30 s.
pub trait Prepare: fmt::Debug + Send + Sync {
    /// Prepares these devices of an offer; if they cannot be handed over, why not, for a person.
    fn prepare(&self, offer: Arc<Offer>, devices: Vec<DeviceId>) -> Preparing;
}

/// The work of a [`Prepare`].
pub type Preparing = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Whether the kubelet is to call before each start.
pub(crate) fn is_wanted(offer: &Offer) -> bool {
    offer.pool.pre_start.mode != PreStartMode::Off
}

/// What a plugin tells the kubelet of itself.
pub(crate) fn options(offer: &Offer) -> DevicePluginOptions {
    DevicePluginOptions {
        pre_start_required: is_wanted(offer),
        get_preferred_allocation_available: true,
    }
}
