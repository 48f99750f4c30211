//! Waiting for something to become true of the kubelet.

use std::time::Duration;

use super::{Devices, Kubelet};

/// A condition that did not come true in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not within {timeout:?}: {wanted}; at the end: {last}")]
pub struct WaitError {
    /// What was waited for.
    pub wanted: String,
    /// For how long.
    pub timeout: Duration,
    /// What was there instead.
    pub last: String,
}

// === impl Kubelet ===

impl Kubelet {
    /// Waits until the devices of a resource fulfil a condition.
    ///
    /// # Errors
    /// When the time is up, with the devices at that moment.
    pub async fn wait(
        &self,
        resource: &str,
        condition: impl Fn(&Devices) -> bool,
        timeout: Duration,
    ) -> Result<Devices, WaitError> {
        let check = || Some(self.devices(resource)).filter(&condition);
        let found = self.until(check, timeout).await;
        found.ok_or_else(|| WaitError {
            wanted: format!("a condition on {resource}"),
            timeout,
            last: self.describe(resource),
        })
    }

    /// Waits until exactly so many devices of a resource are healthy.
    ///
    /// # Errors
    /// When the time is up, with the devices at that moment.
    pub async fn wait_healthy(
        &self,
        resource: &str,
        count: usize,
        timeout: Duration,
    ) -> Result<Devices, WaitError> {
        let healthy = |devices: &Devices| devices.values().filter(|d| d.healthy).count();
        let found = self.wait(resource, |devices| healthy(devices) == count, timeout);
        found.await.map_err(|error| WaitError {
            wanted: format!("{count} healthy devices of {resource}"),
            ..error
        })
    }

    /// Waits until something holds of the kubelet as a whole; it is looked at after each change.
    ///
    /// # Errors
    /// When the time is up, with the node's status and the registrations at that moment.
    pub async fn wait_until(
        &self,
        wanted: &str,
        condition: impl Fn(&Self) -> bool,
        timeout: Duration,
    ) -> Result<(), WaitError> {
        let check = || condition(self).then_some(());
        let found = self.until(check, timeout).await;
        found.ok_or_else(|| WaitError {
            wanted: wanted.to_owned(),
            timeout,
            last: format!("{:?}, {:?}", self.node(), self.registrations()),
        })
    }

    /// The first result that is there, looked for after each change.
    async fn until<T>(&self, check: impl Fn() -> Option<T>, timeout: Duration) -> Option<T> {
        let mut changed = self.core().changed.subscribe();
        let found = async {
            loop {
                changed.mark_unchanged();
                if let Some(found) = check() {
                    return Some(found);
                }
                changed.changed().await.ok()?;
            }
        };
        tokio::time::timeout(timeout, found).await.ok().flatten()
    }

    fn describe(&self, resource: &str) -> String {
        let devices = self.devices(resource);
        if devices.is_empty() {
            return "no devices".to_owned();
        }
        let sick = devices.iter().filter(|(_, device)| !device.healthy);
        let sick: Vec<_> = sick.map(|(id, _)| id.as_str()).collect();
        format!("{} devices, unhealthy {sick:?}", devices.len())
    }
}
