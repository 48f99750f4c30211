//! A program that runs on a simulated node.

use std::{path::PathBuf, process::ExitStatus, time::Duration};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::Child,
    time::{Instant, timeout},
};

/// A program at work. It is killed when this goes.
#[derive(Debug)]
pub(crate) struct Process {
    pub(super) child: Child,
    /// Its process.
    pub(crate) pid: Pid,
    /// When it was let go.
    pub(crate) began: Instant,
    pub(super) out: PathBuf,
    pub(super) err: PathBuf,
}

// === impl Process ===

impl Process {
    /// Stops it as a kubelet stops a pod; says how long that took.
    ///
    /// # Errors
    /// If it does not end in that time.
    pub(crate) async fn stop(mut self, limit: Duration) -> anyhow::Result<Duration> {
        let began = Instant::now();
        kill_process(self.pid, Signal::TERM)?;
        self.ended(limit).await?;
        Ok(began.elapsed())
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// If it does not end in that time.
    pub(crate) async fn ended(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        let ended = timeout(limit, self.child.wait()).await;
        let log = || format!("the program does not end; it said:\n{}", self.log());
        Ok(ended.ok().with_context(log)??)
    }

    /// What it wrote so far.
    pub(crate) fn log(&self) -> String {
        let texts = [&self.out, &self.err].map(fs_err::read_to_string);
        texts.into_iter().flatten().collect()
    }
}
