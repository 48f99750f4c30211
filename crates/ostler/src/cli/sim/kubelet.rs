//! `ostler sim kubelet`: the simulated kubelet in a terminal, with commands on standard input.

mod command;
mod news;

use std::{
    io::{self, BufRead, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use sim::kubelet::{Kubelet, KubeletSettings};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    time::interval,
};

use super::create::{program_name, quoted};

pub(in crate::cli) use self::{
    command::{HELP, KubeletCommand},
    news::KubeletEvents,
};

/// Interval of checks for events to print.
const LOOK: Duration = Duration::from_millis(50);

/// Run a simulated kubelet in this terminal, until Ctrl-C.
///
/// It serves registration on kubelet.sock in its folder, and prints registrations, lists of devices,
/// allocations, and breaches of the contract by a plugin. Like the real one it deletes all sockets
/// in its folder when it starts.
#[derive(Debug, clap::Args)]
#[command(after_long_help = HELP)]
pub(in crate::cli) struct SimKubeletArgs {
    /// The device plugin folder; made if it is missing
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// Serve the pod resources API on this socket
    #[arg(long, value_name = "FILE")]
    pod_resources: Option<PathBuf>,
}

/// Signals that end a command.
#[derive(Debug)]
pub(in crate::cli) struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

// === impl SimKubeletArgs ===

impl SimKubeletArgs {
    pub(super) async fn run_kubelet(self) -> anyhow::Result<()> {
        let mut ends = EndSignals::new()?;
        refuse_used_folder(&self.dir)?;
        let mut settings = KubeletSettings::new(&self.dir);
        settings.pod_resources = self.pod_resources.clone();
        let kubelet = Kubelet::start_kubelet(settings).await?;
        let mut out = anstream::stdout();
        writeln!(out, "{}", self.kubelet_usage()?)?;
        let mut news = KubeletEvents::new(kubelet.clone());
        let mut commands = read_input_lines()?;
        let mut ticks = interval(LOOK);
        loop {
            tokio::select! {
                () = ends.wait_for_signal() => break,
                Some(line) = commands.recv() => {
                    if !run_line(&kubelet, &line, &mut out).await? {
                        break;
                    }
                }
                _ = ticks.tick() => {}
            }
            for line in news.take_lines() {
                writeln!(out, "{line}")?;
            }
        }
        kubelet.stop_kubelet().await;
        Ok(())
    }

    /// Text for the start: the socket, and the flags of an agent for this kubelet.
    fn kubelet_usage(&self) -> io::Result<String> {
        let dir = fs_err::canonicalize(&self.dir)?;
        let mut flags = format!("--kubelet-dir {}", quoted(&dir));
        if let Some(socket) = &self.pod_resources {
            let socket = quoted(&fs_err::canonicalize(socket)?);
            flags += &format!(" --pod-resources-socket {socket}");
        }
        let socket = dir.join("kubelet.sock");
        let socket = socket.display();
        let ostler = program_name();
        Ok(format!(
            "the kubelet listens on {socket}\n\
             an agent for it: {ostler} run {flags} …\n\
             type `help` for the commands; Ctrl-C ends it"
        ))
    }
}

// === impl EndSignals ===

impl EndSignals {
    /// Begins to listen. From now on the signals do not end the process by themselves.
    pub(in crate::cli) fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for one of the signals. Cancel safe.
    pub(in crate::cli) async fn wait_for_signal(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// Runs a typed line and prints the result. Returns false for the command `quit`.
///
/// # Errors
/// The output is closed. An error of the command is printed and is no error here.
pub(in crate::cli) async fn run_line(
    kubelet: &Kubelet,
    line: &str,
    out: &mut impl Write,
) -> io::Result<bool> {
    if line.trim().is_empty() {
        return Ok(true);
    }
    match line.parse() {
        Ok(KubeletCommand::Quit) => return Ok(false),
        Ok(command) => match command.run_on_kubelet(kubelet).await {
            Ok(text) => write!(out, "{text}")?,
            Err(error) => writeln!(out, "{error:#}")?,
        },
        Err(error) => writeln!(out, "{error}")?,
    }
    Ok(true)
}

/// Reads the lines of standard input on a thread of its own: a blocking read cannot be cancelled,
/// and must not keep the program from ending.
pub(in crate::cli) fn read_input_lines() -> io::Result<mpsc::Receiver<String>> {
    let (send, lines) = mpsc::channel(16);
    let read = move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("input".into())
        .spawn(read)?;
    Ok(lines)
}

/// Refuses a folder in which a kubelet listens. A kubelet that starts deletes all sockets of the
/// folder (pkg/kubelet/cm/devicemanager/manager.go, `CleanupPluginDirectory`), and so does ours.
fn refuse_used_folder(dir: &Path) -> anyhow::Result<()> {
    // The file alone is no evidence: a kubelet that was killed leaves it behind.
    if UnixStream::connect(dir.join("kubelet.sock")).is_ok() {
        bail!(
            "a kubelet listens in {} already; choose another folder with --dir",
            dir.display()
        );
    }
    Ok(())
}
