//! Starts of the agents in turn, before they are left alone.

use std::time::Duration;

use crate::{
    pair::Pair,
    peer::{Launch, Site},
    running::Running,
};

/// Starts of each agent that are not measured.
const WARMUPS: usize = 3;

/// The times of one agent's starts.
#[derive(Clone, Debug, Default)]
pub(super) struct Starts {
    registered: Vec<Duration>,
    listed: Vec<Duration>,
}

// === impl Starts ===

impl Starts {
    /// Median time until the kubelet had the registration, in milliseconds.
    pub(super) fn registered(&self) -> Option<f64> {
        median(&self.registered)
    }

    /// Median time until the kubelet had the first list, in milliseconds.
    pub(super) fn listed(&self) -> Option<f64> {
        median(&self.listed)
    }
}

/// Starts each agent `count` times, in turn, after some starts that are not measured.
///
/// # Errors
/// An agent does not serve, or does not end.
pub(super) async fn measure(
    site: &Site,
    agents: &Pair<Launch>,
    count: usize,
) -> anyhow::Result<Pair<Starts>> {
    let mut starts = agents.as_ref().map(|_| Starts::default());
    for round in 0..WARMUPS + count {
        for (agent, starts) in agents.iter().zip(starts.iter_mut()) {
            let running = Running::start(site, agent).await?;
            let start = running.start;
            running.stop().await?;
            if round >= WARMUPS {
                starts.registered.push(start.registered);
                starts.listed.push(start.listed);
            }
        }
    }
    Ok(starts)
}

fn median(times: &[Duration]) -> Option<f64> {
    let mut times = times.to_vec();
    times.sort();
    let middle = times.get(times.len() / 2)?;
    Some(middle.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_start_among_several_does_not_count() {
        let starts = Starts {
            registered: [11, 900, 10, 12, 9].map(Duration::from_millis).to_vec(),
            listed: Vec::new(),
        };
        assert_eq!((starts.registered(), starts.listed()), (Some(11.0), None));
    }
}
