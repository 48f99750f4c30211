//! Preparation of devices between their allocation and the start of a container.

use std::{fmt, pin::Pin, sync::Arc};

use config::PreStartMode;
use kubelet_api::deviceplugin::DevicePluginOptions;
use model::DeviceId;
use pool::Offer;

// The 30 s are the kubelet's: pkg/kubelet/cm/devicemanager/endpoint.go, `preStartContainer`.
/// Prepares devices before a container starts on them. The kubelet waits for at most 30 s.
pub trait Prepare: fmt::Debug + Send + Sync {
    /// Prepares these devices of an offer. An error is the reason why the container must not start,
    /// for an operator.
    fn prepare_devices(&self, offer: Arc<Offer>, devices: Vec<DeviceId>) -> Preparing;
}

/// Future of [`Prepare::prepare_devices`].
pub type Preparing = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// True if the kubelet must call `PreStartContainer` before each start of a container.
pub(crate) fn is_wanted(offer: &Offer) -> bool {
    offer.pool.pre_start.mode != PreStartMode::Off
}

/// Options of the plugin for the kubelet.
pub(crate) fn options(offer: &Offer) -> DevicePluginOptions {
    // The kubelet takes the options from `GetDevicePluginOptions` and ignores those of `Register`
    // (pkg/kubelet/cm/devicemanager/manager.go, `PluginConnected`). Both send this value.
    DevicePluginOptions {
        pre_start_required: is_wanted(offer),
        get_preferred_allocation_available: true,
    }
}
