//! Checker of a probe's lines, for the author of a probe. Each complaint has the line number, the
//! fault and a remedy.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use model::{DeviceId, NodePattern};

use crate::protocol::{Hello, LINE_LIMIT, LINES_LIMIT, Message, Report, VERSION};

/// Time without a line after which the checker warns. Beats are due every 2 s; after 10 s the agent
/// replaces a probe.
const QUIET: Duration = Duration::from_secs(4);

/// Fault in a probe's output, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Line number, counted from 1; 0 for the output as a whole.
    pub line: usize,
    /// True if the agent does not accept the line, false for a warning.
    pub is_error: bool,
    /// Description of the fault.
    pub fault: String,
    /// Advice for the author of the probe.
    pub remedy: String,
}

/// Checker of a probe's lines, given one after the other.
///
/// ```
/// let mut checker = probe::check::LineChecker::new(None);
/// let complaints = checker.check_line(br#"{"type":"beat"}"#, std::time::Duration::ZERO);
/// assert_eq!(complaints[0].fault, "the first line is not `hello`");
/// ```
#[derive(Debug, Default)]
pub struct LineChecker {
    allow: Option<Vec<NodePattern>>,
    lines: usize,
    /// The second in which the last line came, and the lines of that second.
    second: (u64, u32),
    last: Duration,
    last_report: Option<Report>,
    is_refreshed: bool,
    devices: BTreeSet<DeviceId>,
    kinds: BTreeMap<&'static str, usize>,
}

// === impl Complaint ===

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.is_error { "error" } else { "warning" };
        match self.line {
            0 => write!(f, "{severity}: {}", self.fault)?,
            line => write!(f, "line {line}: {severity}: {}", self.fault)?,
        }
        write!(f, "\n  help: {}", self.remedy)
    }
}

// === impl LineChecker ===

impl LineChecker {
    /// Creates a checker. `allow` has the device nodes that the probe may name; `None` allows any.
    pub fn new(allow: Option<Vec<NodePattern>>) -> Self {
        Self {
            allow,
            ..Self::default()
        }
    }

    /// Tells the checker that the probe got the command `refresh`: its next report may repeat the
    /// last.
    pub fn refreshed(&mut self) {
        self.is_refreshed = true;
    }

    /// Checks one line. `at` is the time since the start of the probe.
    pub fn check_line(&mut self, line: &[u8], at: Duration) -> Vec<Complaint> {
        self.lines += 1;
        let mut found = Vec::new();
        if at.saturating_sub(self.last) > QUIET {
            let quiet = at.saturating_sub(self.last).as_secs();
            let fault = format!("nothing was written for {quiet} s");
            let remedy = "write a `beat` every 2 s, from a thread that never waits for the driver; \
                          after 10 s the agent starts the probe anew";
            found.push(self.new_warning(fault, remedy));
        }
        self.last = at;
        found.extend(self.check_rate(at));
        if line.len() >= LINE_LIMIT {
            let fault = format!("it has {} bytes", line.len());
            let remedy = format!("a line has less than {LINE_LIMIT} bytes");
            found.push(self.new_error(fault, remedy));
            return found;
        }
        let message = match Message::parse_line(line) {
            Ok(message) => message,
            Err(error) => {
                let remedy = "write one JSON object per line, as docs/probe-protocol.md shows; the schema \
                              beside it has every field";
                found.push(self.new_error(error.to_string(), remedy));
                return found;
            }
        };
        if self.lines == 1 && !matches!(message, Some(Message::Hello(_))) {
            let remedy = format!(
                "begin with {{\"type\":\"hello\",\"protocol\":{VERSION},\"probe\":NAME,\"version\":TEXT}}"
            );
            found.push(self.new_error("the first line is not `hello`", remedy));
        }
        match message {
            None => {
                let remedy = "look the `type` up; the agent ignores those that it does not know";
                found.push(self.new_warning("the type of the line is not known", remedy));
            }
            Some(message) => self.message(message, &mut found),
        }
        found
    }

    /// Reports the first line above the limit of a second.
    fn check_rate(&mut self, at: Duration) -> Option<Complaint> {
        let (second, lines) = &mut self.second;
        if *second != at.as_secs() {
            (*second, *lines) = (at.as_secs(), 0);
        }
        *lines += 1;
        (*lines == LINES_LIMIT + 1).then(|| {
            let fault = format!("more than {LINES_LIMIT} lines within a second");
            let remedy = "write a sample of a device once a period, and a report when something changed; \
                          the agent ends a probe that floods it";
            self.new_error(fault, remedy)
        })
    }

    /// Returns true if the probe wrote too many lines within the last second: the agent would have ended it.
    pub fn is_flooded(&self) -> bool {
        self.second.1 > LINES_LIMIT
    }

    /// Checks the output as a whole, after the last line: reports and beats must not be missing.
    pub fn check_end(&self) -> Vec<Complaint> {
        let missing = [
            ("report", "report the devices, also where there are none"),
            ("beat", "write a `beat` every 2 s"),
        ];
        let missing = missing
            .into_iter()
            .filter(|(kind, _)| !self.kinds.contains_key(kind));
        let missing = missing.map(|(kind, remedy)| Complaint {
            line: 0,
            is_error: true,
            fault: format!("there was no `{kind}`"),
            remedy: remedy.to_owned(),
        });
        missing.collect()
    }

    /// Returns the number of lines of each type, as a text.
    pub fn summarize_lines(&self) -> String {
        let kinds: Vec<String> = self
            .kinds
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        format!("{} lines: {}", self.lines, kinds.join(", "))
    }

    fn message(&mut self, message: Message, found: &mut Vec<Complaint>) {
        let (kind, device) = match message {
            Message::Hello(hello) => {
                self.hello(&hello, found);
                ("hello", None)
            }
            Message::Report(report) => {
                self.check_report(*report, found);
                ("report", None)
            }
            Message::Sample(sample) => ("sample", Some(sample.device)),
            Message::Checkup(checkup) => ("checkup", Some(checkup.device)),
            Message::Event(event) => ("event", Some(event.device)),
            Message::Count(count) => ("count", Some(count.device)),
            Message::Beat(_) => ("beat", None),
        };
        *self.kinds.entry(kind).or_default() += 1;
        if let Some(device) = device.filter(|device| !self.devices.contains(device)) {
            let fault = format!("a `{kind}` of `{device}`, which no report has");
            found.push(self.new_error(fault, "report the device first, under the same id"));
        }
    }

    fn hello(&self, hello: &Hello, found: &mut Vec<Complaint>) {
        if self.lines > 1 {
            found.push(self.new_warning("a second `hello`", "write it once, first"));
        }
        if hello.protocol != VERSION {
            let fault = format!("it speaks version {} of the protocol", hello.protocol);
            let remedy = format!("this agent speaks version {VERSION}: see docs/probe-protocol.md");
            found.push(self.new_error(fault, remedy));
        }
    }

    fn check_report(&mut self, report: Report, found: &mut Vec<Complaint>) {
        for warning in &report.warnings {
            let remedy = "the agent shows it; a device that is not understood is left out";
            found.push(self.new_warning(warning.clone(), remedy));
        }
        let mut ids = BTreeSet::new();
        for device in &report.devices {
            let id = &device.id;
            if id.as_str().is_empty() || !ids.insert(id.clone()) {
                let fault = format!("the id `{id}` is empty, or of two devices");
                found.push(self.new_error(
                    fault,
                    "give each device the vendor's own id, for ever the same",
                ));
            }
            if device.nodes.is_empty()
                && device.bool_attribute(&model::names::INTEGRATED) != Some(true)
            {
                let fault = format!("`{id}` has no device nodes");
                found.push(
                    self.new_warning(fault, "name all nodes that a container needs, in `nodes`"),
                );
            }
            let allow = self.allow.as_deref().unwrap_or_default();
            let is_foreign = |path: &&str| !allow.iter().any(|pattern| pattern.matches_path(path));
            let mut paths = device.nodes.iter().map(|node| node.path.as_str());
            if let Some(path) = paths.find(is_foreign).filter(|_| self.allow.is_some()) {
                let fault = format!("`{id}` names {path}, which is not allowed");
                found.push(
                    self.new_error(fault, "add it to `allow` of the backend, or leave it out"),
                );
            }
        }
        if self.last_report.as_ref() == Some(&report) && !self.is_refreshed {
            let remedy = "write a report when something in it changed, or after `refresh`";
            found.push(self.new_warning("the report says nothing new", remedy));
        }
        self.is_refreshed = false;
        self.devices.extend(ids);
        self.last_report = Some(report);
    }

    fn new_error(&self, fault: impl Into<String>, remedy: impl Into<String>) -> Complaint {
        Complaint {
            line: self.lines,
            is_error: true,
            fault: fault.into(),
            remedy: remedy.into(),
        }
    }

    fn new_warning(&self, fault: impl Into<String>, remedy: impl Into<String>) -> Complaint {
        Complaint {
            is_error: false,
            ..self.new_error(fault, remedy)
        }
    }
}

#[cfg(test)]
mod tests;
