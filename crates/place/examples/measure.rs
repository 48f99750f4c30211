//! Measures the time of placement. Every call is cold: it prepares everything and keeps nothing.
//! Each call runs five times, and all runs count. Times are CPU time, so that other processes do
//! not disturb them; `wall max` is the longest elapsed time.
//! Run it with `cargo run --release -p place --example measure`.

#[expect(dead_code, reason = "the tests use the other machines")]
#[path = "../src/machines.rs"]
mod machines;

use std::{io::Write, time::Duration};

use config::{Placement, Policy, Pool};
use model::Device;
use place::{Matrix, find_best_set, prefer};
use pool::Offer;
use rustix::time::{ClockId, clock_gettime};

/// Times of many calls.
#[derive(Default)]
struct Times {
    /// CPU time of each call.
    cpu: Vec<Duration>,
    /// Longest elapsed time.
    wall: Duration,
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{:<48} {:>5} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "microseconds", "calls", "min", "p50", "p99", "max", "wall max"
    )?;
    for (name, cards) in [
        ("hgx2-v100", machines::hgx2()),
        ("two DGX-1 V100 in one", machines::volta_twice()),
        (
            "16 of which nothing is known",
            machines::cards(16, |_, _| (None, 0, false)),
        ),
    ] {
        let offer = offer(cards, 1, Policy::Topology);
        row(
            &mut out,
            &format!("{name}, 200 sets, every size"),
            &sets(&offer, 200),
        )?;
        row(
            &mut out,
            &format!("{name}, all 16, every size"),
            &all(&offer, 20),
        )?;
    }
    for size in 2..16 {
        let name = format!("random scores, {size} of 16");
        row(&mut out, &name, &random(size, &[], 30))?;
    }
    for size in 3..8 {
        let name = format!("random scores, {size} of 16, two required");
        row(&mut out, &name, &random(size, &[3, 12], 30))?;
    }
    let policies = [
        Policy::Topology,
        Policy::Packed,
        Policy::Spread,
        Policy::FirstFit,
        Policy::BestFit,
        Policy::RoundRobin,
        Policy::Weighted,
    ];
    for replicas in [16, 256] {
        for policy in policies {
            let offer = offer(machines::hgx2(), replicas, policy);
            let name = format!("{} ids on 16, {policy:?}", replicas * 16);
            row(&mut out, &name, &shared(&offer, 400 / (replicas / 8)))?;
        }
    }
    for len in [32, 64] {
        let name = format!("random scores, every size of {len}");
        row(&mut out, &name, &beyond(len))?;
    }
    Ok(())
}

fn offer(cards: Vec<Device>, replicas: usize, policy: Policy) -> Offer {
    let placement = Placement {
        policy,
        ..Placement::default()
    };
    let pool = Pool {
        placement,
        ..Pool::of_all_devices("gpu", "nvidia.com/gpu")
    };
    machines::offer(cards, replicas, pool)
}

/// Measures random sets of available ids, each with every size.
fn sets(offer: &Offer, count: usize) -> Times {
    let mut dice = Dice(7);
    let mut times = Times::default();
    for _ in 0..count {
        let want = 1 + dice.below(16);
        let mut ids: Vec<String> = offer.units.iter().map(|u| u.id.to_string()).collect();
        while ids.len() > want {
            ids.swap_remove(dice.below(ids.len()));
        }
        for size in 1..=want {
            times.of(|| prefer(offer, &ids, &[], size));
        }
    }
    times
}

fn all(offer: &Offer, rounds: usize) -> Times {
    let ids: Vec<String> = offer.units.iter().map(|u| u.id.to_string()).collect();
    let mut times = Times::default();
    for _ in 0..rounds {
        for size in 1..=ids.len() {
            times.of(|| prefer(offer, &ids, &[], size));
        }
    }
    times
}

fn random(size: usize, required: &[usize], rounds: usize) -> Times {
    let mut dice = Dice(11);
    let mut times = Times::default();
    for _ in 0..rounds {
        let matrix = scores(&mut dice, 16);
        times.of(|| find_best_set(&matrix, required, size));
    }
    times
}

fn beyond(len: usize) -> Times {
    let mut dice = Dice(13);
    let mut times = Times::default();
    for size in 2..len {
        let matrix = scores(&mut dice, len);
        times.of(|| find_best_set(&matrix, &[], size));
    }
    times
}

/// Measures random sets of shared units, each with a random size.
fn shared(offer: &Offer, rounds: usize) -> Times {
    let mut dice = Dice(17);
    let all: Vec<String> = offer.units.iter().map(|u| u.id.to_string()).collect();
    let mut times = Times::default();
    for round in 0..rounds {
        let mut ids = all.clone();
        if round % 2 == 1 {
            ids.retain(|_| dice.below(2) == 0);
        }
        let size = match round % 4 {
            0 | 1 => 1 + dice.below(16),
            _ => 1 + dice.below(ids.len()),
        };
        times.of(|| prefer(offer, &ids, &[], size));
    }
    times
}

fn scores(dice: &mut Dice, len: usize) -> Matrix {
    Matrix::new(len, |_, _| {
        u32::try_from(dice.below(2000)).unwrap_or_default()
    })
}

fn row(out: &mut impl Write, name: &str, times: &Times) -> std::io::Result<()> {
    let mut sorted = times.cpu.clone();
    sorted.sort();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let at = |percent: usize| micros(sorted[(sorted.len() - 1) * percent / 100]);
    let (min, p50, p99, max) = (at(0), at(50), at(99), at(100));
    let (count, wall) = (sorted.len(), micros(times.wall));
    writeln!(
        out,
        "{name:<48} {count:>5} {min:>8.1} {p50:>8.1} {p99:>8.1} {max:>8.1} {wall:>9.1}"
    )
}

// === impl Times ===

impl Times {
    fn of<T>(&mut self, call: impl Fn() -> T) {
        for _ in 0..5 {
            let (cpu, wall) = time(&call);
            self.cpu.push(cpu);
            self.wall = self.wall.max(wall);
        }
    }
}

/// Measures a call: CPU time and elapsed time.
#[expect(clippy::disallowed_types, reason = "real time is what is measured")]
fn time<T>(call: impl Fn() -> T) -> (Duration, Duration) {
    let began = (processor(), std::time::Instant::now());
    let answer = std::hint::black_box(call());
    let times = (processor().saturating_sub(began.0), began.1.elapsed());
    drop(answer);
    times
}

/// Returns the CPU time of this thread.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = Duration::from_secs(time.tv_sec.try_into().unwrap_or_default());
    seconds + Duration::from_nanos(time.tv_nsec.try_into().unwrap_or_default())
}

/// Random numbers, the same in each run.
struct Dice(u64);

// === impl Dice ===

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or_default() % end
    }
}
