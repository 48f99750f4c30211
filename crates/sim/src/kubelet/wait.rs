//! Waits for conditions on the state of the kubelet.

use std::time::Duration;

use super::{Kubelet, PluginDevices};

/// A condition that was not met within the timeout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not within {timeout:?}: {wanted}; at the end: {last}")]
pub struct WaitError {
    /// Description of the condition.
    pub wanted: String,
    /// Time that was waited.
    pub timeout: Duration,
    /// State at the end of that time.
    pub last: String,
}

// === impl Kubelet ===

impl Kubelet {
    /// Waits until the devices of a resource meet a condition.
    ///
    /// # Errors
    /// If the time is up, with the devices at that moment.
    pub async fn wait_devices(
        &self,
        resource: &str,
        condition: impl Fn(&PluginDevices) -> bool,
        timeout: Duration,
    ) -> Result<PluginDevices, WaitError> {
        let check = || Some(self.resource_devices(resource)).filter(&condition);
        let found = self.retry_until(check, timeout).await;
        found.ok_or_else(|| WaitError {
            wanted: format!("a condition on {resource}"),
            timeout,
            last: self.describe_devices(resource),
        })
    }

    /// Waits until exactly `count` devices of a resource are healthy.
    ///
    /// # Errors
    /// If the time is up, with the devices at that moment.
    pub async fn wait_healthy(
        &self,
        resource: &str,
        count: usize,
        timeout: Duration,
    ) -> Result<PluginDevices, WaitError> {
        let healthy = |devices: &PluginDevices| devices.values().filter(|d| d.healthy).count();
        let found = self.wait_devices(resource, |devices| healthy(devices) == count, timeout);
        found.await.map_err(|error| WaitError {
            wanted: format!("{count} healthy devices of {resource}"),
            ..error
        })
    }

    /// Waits until a condition on the kubelet as a whole is met. The condition is checked after
    /// each change.
    ///
    /// # Errors
    /// If the time is up, with the node's status and the registrations at that moment.
    pub async fn wait_until(
        &self,
        wanted: &str,
        condition: impl Fn(&Self) -> bool,
        timeout: Duration,
    ) -> Result<(), WaitError> {
        let check = || condition(self).then_some(());
        let found = self.retry_until(check, timeout).await;
        found.ok_or_else(|| WaitError {
            wanted: wanted.to_owned(),
            timeout,
            last: format!("{:?}, {:?}", self.node_status(), self.registrations()),
        })
    }

    /// Repeats `check` after each change until it returns a value; `None` if the time is up.
    async fn retry_until<T>(&self, check: impl Fn() -> Option<T>, timeout: Duration) -> Option<T> {
        let mut changed = self.core().changed.subscribe();
        let found = async {
            loop {
                // Marked before the check: a change during the check wakes the loop again.
                changed.mark_unchanged();
                if let Some(found) = check() {
                    return Some(found);
                }
                changed.changed().await.ok()?;
            }
        };
        tokio::time::timeout(timeout, found).await.ok().flatten()
    }

    fn describe_devices(&self, resource: &str) -> String {
        let devices = self.resource_devices(resource);
        if devices.is_empty() {
            return "no devices".to_owned();
        }
        let sick = devices.iter().filter(|(_, device)| !device.healthy);
        let sick: Vec<_> = sick.map(|(id, _)| id.as_str()).collect();
        format!("{} devices, unhealthy {sick:?}", devices.len())
    }
}
