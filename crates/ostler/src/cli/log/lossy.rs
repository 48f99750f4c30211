//! A writer that never blocks and never fails. Lines that cannot be queued are dropped and counted.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use tracing_subscriber::fmt::MakeWriter;

/// Highest number of lines that wait to be written.
const QUEUE: usize = 512;

/// Time that the process waits for the last lines when it ends.
const FAREWELL: Duration = Duration::from_millis(200);

/// Writer that puts lines into the queue. Drops a line if the queue is full.
#[derive(Clone, Debug)]
pub(super) struct LossyWriter {
    queue: SyncSender<LogJob>,
    dropped: Arc<AtomicU64>,
}

/// Guard of the log. Its drop waits until every line is written, for 200 ms at most.
#[derive(Debug)]
pub(crate) struct LogGuard(SyncSender<LogJob>);

#[derive(Debug)]
enum LogJob {
    Line(Vec<u8>),
    /// A request to answer when every line before it is written.
    Flush(SyncSender<()>),
}

/// Starts a thread that writes to `output`. If it cannot start, every line is dropped.
pub(super) fn start_writer(output: impl Write + Send + 'static) -> (LossyWriter, LogGuard) {
    let (queue, jobs) = sync_channel(QUEUE);
    let dropped = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&dropped);
    let thread = thread::Builder::new()
        .name("log".to_owned())
        .stack_size(64 << 10)
        .spawn(move || write_jobs(output, &jobs, &counter));
    // An error is ignored: the queue then has no receiver, and every line counts as dropped.
    drop(thread);
    let flush = LogGuard(queue.clone());
    (LossyWriter { queue, dropped }, flush)
}

// === impl LossyWriter ===

impl Write for LossyWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.queue.try_send(LogJob::Line(line.to_vec())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LossyWriter {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

// === impl LogGuard ===

impl Drop for LogGuard {
    fn drop(&mut self) {
        let (done, wait) = sync_channel(1);
        if self.0.try_send(LogJob::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(FAREWELL);
        }
    }
}

fn write_jobs(mut output: impl Write, jobs: &Receiver<LogJob>, dropped: &AtomicU64) {
    while let Ok(job) = jobs.recv() {
        match job {
            LogJob::Line(line) => {
                // There is nowhere left to report a log that cannot be written.
                let _ = output.write_all(&line);
            }
            LogJob::Flush(done) => {
                let _ = done.send(());
            }
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _ = writeln!(
                output,
                "{lost} log lines were dropped: they are not read fast enough"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output whose first write blocks until `open` receives a message.
    struct Valve {
        open: Receiver<()>,
        written: SyncSender<Vec<u8>>,
        is_open: bool,
    }

    impl Write for Valve {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !self.is_open {
                let _ = self.open.recv();
                self.is_open = true;
            }
            let _ = self.written.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_stalls_costs_lines_and_never_the_writer() {
        let (opener, open) = sync_channel(1);
        let (written, lines) = sync_channel(4 * QUEUE);
        let valve = Valve {
            open,
            written,
            is_open: false,
        };
        let (mut log, flush) = start_writer(valve);
        for _ in 0..3 * QUEUE {
            log.write_all(b"line\n").unwrap();
        }
        opener.send(()).unwrap();
        let told = |line: Vec<u8>| String::from_utf8(line).unwrap().contains("dropped");
        let mut lines = std::iter::from_fn(|| lines.recv_timeout(Duration::from_secs(10)).ok());
        assert!(lines.any(told), "the loss is told");
        drop(flush);
    }

    #[test]
    fn an_output_that_fails_is_no_error() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (mut log, flush) = start_writer(Full);
        log.write_all(b"line\n").unwrap();
        drop(flush);
    }
}
