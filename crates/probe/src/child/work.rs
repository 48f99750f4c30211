//! The two threads that call the driver, and the survey.

use std::{
    collections::BTreeSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self as orders, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use model::{DeviceId, Tier};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use super::{
    Backend, Settings,
    clocks::{Clock, Clocks},
    listen::{Listener, Warnings},
};
use crate::{
    Calls,
    protocol::{Count, Message, Report},
};

/// Time between two surveys while there is no driver, and between two polls for changes otherwise.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Lower bound of the time between two surveys.
const SHORTEST: Duration = Duration::from_millis(1);

/// Stack size of the threads. The driver's own code runs on these stacks.
const STACK: usize = 1 << 20;

/// Handles of the running threads.
#[derive(Debug)]
pub(super) struct Work {
    orders: orders::Sender<Order>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Order to the survey thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Run a survey, and report if something changed.
    Look,
    /// An event was reported: read the counters since the last reset first, then run a survey.
    Count,
    /// Run a survey and the checks of the tier `working`, and report in any case.
    Refresh,
    /// Close the driver and end the thread.
    Stop,
}

/// State of the survey thread.
struct Survey<B> {
    backend: B,
    lines: mpsc::Sender<Message>,
    orders: orders::Receiver<Order>,
    period: Duration,
    /// Timer of the read of all links; `None` if links are not wanted.
    links: Option<Clock>,
    calls: Arc<Calls>,
    warnings: Warnings,
    last: Option<Report>,
    clocks: Clocks,
    /// True if an event was reported since the counters were last read after one.
    event_told: bool,
    /// Subject of the last checks: the instance of the driver, and the devices.
    checked: Option<(Option<String>, BTreeSet<DeviceId>)>,
}

/// The other end of a channel is closed: the process is ending.
pub(super) struct Gone;

// === impl Work ===

impl Work {
    pub(super) fn start(
        settings: &Settings,
        backend: impl Backend,
        lines: mpsc::Sender<Message>,
        calls: &Arc<Calls>,
    ) -> io::Result<Self> {
        let (sender, orders) = orders::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        let warnings = Warnings::default();
        let events = backend.events().filter(|_| settings.configure.events);
        if let Some(events) = events {
            let listener = Listener {
                events,
                lines: lines.clone(),
                orders: sender.clone(),
                stop: Arc::clone(&stop),
                calls: Arc::clone(calls),
                warnings: warnings.clone(),
            };
            threads.push(named("events", move || listener.run())?);
        }
        let configure = &settings.configure;
        let survey = Survey {
            backend,
            lines,
            orders,
            period: configure.period.max(SHORTEST),
            links: configure.links.then(|| {
                let period = settings.links_period;
                Clock::new(period, Instant::now() + period)
            }),
            calls: Arc::clone(calls),
            warnings,
            last: None,
            clocks: Clocks::new(&configure.checks, Instant::now()),
            event_told: false,
            checked: None,
        };
        threads.push(named("survey", move || survey.run())?);
        Ok(Self {
            orders: sender,
            stop,
            threads,
        })
    }

    /// Sends an order to the survey thread.
    pub(super) fn order(&self, order: Order) {
        // If the survey thread has ended, the main loop sees that by the end of its lines.
        let _ = self.orders.send(order);
    }

    /// Returns true if a thread has ended by itself.
    pub(super) fn is_broken(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Asks both threads to finish their current step and to close the driver.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.order(Order::Stop);
    }

    /// Asks both threads to close the driver, and waits for them until `deadline`.
    pub(super) async fn finish(&self, deadline: Instant) {
        self.stop();
        while Instant::now() < deadline && !self.threads.iter().all(JoinHandle::is_finished) {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

// === impl Survey ===

impl<B: Backend> Survey<B> {
    fn run(mut self) {
        let mut order = Order::Look;
        while order != Order::Stop && self.look(order == Order::Refresh).is_ok() {
            order = self.next();
        }
    }

    fn look(&mut self, refresh: bool) -> Result<(), Gone> {
        if refresh {
            self.last = None;
        }
        self.count()?;
        let mut report = self.backend.survey();
        self.report(&report)?;
        if self.add_links(&mut report) {
            self.report(&report)?;
        }
        if self.backend.files(&mut report) {
            self.report(&report)?;
        }
        for sample in self.backend.samples() {
            self.send(Message::Sample(sample))?;
        }
        self.hurry(&report, refresh);
        self.check()
    }

    /// Reads the counters since the last reset if an event was reported.
    // Not done by the event thread: two threads could send counters in another order than they read
    // them. A counter that seems to fall means a reset, and a reset ends the effect of the event.
    fn count(&mut self) -> Result<(), Gone> {
        if !std::mem::take(&mut self.event_told) {
            return Ok(());
        }
        let samples = self.backend.samples().into_iter();
        let mut counted = samples.filter(|sample| !sample.since_reset.is_empty());
        counted.try_for_each(|sample| {
            self.send(Message::Count(Count {
                device: sample.device,
                since_reset: sample.since_reset,
            }))
        })
    }

    /// Makes checks due whose last results no longer apply: all of them if a device is new or came
    /// back, or if the driver was loaded again; the tier `working` after a refresh.
    fn hurry(&mut self, report: &Report, refresh: bool) {
        let now = Instant::now();
        let instance = report.driver.as_ref().and_then(|d| d.instance.clone());
        let ids = report.devices.iter().map(|device| device.id.clone());
        let seen = (instance, ids.collect::<BTreeSet<_>>());
        let known = self.checked.as_ref();
        if known.is_none_or(|known| known.0 != seen.0 || !seen.1.is_subset(&known.1)) {
            self.clocks.hurry(now);
        } else if refresh {
            self.clocks.hurry_tier(Tier::Working, now);
        }
        self.checked = Some(seen);
    }

    /// Runs the checks that are due.
    fn check(&mut self) -> Result<(), Gone> {
        if !self.has_devices() {
            return Ok(());
        }
        for tier in self.clocks.take(Instant::now()) {
            let Self {
                calls,
                backend,
                links,
                ..
            } = self;
            let links = links.is_some();
            for checkup in calls.during(model::Work::Checks, || backend.checkups(tier, links)) {
                self.send(Message::Checkup(checkup))?;
            }
        }
        Ok(())
    }

    fn has_devices(&self) -> bool {
        let last = self.last.as_ref();
        last.is_some_and(|last| last.problem.is_none() && !last.devices.is_empty())
    }

    /// Returns the time of the next checks; `None` if there is no device to check.
    fn next_check(&self) -> Option<Instant> {
        self.clocks.next().filter(|_| self.has_devices())
    }

    /// Adds new links, or reads all of them if that is due. Returns false if the driver was not
    /// asked.
    fn add_links(&mut self, report: &mut Report) -> bool {
        let Self {
            calls,
            backend,
            links: Some(clock),
            ..
        } = self
        else {
            return false;
        };
        let again = clock.take(Instant::now());
        calls.during(model::Work::Links, || backend.links(report, again))
    }

    /// Sends a report if it differs from the last one.
    fn report(&mut self, report: &Report) -> Result<(), Gone> {
        let mut report = report.clone();
        report.warnings.extend(self.warnings.current());
        report.warnings.sort();
        if self.last.as_ref() == Some(&report) {
            return Ok(());
        }
        self.last = Some(report.clone());
        self.send(Message::Report(Box::new(report)))
    }

    fn send(&self, message: Message) -> Result<(), Gone> {
        self.lines.blocking_send(message).map_err(|_| Gone)
    }

    /// Waits for the next order, and runs due checks meanwhile. Orders that are waiting together
    /// are merged into one.
    fn next(&mut self) -> Order {
        let has_problem = self
            .last
            .as_ref()
            .is_some_and(|last| last.problem.is_some());
        let due = Instant::now() + self.period;
        let mut glance = Instant::now() + LOOK_AGAIN;
        let mut order = loop {
            let wake = self.next_check().unwrap_or(due).min(due).min(glance);
            let left = wake.saturating_duration_since(Instant::now());
            match self.orders.recv_timeout(left) {
                Ok(order) => break order,
                Err(RecvTimeoutError::Disconnected) => break Order::Stop,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if now >= due || now >= glance && (has_problem || self.backend.glance()) {
                break Order::Look;
            }
            if now >= glance {
                glance = now + LOOK_AGAIN;
            }
            if self.check().is_err() {
                break Order::Stop;
            }
        };
        self.event_told |= order == Order::Count;
        while let Ok(next) = self.orders.try_recv() {
            self.event_told |= next == Order::Count;
            order = match (order, next) {
                (Order::Stop, _) | (_, Order::Stop) => Order::Stop,
                (Order::Refresh, _) | (_, Order::Refresh) => Order::Refresh,
                _ => Order::Look,
            };
        }
        order
    }
}

fn named(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK)
        .spawn(work)
}
