//! Why a row is not what one might expect: kept with the rows, so that nothing is lost in silence.

use crate::{
    pair::Pair,
    value::{Ratio, Value, Verdict},
};

/// When something is to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// Ostler needs more.
    Loss,
    /// There is no ratio.
    NoRatio,
}

/// How the name of a row begins, when, and what to say.
const REASONS: &[(&str, When, &str)] = &[
    (
        "start to",
        When::Loss,
        "Ostler starts its probe as a second process and waits for its first report before it \
         registers.",
    ),
    (
        "SIGTERM to exit",
        When::Loss,
        "Ostler ends its streams and waits 300 ms for its connections to finish; the kubelet keeps \
         its own open, so the wait is always a whole one.",
    ),
    (
        "Allocate",
        When::Loss,
        "Ostler hands over the device nodes with every grant; NVIDIA's plugin by default sets \
         one environment variable and leaves the rest to its container runtime.",
    ),
    (
        "memory",
        When::Loss,
        "Ostler runs two processes, so that a driver that hangs or crashes takes nothing else \
         with it.",
    ),
    (
        "idle CPU",
        When::Loss,
        "Ostler reads every card each 10 s (state, temperatures, counters); NVIDIA's plugin only \
         waits for events, and so does not see a card that is lost without one.",
    ),
    (
        "idle wake-ups",
        When::Loss,
        "Ostler's two processes wake by timers: its probe waits for events in turns of half a \
         second, so that a driver that hangs is noticed, and its agent checks its sockets and its \
         registration. NVIDIA's plugin waits for events in turns of five seconds.",
    ),
    (
        "binary, file",
        When::Loss,
        "Ostler's file holds symbols and line tables for readable crash reports; NVIDIA's is \
         built without (`-s -w`).",
    ),
    (
        "binary without the simulator, file",
        When::Loss,
        "Symbols and line tables again.",
    ),
    (
        "XID 79 to Unhealthy",
        When::Loss,
        "In Ostler the event goes through the probe's pipe to the agent, which makes a new \
         snapshot; in NVIDIA's plugin it stays in one process.",
    ),
    (
        "reset to Healthy",
        When::NoRatio,
        "NVIDIA's plugin has no way back: a device stays Unhealthy until the plugin is started \
         again. Ostler looks each 10 s and takes the card back when three looks in a row, over \
         20 s, found it well.",
    ),
    (
        "lost card to Unhealthy",
        When::NoRatio,
        "NVIDIA's plugin listens to events only, and a card that vanishes without one is not \
         noticed. Ostler sees it at its next look, each 10 s.",
    ),
    (
        "lost card back",
        When::NoRatio,
        "NVIDIA's plugin never noticed that the card was lost. Ostler takes it back when three \
         looks in a row, over 20 s, found it well.",
    ),
    (
        "hung card to Unhealthy",
        When::NoRatio,
        "NVIDIA's plugin does not make this call. Ostler looks each 10 s and gives a call 10 s.",
    ),
    (
        "hung card back",
        When::NoRatio,
        "NVIDIA's plugin never noticed that the card hung. Ostler tries the card alone until it \
         answers, and takes it back when three looks in a row, over 20 s, found it well.",
    ),
    (
        "of 10 replicas",
        When::NoRatio,
        "Less is better here too: none is right. NVIDIA's plugin knows a card by one of its \
         replicas and tells of that one only, so that pods still get the broken card by the others.",
    ),
];

/// What is to be said of a row.
pub(super) fn of(name: &str, values: &Pair<Value>, ratio: Option<Ratio>) -> Option<&'static str> {
    values.theirs.as_ref()?;
    let when = match ratio {
        Some(ratio) if ratio.verdict() == Verdict::Loss => When::Loss,
        Some(_) => return None,
        None => When::NoRatio,
    };
    let fits = |(start, on, _): &&(&str, When, &str)| name.starts_with(start) && *on == when;
    REASONS.iter().find(fits).map(|(_, _, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Figures, Unit};

    fn say(name: &str, ours: f64, theirs: f64) -> Option<&'static str> {
        let value = |value| Value::Figures(Figures::one(value, Unit::Seconds));
        let values = Pair {
            ours: value(ours),
            theirs: Some(value(theirs)),
        };
        of(name, &values, Ratio::of(&values.ours, &value(theirs)))
    }

    #[test]
    fn a_loss_has_its_reason_and_a_win_needs_none() {
        let reason = say("SIGTERM to exit", 0.3, 0.01).unwrap();
        assert!(reason.contains("300 ms"), "{reason}");
        assert_eq!(say("SIGTERM to exit", 0.01, 0.3), None);
    }

    #[test]
    fn without_a_peer_there_is_nothing_to_explain() {
        let values = Pair {
            ours: Value::NOT_YET,
            theirs: None,
        };
        assert_eq!(of("reset to Healthy", &values, None), None);
    }
}
