//! The user's command that prepares a device: with its own process group, a limit, and the end of
//! its output kept for the one who reads why a start failed.

use std::{pin::pin, process::Stdio, time::Duration};

use model::{Device, ResourceName};
use probe::supervisor::Children;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
    time::{Instant, timeout, timeout_at},
};

/// The most of the output that is kept.
const TAIL: usize = 500;
/// The most of the output that is read.
const MOST: u64 = 1 << 20;
/// How long output may come after the end: a process that was left behind may hold it open.
const AFTER: Duration = Duration::from_millis(200);

/// One run of a command.
#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    pub(super) command: &'a [String],
    /// The variables that say what it is for.
    pub(super) about: Vec<(&'static str, String)>,
    pub(super) deadline: Instant,
}

/// A process that nobody but we may reap. One that nobody waits for any more is killed, with what
/// it started.
#[derive(Debug)]
struct Reserved<'a> {
    children: &'a Children,
    pid: u32,
    ended: bool,
}

// === impl Call ===

impl Call<'_> {
    /// Runs the command; why that failed, for a person.
    pub(super) async fn run(self, children: &Children) -> Result<(), String> {
        let Some((program, args)) = self.command.split_first() else {
            return Ok(());
        };
        let mut child = self
            .start(program, args)
            .map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        // Before anybody else gets to run.
        let mut reserved = child.id().map(|pid| Reserved::new(children, pid));
        let mut reading = pin!(read(
            child.stdout.take().map(|out| out.take(MOST)),
            child.stderr.take().map(|out| out.take(MOST)),
        ));
        let mut output = None;
        let ended = timeout_at(self.deadline, async {
            tokio::select! {
                text = &mut reading => output = Some(text),
                status = child.wait() => return status,
            }
            child.wait().await
        });
        let ended = ended.await;
        match (&ended, &mut reserved) {
            (Err(_), Some(reserved)) => reserved.kill(),
            (Ok(_), Some(reserved)) => reserved.ended = true,
            (_, None) => {}
        }
        let output = match output {
            Some(output) => output,
            None => timeout(AFTER, reading).await.unwrap_or_default(),
        };
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("`{program}` ended with {status}{output}")),
            Ok(Err(error)) => Err(format!("`{program}` cannot be waited for: {error}")),
            Err(_) => Err(format!("`{program}` did not end in time{output}")),
        }
    }

    fn start(&self, program: &str, args: &[String]) -> std::io::Result<Child> {
        Command::new(program)
            .args(args)
            .envs(self.about.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }
}

// === impl Reserved ===

impl<'a> Reserved<'a> {
    fn new(children: &'a Children, pid: u32) -> Self {
        children.add(pid);
        Self {
            children,
            pid,
            ended: false,
        }
    }

    fn kill(&mut self) {
        self.ended = true;
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
        }
        self.children.remove(self.pid);
    }
}

/// What a command is told of its device.
pub(super) fn about(device: &Device, resource: &ResourceName) -> Vec<(&'static str, String)> {
    let pci = device.pci.map(|pci| pci.to_string());
    let index = device.index.map(|index| index.to_string());
    vec![
        ("OSTLER_DEVICE", device.id.to_string()),
        ("OSTLER_DEVICE_INDEX", index.unwrap_or_default()),
        ("OSTLER_DEVICE_PCI", pci.unwrap_or_default()),
        ("OSTLER_RESOURCE", resource.to_string()),
    ]
}

/// The end of both outputs, as `: text`.
async fn read(
    out: Option<impl AsyncReadExt + Unpin>,
    err: Option<impl AsyncReadExt + Unpin>,
) -> String {
    async fn all(stream: Option<impl AsyncReadExt + Unpin>) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What was read until then counts.
            let _ = stream.read_to_end(&mut bytes).await;
        }
        bytes
    }
    let (out, err) = tokio::join!(all(out), all(err));
    let text = [out, err].concat();
    let text = String::from_utf8_lossy(&text).replace(char::is_control, " ");
    let text = text.trim();
    let start = text.char_indices().rev().nth(TAIL).map_or(0, |(at, _)| at);
    match &text[start..] {
        "" => String::new(),
        tail => format!(": {tail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn try_run(script: &str, limit: Duration) -> Result<(), String> {
        let command = ["/bin/sh", "-c", script].map(str::to_owned);
        let device = Device {
            pci: Some("0000:3b:00.0".parse().unwrap()),
            ..Device::card_of("nvidia", "GPU-1".to_owned(), "A100")
        };
        run(&command, &device, limit).await
    }

    async fn run(command: &[String], device: &Device, limit: Duration) -> Result<(), String> {
        let call = Call {
            command,
            about: about(device, &"nvidia.com/gpu".parse().unwrap()),
            deadline: Instant::now() + limit,
        };
        call.run(&Children::default()).await
    }

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn the_device_is_in_its_environment() {
        let test = "test $OSTLER_DEVICE_PCI = 0000:3b:00.0 && test $OSTLER_DEVICE = GPU-1 && \
                    test $OSTLER_RESOURCE = nvidia.com/gpu && test -z \"$OSTLER_DEVICE_INDEX\"";
        assert_eq!(try_run(test, LONG).await, Ok(()));
    }

    #[tokio::test]
    async fn a_failure_is_told_with_what_it_printed() {
        let error = try_run("echo in use by 7; exit 3", LONG).await.unwrap_err();
        assert_eq!(error, "`/bin/sh` ended with exit status: 3: in use by 7");
        let command = ["/no/such/program".to_owned()];
        let device = Device::card_of("nvidia", "GPU-1".to_owned(), "A100");
        let error = run(&command, &device, LONG).await;
        assert!(error.unwrap_err().contains("cannot be started"));
    }

    #[tokio::test]
    async fn one_that_hangs_is_killed_with_what_it_started() {
        let error = try_run("sleep 1000 & sleep 1000", Duration::from_millis(100)).await;
        assert!(error.unwrap_err().contains("did not end in time"));
    }
}
