//! Starting a device plugin and waiting until it has settled: it serves, it idles, or it is dead.

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::{Instant, sleep};

use crate::peer::{Desk, Process};

/// For how long nothing new may come before all resources count as registered. Upstream registers
/// them one after the other.
const QUIET: Duration = Duration::from_secs(1);

/// How long a program may run without registering anything before it counts as idle.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What NVIDIA's program says when it has nothing to offer.
const NOTHING: &str = "No devices found. Waiting indefinitely.";

/// What became of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It has registered resources and listed their devices.
    Serves,
    /// It runs and registers nothing.
    Idles,
    /// It ended; its last words.
    Dies(String),
}

/// Waits until a program has settled.
pub(crate) async fn settle(desk: &Desk, process: &mut Process) -> anyhow::Result<Settled> {
    let mut seen = (0, 0);
    let mut since = Instant::now();
    loop {
        if process.ended(LOOK).await.is_ok() {
            let words = last_words(&process.log());
            let words = words.context("it ended without a word")?;
            let folder = desk.folder().display().to_string();
            return Ok(Settled::Dies(words.replace(&folder, "<folder>")));
        }
        let registrations = desk.kubelet.registrations();
        let lists = registrations
            .iter()
            .map(|r| desk.kubelet.device_lists(&r.resource).len());
        let lists: Vec<_> = lists.collect();
        let now = (registrations.len(), lists.iter().sum());
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
        let listed = !lists.is_empty() && lists.iter().all(|&count| count > 0);
        if listed && since.elapsed() > QUIET {
            return Ok(Settled::Serves);
        }
        let nothing = lists.is_empty() && process.log().contains(NOTHING);
        if nothing || since.elapsed() > PATIENCE {
            return Ok(Settled::Idles);
        }
        sleep(LOOK).await;
    }
}

/// What a program said last that was an error, without klog's time and place.
fn last_words(log: &str) -> Option<String> {
    let error = |line: &&str| {
        let mut chars = line.chars();
        let level = chars.next().is_some_and(|c| c == 'E' || c == 'F');
        level && chars.next().is_some_and(|c| c.is_ascii_digit())
    };
    let panic = |line: &&str| line.starts_with("panic:");
    let lines = || {
        log.lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
    };
    let line = lines().find(panic);
    let line = line.or_else(|| lines().rfind(error));
    let line = line.or_else(|| lines().next_back())?;
    let words = match line.split_once("] ") {
        Some((_, words)) if error(&line) => words,
        _ => line,
    };
    Some(words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(
        "I1115 23:00:00.000001 7 main.go:1] fine\nE1115 23:00:00.000002 7 main.go:2] error: no\nI1115 x y] bye\n",
        "error: no"
    )]
    #[case(
        "E1115 23:00:00.000001 7 a.go:1] first\npanic: runtime error\n\ngoroutine 1 [running]:\n",
        "panic: runtime error"
    )]
    #[case("Error: cannot read the config\n", "Error: cannot read the config")]
    fn takes_the_last_error(#[case] log: &str, #[case] words: &str) {
        assert_eq!(last_words(log).unwrap(), words);
    }

    #[test]
    fn says_so_when_nothing_was_said() {
        assert_eq!(last_words("\n"), None);
    }
}
