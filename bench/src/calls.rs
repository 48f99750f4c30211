//! The kubelet's calls, one after the other over one connection, as the kubelet makes them.

use std::time::Duration;

use anyhow::ensure;
use kubelet::api::deviceplugin::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest,
    PreferredAllocationRequest, device_plugin_client::DevicePluginClient,
};
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};

use crate::bed::Running;

/// Calls that are made before the measured ones.
const WARMUP: usize = 50;

/// A connection to a device plugin.
#[derive(Debug)]
pub(crate) struct Client {
    plugin: DevicePluginClient<Channel>,
    devices: Vec<String>,
}

// === impl Client ===

impl Client {
    pub(crate) async fn connect(running: &Running) -> anyhow::Result<Self> {
        let address = format!("unix:{}", running.socket.display());
        let channel = Endpoint::from_shared(address)?.connect().await?;
        Ok(Self {
            plugin: DevicePluginClient::new(channel),
            devices: running.devices.clone(),
        })
    }

    /// How long each of `count` allocations of `size` devices took.
    pub(crate) async fn allocate(
        &mut self,
        size: usize,
        count: usize,
    ) -> anyhow::Result<Vec<Duration>> {
        let request = AllocateRequest {
            container_requests: vec![ContainerAllocateRequest {
                device_ids: self.devices[..size].to_vec(),
            }],
        };
        let mut times = Vec::with_capacity(count);
        for round in 0..WARMUP + count {
            let request = request.clone();
            let began = Instant::now();
            let answer = self.plugin.allocate(request).await?;
            let took = began.elapsed();
            ensure!(answer.get_ref().container_responses.len() == 1, "no answer");
            times.extend((round >= WARMUP).then_some(took));
        }
        Ok(times)
    }

    /// How long each of `count` questions for the best `size` of all devices took.
    pub(crate) async fn prefer(
        &mut self,
        size: usize,
        count: usize,
    ) -> anyhow::Result<Vec<Duration>> {
        let request = PreferredAllocationRequest {
            container_requests: vec![ContainerPreferredAllocationRequest {
                available_device_ids: self.devices.clone(),
                must_include_device_ids: Vec::new(),
                allocation_size: size.try_into()?,
            }],
        };
        let mut times = Vec::with_capacity(count);
        for round in 0..WARMUP + count {
            let request = request.clone();
            let began = Instant::now();
            let answer = self.plugin.get_preferred_allocation(request).await?;
            let took = began.elapsed();
            let chosen = answer.get_ref().container_responses.first();
            let chosen = chosen.map_or(0, |chosen| chosen.device_ids.len());
            ensure!(chosen == size, "{chosen} devices preferred, not {size}");
            times.extend((round >= WARMUP).then_some(took));
        }
        Ok(times)
    }
}
