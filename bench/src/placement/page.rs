//! `PLACEMENT.md`.

use std::fmt::Write as _;

use super::{Findings, packing::Packing, topology::Topology};

/// The page.
pub(super) fn write(findings: &Findings) -> String {
    let packing = &findings.packing;
    let mut page = format!(
        "# Placement over time

`bench/placement` writes this page, `placement.json` and the plots. Nothing is timed: the containers are made up from a seed, so
the numbers are the same on every machine. {} containers come or go: half of the events are a container that comes, if
it fits, half one that goes. The same ones come and go whoever chooses.

## Shared cards

{} cards, each shared as {} units; a container wants 1 to {}. The units of a container need not be on different cards
(`distinct: off`). {} requests were met.

![Cards that nobody uses, under four policies](placement-packing.svg)

",
        findings.events, packing.cards, packing.units, packing.most, packing.requests
    );
    shared(&mut page, packing);
    page.push_str(
        "
## Whole cards

A container wants 1 to 4 cards. Beside the agent's `topology` stands the search of NVIDIA's plugin, which tries every division of the
free cards into sets and takes the best set of the best division; both get the same scores. It looks at the cards in the order
in which the kubelet names them, which is chance, and takes the first of equal divisions; for a single card it takes the first.

![The scores of containers' cards](placement-topology.svg)

From the same state, how the agent's set of two and more cards scores beside NVIDIA's:

| machine | asked in the order of indices: higher, same, lower | asked in an order of chance: higher, same, lower |
|---|---|---|
",
    );
    for machine in &findings.topology {
        beside(&mut page, machine);
    }
    page.push_str(
        "
Asked in the order of indices, NVIDIA's search gives sets that score the same. Asked in an order of chance, it meets another one of several equal
divisions: its sum over all sets is the same, so a set that scores higher leaves others that score lower.

Over the run, each with the state that its own choices made, the mean score as a part of the best set of that size on the empty machine:

| machine | Ostler | NVIDIA's search |
|---|---|---|
",
    );
    for machine in &findings.topology {
        over_time(&mut page, machine);
    }
    page
}

fn shared(page: &mut String, packing: &Packing) {
    page.push_str("| policy | cards that nobody uses, mean |\n|---|---|\n");
    for course in &packing.courses {
        put(page, &format!("| `{}` | {:.3} |", course.name, course.mean));
    }
    put(
        page,
        &format!(
            "\nFrom the same state, `packed` began more new cards than `first-fit` {} times, as many {} times, and fewer {} times.",
            packing.more, packing.as_many, packing.fewer
        ),
    );
}

fn beside(page: &mut String, machine: &Topology) {
    let cell = |beside: &super::topology::Beside| {
        format!("{}, {}, {}", beside.higher, beside.same, beside.lower)
    };
    let (order, chance) = (cell(&machine.in_order), cell(&machine.by_chance));
    put(
        page,
        &format!("| {} | {order} | {chance} |", machine.profile),
    );
}

fn over_time(page: &mut String, machine: &Topology) {
    let means = machine.courses.iter();
    let means: Vec<String> = means.map(|c| format!("{:.1} %", c.mean * 100.0)).collect();
    put(
        page,
        &format!("| {} | {} |", machine.profile, means.join(" | ")),
    );
}

fn put(page: &mut String, line: &str) {
    writeln!(page, "{line}").expect("a string takes everything");
}
