//! `RESULTS.md`.

use super::{Report, table};
use crate::{machine::Machine, value::Verdict};

/// The page.
pub(super) fn write(report: &Report) -> String {
    let mut parts = vec![head(report)];
    if report.machine.peer.is_some() {
        parts.push(caution());
        parts.push("![The same figures as bars](results.svg)\n".to_owned());
        parts.push(summary(report));
    }
    parts.extend(report.sections.iter().map(table::write));
    parts.join("\n")
}

fn head(report: &Report) -> String {
    let Machine {
        commit,
        date,
        cores,
        processor,
        kernel,
        version,
        peer,
    } = &report.machine;
    let (command, beside) = match peer {
        Some(peer) => ("bench/compare", format!(" beside {peer}")),
        None => ("cargo run --release -p bench", String::new()),
    };
    format!(
        "# Results\n\nWritten by `{command}`; what each row means is in [README.md](README.md).\n\n\
         {version}, commit {commit},{beside}. {date}, {cores} cores of {processor}, Linux \
         {kernel}.\n"
    )
}

fn caution() -> String {
    "Both ran in turn, or side by side, on the same simulated node and were asked by the same \
     client. The driver library is simulated and answers in microseconds; a real one is slower, \
     which weighs on whoever asks it more. The machine is small and shared: differences of some \
     percent are noise, and single values of a few microseconds depend on where the scheduler puts \
     two processes. Less is better in every row; where Ostler needs more, it is in **bold** and a \
     note says why.\n"
        .to_owned()
}

/// How many rows are won, lost and the same; and which are lost.
fn summary(report: &Report) -> String {
    let rows = || report.sections.iter().flat_map(|section| &section.rows);
    let of = |verdict| rows().filter(move |row| row.ratio.is_some_and(|r| r.verdict() == verdict));
    let lost: Vec<String> = of(Verdict::Loss)
        .map(|row| row.name.to_lowercase())
        .collect();
    let lost = match lost.is_empty() {
        true => String::new(),
        false => format!(" ({})", lost.join("; ")),
    };
    format!(
        "Of {} rows with a ratio Ostler needs less in {}, about the same in {} and more in {}{lost}.\n",
        rows().filter(|row| row.ratio.is_some()).count(),
        of(Verdict::Win).count(),
        of(Verdict::Same).count(),
        of(Verdict::Loss).count(),
    )
}
