//! Requests of commands to the agent that runs on this node.

use std::{io::Write, path::PathBuf};

use anyhow::{Context, anyhow};
use api::OrderDone;
use config::Config;
use serde::{Serialize, de::DeserializeOwned};
use web::client;

/// Address of the agent.
#[derive(Debug, clap::Args)]
pub(super) struct ControlFlags {
    /// The agent's control socket [default: /run/ostler/control.sock]
    #[arg(long, env = "OSTLER_CONTROL_SOCKET", value_name = "FILE")]
    control_socket: Option<PathBuf>,
}

// === impl ControlFlags ===

impl ControlFlags {
    /// Reads a page of the agent.
    ///
    /// # Errors
    /// No agent answers, or its answer is not of this type.
    pub(super) async fn read_page<T: DeserializeOwned>(&self, page: &str) -> anyhow::Result<T> {
        let body = client::read_page(&self.socket_path(), page)
            .await
            .map_err(advise)?;
        serde_json::from_slice(&body).context("the agent's answer cannot be read")
    }

    /// Sends an order to the agent, and prints the agent's message.
    ///
    /// # Errors
    /// No agent answers, or it refuses the order.
    pub(super) async fn send_order(
        &self,
        action: &str,
        order: &impl Serialize,
    ) -> anyhow::Result<()> {
        let answer = client::post(&self.socket_path(), action, order).await;
        let body = answer.map_err(advise)?;
        let done: OrderDone =
            serde_json::from_slice(&body).context("the agent's answer cannot be read")?;
        writeln!(std::io::stdout(), "{}", done.message)?;
        Ok(())
    }

    fn socket_path(&self) -> PathBuf {
        let socket = self.control_socket.clone();
        socket.unwrap_or_else(|| Config::CONTROL_SOCKET.into())
    }
}

/// Adds a remedy to the error if no agent listens on the socket.
fn advise(error: client::Error) -> anyhow::Error {
    match error {
        client::Error::NoAgent { .. } => {
            anyhow!(
                "{error}: start one with `ostler run`, or name its socket with --control-socket"
            )
        }
        other => other.into(),
    }
}
