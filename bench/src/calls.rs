//! The kubelet's calls, one after the other over one connection, as the kubelet makes them.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use kubelet_api::deviceplugin::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest,
    PreferredAllocationRequest, device_plugin_client::DevicePluginClient,
};
use tokio::time::{Instant, timeout};
use tonic::transport::{Channel, Endpoint};

use crate::{plan::Plan, running::Running};

/// Calls that are made before the measured ones, where they are quick.
const WARMUP: usize = 50;

/// A connection to a device plugin.
#[derive(Debug)]
pub(crate) struct Client {
    plugin: DevicePluginClient<Channel>,
    devices: Vec<String>,
}

/// What came of questions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// How long each took that was answered.
    pub(crate) times: Vec<Duration>,
    /// Whether one was not answered before the deadline: the program may still be at it.
    pub(crate) stuck: bool,
}

// === impl Client ===

impl Client {
    /// Dials a device plugin.
    ///
    /// # Errors
    /// If it does not answer.
    pub(crate) async fn connect(running: &Running) -> anyhow::Result<Self> {
        let address = format!("unix:{}", running.socket.display());
        let channel = Endpoint::from_shared(address)?.connect().await?;
        Ok(Self {
            plugin: DevicePluginClient::new(channel),
            devices: running.devices.clone(),
        })
    }

    /// How long each of `count` allocations of `size` devices took.
    ///
    /// # Errors
    /// If one is refused.
    pub(crate) async fn allocate(
        &mut self,
        size: usize,
        count: usize,
    ) -> anyhow::Result<Vec<Duration>> {
        let device_ids = self.devices.iter().take(size).cloned().collect();
        let request = AllocateRequest {
            container_requests: vec![ContainerAllocateRequest { device_ids }],
        };
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let request = request.clone();
            let began = Instant::now();
            let answer = self.plugin.allocate(request).await;
            let answer = answer.with_context(|| format!("cannot allocate {size}"))?;
            times.push(began.elapsed());
            ensure!(answer.get_ref().container_responses.len() == 1, "no answer");
        }
        Ok(times)
    }

    /// How long each question for the best `size` of all devices took. A quick program is asked as
    /// often as planned; a slow one as often as the plan's budget allows, at least the plan's least
    /// times if they fit before the deadline.
    ///
    /// # Errors
    /// If a question is refused, or the answer has another size.
    pub(crate) async fn prefer(&mut self, size: usize, plan: Plan) -> anyhow::Result<Asked> {
        let mut asked = Asked::default();
        let began = Instant::now();
        let mut warmups = 0;
        loop {
            let Ok(took) = timeout(plan.deadline, self.prefer_once(size)).await else {
                asked.stuck = true;
                return Ok(asked);
            };
            let took = took?;
            let spent = began.elapsed();
            // A call of milliseconds needs no warm-up.
            if warmups < WARMUP && spent < plan.budget / 10 {
                warmups += 1;
                continue;
            }
            asked.times.push(took);
            let count = asked.times.len();
            let enough = count >= plan.least && spent >= plan.budget;
            if count == plan.calls || enough || spent + took > plan.deadline {
                return Ok(asked);
            }
        }
    }

    /// How long one question took.
    async fn prefer_once(&mut self, size: usize) -> anyhow::Result<Duration> {
        let request = PreferredAllocationRequest {
            container_requests: vec![ContainerPreferredAllocationRequest {
                available_device_ids: self.devices.clone(),
                must_include_device_ids: Vec::new(),
                allocation_size: size.try_into()?,
            }],
        };
        let began = Instant::now();
        let answer = self.plugin.get_preferred_allocation(request).await;
        let took = began.elapsed();
        let answer = answer.with_context(|| format!("cannot ask for the best {size}"))?;
        let chosen = answer.get_ref().container_responses.first();
        let chosen = chosen.map_or(0, |chosen| chosen.device_ids.len());
        ensure!(chosen == size, "{chosen} devices preferred, not {size}");
        Ok(took)
    }
}
