use super::*;
use crate::{figures::Figures, machine::Machine, pair::Pair, report::Section};

fn machine() -> Machine {
    Machine {
        commit: "0123456789ab".to_owned(),
        date: "2026-01-02".to_owned(),
        cores: 2,
        processor: "A <B> & C".to_owned(),
        kernel: "6.1".to_owned(),
        version: "ostler 0.1.0".to_owned(),
        peer: Some("NVIDIA's nvidia-device-plugin-v0.19.3".to_owned()),
    }
}

fn row(name: &str, unit: Unit, ours: f64, theirs: Value) -> Row {
    let ours = Value::Figures(Figures::one(ours, unit));
    let theirs = Some(theirs);
    Row::new(name, Pair { ours, theirs })
}

fn one(unit: Unit, value: f64) -> Value {
    Value::Figures(Figures::one(value, unit))
}

fn report() -> Report {
    let seconds = |value| one(Unit::Seconds, value);
    let mut plugin = Section::new("Device plugin");
    plugin.rows = vec![
        row("start", Unit::Seconds, 0.01, seconds(0.05)),
        row("reset", Unit::Seconds, 5.0, Value::Never { seconds: 60.0 }),
        row("memory", Unit::Bytes, 9e6, one(Unit::Bytes, 3e7)),
        row("idle CPU", Unit::Share, 0.0008, one(Unit::Share, 0.0002)),
    ];
    let mut prefer = Section::new("Best");
    prefer.rows = vec![
        row(
            "best 3 of 16",
            Unit::Seconds,
            1e-4,
            Value::Beyond { seconds: 60.0 },
        ),
        row("best 5 of 16", Unit::Seconds, 1e-4, seconds(1.0)),
    ];
    Report::new(machine(), vec![plugin, prefer])
}

/// The texts of a drawing: where each is, its classes, and its words.
fn texts(svg: &str) -> Vec<(f64, f64, String, String)> {
    let lines = svg.lines().filter(|line| line.starts_with("<text"));
    let texts = lines.map(|line| {
        let mut quoted = line.split('"').skip(1).step_by(2);
        let class = quoted.next().unwrap().to_owned();
        let mut number = || quoted.next().unwrap().parse().unwrap();
        let (x, y) = (number(), number());
        let words = line.split('>').nth(1).unwrap();
        (x, y, class, words.trim_end_matches("</text").to_owned())
    });
    texts.collect()
}

#[test]
fn a_report_is_drawn() {
    insta::assert_snapshot!(draw(&report()));
}

#[test]
fn what_a_machine_is_called_cannot_break_the_drawing() {
    let svg = draw(&report());
    assert!(svg.contains("A &lt;B&gt; &amp; C"), "{svg}");
}

#[test]
fn of_many_sizes_a_few_are_shown() {
    let svg = draw(&report());
    assert!(svg.contains("best 3 of 16") && !svg.contains("best 5 of 16"));
}

#[test]
fn texts_of_one_line_do_not_overlap() {
    let texts = texts(&draw(&report()));
    assert!(texts.len() > 20, "{}", texts.len());
    // Wide letters: the real ones are narrower.
    let span = |(x, _, class, words): &(f64, f64, String, String)| {
        let letter = if class.contains("small") { 5.6 } else { 7.0 };
        let width = f64::from(u16::try_from(words.chars().count()).unwrap()) * letter;
        match class {
            class if class.contains("end") => (x - width, *x),
            class if class.contains("mid") => (x - width / 2.0, x + width / 2.0),
            _ => (*x, x + width),
        }
    };
    for (at, a) in texts.iter().enumerate() {
        for b in texts
            .iter()
            .skip(at + 1)
            .filter(|b| (a.1 - b.1).abs() < 6.0)
        {
            let ((left, right), (other, end)) = (span(a), span(b));
            assert!(right <= other || end <= left, "{a:?} and {b:?}");
        }
    }
}
