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
    ProbeBackend, ProbeSettings,
    clocks::{PeriodTimer, TierTimers},
    listen::{EventListener, EventWarnings},
};
use crate::{
    CallTable,
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
pub(super) struct DriverThreads {
    orders: orders::Sender<SurveyOrder>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Order to the survey thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SurveyOrder {
    /// Run a survey, and report if something changed.
    Survey,
    /// An event was reported: read the counters since the last reset first, then run a survey.
    CountFirst,
    /// Run a survey and the checks of the tier `working`, and report in any case.
    Refresh,
    /// Close the driver and end the thread.
    Stop,
}

/// State of the survey thread.
struct SurveyThread<B> {
    backend: B,
    lines: mpsc::Sender<Message>,
    orders: orders::Receiver<SurveyOrder>,
    period: Duration,
    /// Timer of the read of all links; `None` if links are not wanted.
    links: Option<PeriodTimer>,
    calls: Arc<CallTable>,
    warnings: EventWarnings,
    last: Option<Report>,
    clocks: TierTimers,
    /// True if an event was reported since the counters were last read after one.
    event_told: bool,
    /// Subject of the last checks: the instance of the driver, and the devices.
    checked: Option<(Option<String>, BTreeSet<DeviceId>)>,
}

/// The other end of a channel is closed: the process is ending.
pub(super) struct ChannelClosed;

// === impl DriverThreads ===

impl DriverThreads {
    pub(super) fn start_threads(
        settings: &ProbeSettings,
        backend: impl ProbeBackend,
        lines: mpsc::Sender<Message>,
        calls: &Arc<CallTable>,
    ) -> io::Result<Self> {
        let (sender, orders) = orders::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        let warnings = EventWarnings::default();
        let events = backend.open_events().filter(|_| settings.configure.events);
        if let Some(events) = events {
            let listener = EventListener {
                events,
                lines: lines.clone(),
                orders: sender.clone(),
                stop: Arc::clone(&stop),
                calls: Arc::clone(calls),
                warnings: warnings.clone(),
            };
            threads.push(spawn_named("events", move || {
                listener.listen_until_stopped()
            })?);
        }
        let configure = &settings.configure;
        let survey = SurveyThread {
            backend,
            lines,
            orders,
            period: configure.period.max(SHORTEST),
            links: configure.links.then(|| {
                let period = settings.links_period;
                PeriodTimer::new(period, Instant::now() + period)
            }),
            calls: Arc::clone(calls),
            warnings,
            last: None,
            clocks: TierTimers::new(&configure.checks, Instant::now()),
            event_told: false,
            checked: None,
        };
        threads.push(spawn_named("survey", move || survey.run_survey())?);
        Ok(Self {
            orders: sender,
            stop,
            threads,
        })
    }

    /// Sends an order to the survey thread.
    pub(super) fn send_order(&self, order: SurveyOrder) {
        // If the survey thread has ended, the main loop sees that by the end of its lines.
        let _ = self.orders.send(order);
    }

    /// Returns true if a thread has ended by itself.
    pub(super) fn is_broken(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Asks both threads to finish their current step and to close the driver.
    pub(super) fn request_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.send_order(SurveyOrder::Stop);
    }

    /// Asks both threads to close the driver, and waits for them until `deadline`.
    pub(super) async fn wait_stopped(&self, deadline: Instant) {
        self.request_stop();
        while Instant::now() < deadline && !self.threads.iter().all(JoinHandle::is_finished) {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

// === impl SurveyThread ===

impl<B: ProbeBackend> SurveyThread<B> {
    fn run_survey(mut self) {
        let mut order = SurveyOrder::Survey;
        while order != SurveyOrder::Stop && self.survey_once(order == SurveyOrder::Refresh).is_ok()
        {
            order = self.wait_order();
        }
    }

    fn survey_once(&mut self, refresh: bool) -> Result<(), ChannelClosed> {
        if refresh {
            self.last = None;
        }
        self.send_counts()?;
        let mut report = self.backend.survey_devices();
        self.send_changed_report(&report)?;
        if self.add_links(&mut report) {
            self.send_changed_report(&report)?;
        }
        if self.backend.add_driver_files(&mut report) {
            self.send_changed_report(&report)?;
        }
        for sample in self.backend.read_samples() {
            self.send_message(Message::Sample(sample))?;
        }
        self.expedite_checks(&report, refresh);
        self.run_due_checks()
    }

    /// Reads the counters since the last reset if an event was reported.
    // Not done by the event thread: two threads could send counters in another order than they read
    // them. A counter that seems to fall means a reset, and a reset ends the effect of the event.
    fn send_counts(&mut self) -> Result<(), ChannelClosed> {
        if !std::mem::take(&mut self.event_told) {
            return Ok(());
        }
        let samples = self.backend.read_samples().into_iter();
        let mut counted = samples.filter(|sample| !sample.since_reset.is_empty());
        counted.try_for_each(|sample| {
            self.send_message(Message::Count(Count {
                device: sample.device,
                since_reset: sample.since_reset,
            }))
        })
    }

    /// Makes checks due whose last results no longer apply: all of them if a device is new or came
    /// back, or if the driver was loaded again; the tier `working` after a refresh.
    fn expedite_checks(&mut self, report: &Report, refresh: bool) {
        let now = Instant::now();
        let instance = report.driver.as_ref().and_then(|d| d.instance.clone());
        let ids = report.devices.iter().map(|device| device.id.clone());
        let seen = (instance, ids.collect::<BTreeSet<_>>());
        let known = self.checked.as_ref();
        if known.is_none_or(|known| known.0 != seen.0 || !seen.1.is_subset(&known.1)) {
            self.clocks.make_due(now);
        } else if refresh {
            self.clocks.hurry_tier(Tier::Working, now);
        }
        self.checked = Some(seen);
    }

    /// Runs the checks that are due.
    fn run_due_checks(&mut self) -> Result<(), ChannelClosed> {
        if !self.has_devices() {
            return Ok(());
        }
        for tier in self.clocks.take_due_tiers(Instant::now()) {
            let Self {
                calls,
                backend,
                links,
                ..
            } = self;
            let links = links.is_some();
            for checkup in calls.during(model::Work::Checks, || backend.read_checkups(tier, links))
            {
                self.send_message(Message::Checkup(checkup))?;
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
        self.clocks.next_due().filter(|_| self.has_devices())
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
        let again = clock.take_due(Instant::now());
        calls.during(model::Work::Links, || backend.add_new_links(report, again))
    }

    /// Sends a report if it differs from the last one.
    fn send_changed_report(&mut self, report: &Report) -> Result<(), ChannelClosed> {
        let mut report = report.clone();
        report.warnings.extend(self.warnings.current());
        report.warnings.sort();
        if self.last.as_ref() == Some(&report) {
            return Ok(());
        }
        self.last = Some(report.clone());
        self.send_message(Message::Report(Box::new(report)))
    }

    fn send_message(&self, message: Message) -> Result<(), ChannelClosed> {
        self.lines.blocking_send(message).map_err(|_| ChannelClosed)
    }

    /// Waits for the next order, and runs due checks meanwhile. Orders that are waiting together
    /// are merged into one.
    fn wait_order(&mut self) -> SurveyOrder {
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
                Err(RecvTimeoutError::Disconnected) => break SurveyOrder::Stop,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if now >= due || now >= glance && (has_problem || self.backend.needs_survey()) {
                break SurveyOrder::Survey;
            }
            if now >= glance {
                glance = now + LOOK_AGAIN;
            }
            if self.run_due_checks().is_err() {
                break SurveyOrder::Stop;
            }
        };
        self.event_told |= order == SurveyOrder::CountFirst;
        while let Ok(next) = self.orders.try_recv() {
            self.event_told |= next == SurveyOrder::CountFirst;
            order = match (order, next) {
                (SurveyOrder::Stop, _) | (_, SurveyOrder::Stop) => SurveyOrder::Stop,
                (SurveyOrder::Refresh, _) | (_, SurveyOrder::Refresh) => SurveyOrder::Refresh,
                _ => SurveyOrder::Survey,
            };
        }
        order
    }
}

fn spawn_named(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK)
        .spawn(work)
}
