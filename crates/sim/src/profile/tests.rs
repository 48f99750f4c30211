//! The profiles that come with the program, and what is said about broken ones.

use rstest::rstest;

use super::*;
use crate::state::Sensors;

#[rstest]
#[case("t4", 1)]
#[case("dgx1-v100", 8)]
#[case("dgx-a100", 8)]
#[case("hgx2-v100", 16)]
#[case("a100-mig", 8)]
fn built_in_profiles_have_their_cards(#[case] name: &str, #[case] count: usize) {
    let state = Profile::named(name).unwrap().state().unwrap();
    assert_eq!(state.gpus.len(), count);
    assert_eq!(state.check(), Ok(()));
    assert!(names().contains(&name));
}

#[rstest]
#[case("t4")]
#[case("dgx1-v100")]
#[case("dgx-a100")]
#[case("hgx2-v100")]
#[case("a100-mig")]
fn states_stay_as_they_are(#[case] name: &str) {
    let state = Profile::named(name).unwrap().state().unwrap();
    let cards: Vec<String> = state.gpus.iter().map(line).collect();
    insta::assert_snapshot!(name, cards.join("\n"));
}

fn line(gpu: &Gpu) -> String {
    let Gpu {
        uuid,
        model,
        minor,
        pci,
        numa,
        serial,
        ..
    } = gpu;
    let numa = numa.map_or("-".to_owned(), |n| n.to_string());
    let migs = gpu.migs.iter().map(|m| {
        format!(
            "\n  {} gi {} ci {} {} ({} slices at {})",
            m.uuid, m.gi, m.ci, m.profile, m.slices, m.start
        )
    });
    let remotes: Vec<_> = gpu.links.iter().map(|l| l.remote.to_string()).collect();
    let links = if remotes.is_empty() {
        String::new()
    } else {
        format!("\n  links {}", remotes.join(" "))
    };
    format!(
        "{minor} {pci} numa {numa} {model} {serial} {uuid}{links}{}",
        migs.collect::<String>()
    )
}

#[test]
fn uuids_are_unique_over_all_profiles() {
    let mut seen = std::collections::BTreeSet::new();
    for name in names() {
        for gpu in Profile::named(name).unwrap().state().unwrap().gpus {
            assert!(seen.insert(gpu.uuid.clone()), "{}", gpu.uuid);
            for mig in gpu.migs {
                assert!(seen.insert(mig.uuid.clone()), "{}", mig.uuid);
            }
        }
    }
}

#[test]
fn every_model_can_be_filled_with_each_of_its_shapes() {
    for (key, model) in models() {
        for shape in &model.mig {
            let mut gpu = card(&key, &model);
            for _ in 0..shape.count {
                mig::add(&mut gpu, &model, &shape.name).unwrap();
            }
            let full = mig::add(&mut gpu, &model, &shape.name).unwrap_err();
            assert!(matches!(full, mig::Error::Full { .. }), "{full}");
        }
    }
}

#[test]
fn instance_ids_are_those_of_the_driver() {
    let all = models();
    let (key, model) = all.get_key_value("a100-sxm4-40gb").unwrap();
    let mut gpu = card(key, model);
    for shape in ["1g.5gb", "2g.10gb", "4g.20gb"] {
        mig::add(&mut gpu, model, shape).unwrap();
    }
    let ids: Vec<_> = gpu.migs.iter().map(|m| (m.gi, m.start)).collect();
    assert_eq!(ids, [(1, 0), (5, 4), (13, 6)]);
}

#[test]
fn parts_of_a_gpu_instance_share_it() {
    let all = models();
    let (key, model) = all.get_key_value("a100-sxm4-40gb").unwrap();
    let mut gpu = card(key, model);
    for shape in ["1c.3g.20gb", "2c.3g.20gb", "1c.3g.20gb"] {
        mig::add(&mut gpu, model, shape).unwrap();
    }
    let ids: Vec<_> = gpu.migs.iter().map(|m| (m.gi, m.ci, m.slices)).collect();
    assert_eq!(ids, [(1, 0, 1), (2, 0, 1), (2, 1, 2)]);
}

fn card(key: &str, model: &Model) -> Gpu {
    Gpu {
        uuid: "GPU-0".to_owned(),
        model: key.to_owned(),
        minor: 0,
        pci: "0000:07:00.0".parse().unwrap(),
        under: "pci0000:00".to_owned(),
        numa: None,
        serial: String::new(),
        lost: false,
        mig_enabled: !model.mig.is_empty(),
        migs: Vec::new(),
        links: Vec::new(),
        sensors: Sensors::default(),
    }
}

/// A profile of one card, with a line replaced.
fn edited(from: &str, to: &str) -> String {
    let (_, yaml) = BUILT_IN.iter().find(|(name, _)| *name == "t4").unwrap();
    assert!(yaml.contains(from));
    yaml.replace(from, to)
}

#[rstest]
#[case("model: t4\n", "model: t5\n", "unknown model `t5`")]
#[case("model: t4\n", "modle: t4\n", "modle")]
#[case("numa: 0}\nothers", "numa: no}\nothers", "line 8")]
#[case("numa: 0}", "mig: [1g.5gb]}", "cannot be partitioned")]
#[case("others:", "nvlinks: {\"0-1\": 1}\nothers:", "`0-1`")]
fn broken_profiles_say_what_is_wrong(#[case] from: &str, #[case] to: &str, #[case] message: &str) {
    let error = Profile::parse(&edited(from, to)).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let error = Profile::named("dgx-z").unwrap_err().to_string();
    assert!(
        error.contains("dgx-z") && error.contains("hgx2-v100"),
        "{error}"
    );
}
