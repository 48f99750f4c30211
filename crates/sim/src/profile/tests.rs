//! Tests of the built-in profiles, and of the problems of broken ones.

use rstest::rstest;
use sim_node::{
    mig,
    state::{CardSettings, Sensors},
};

use super::*;

#[rstest]
#[case("t4", 1)]
#[case("dgx1-v100", 8)]
#[case("dgx-a100", 8)]
#[case("hgx2-v100", 16)]
#[case("a100-mig", 8)]
#[case("a100-mig-odd", 4)]
#[case("l40s-pcie", 4)]
#[case("hgx-h100", 8)]
#[case("hgx-b200", 8)]
#[case("gb200-nvl", 4)]
#[case("mixed", 6)]
#[case("vgpu", 2)]
#[case("wsl", 1)]
#[case("tegra", 0)]
fn built_in_profiles_have_their_cards(#[case] name: &str, #[case] count: usize) {
    let state = NodeProfile::find_profile(name).unwrap().to_state().unwrap();
    assert_eq!(state.gpus.len(), count);
    assert_eq!(state.check_state(), Ok(()));
    assert!(names().contains(&name));
}

#[test]
fn built_in_profiles_are_sorted_and_named_after_themselves() {
    assert!(names().is_sorted());
    for name in names() {
        assert_eq!(NodeProfile::find_profile(name).unwrap().name, name);
    }
}

#[rstest]
#[case("t4")]
#[case("dgx1-v100")]
#[case("dgx-a100")]
#[case("hgx2-v100")]
#[case("a100-mig")]
#[case("a100-mig-odd")]
#[case("l40s-pcie")]
#[case("hgx-h100")]
#[case("hgx-b200")]
#[case("gb200-nvl")]
#[case("mixed")]
#[case("vgpu")]
#[case("wsl")]
fn states_stay_as_they_are(#[case] name: &str) {
    let state = NodeProfile::find_profile(name).unwrap().to_state().unwrap();
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
        for gpu in NodeProfile::find_profile(name)
            .unwrap()
            .to_state()
            .unwrap()
            .gpus
        {
            assert!(seen.insert(gpu.uuid.clone()), "{}", gpu.uuid);
            for mig in gpu.migs {
                assert!(seen.insert(mig.uuid.clone()), "{}", mig.uuid);
            }
        }
    }
}

#[test]
fn every_model_can_be_filled_with_each_of_its_shapes() {
    for (key, model) in built_in_models() {
        for shape in &model.mig {
            let mut gpu = card(&key, &model);
            for _ in 0..shape.count {
                mig::add_mig_device(&mut gpu, &model, &shape.name).unwrap();
            }
            let full = mig::add_mig_device(&mut gpu, &model, &shape.name).unwrap_err();
            assert!(matches!(full, mig::Error::Full { .. }), "{full}");
        }
    }
}

#[test]
fn instance_ids_are_those_of_the_driver() {
    let all = built_in_models();
    let (key, model) = all.get_key_value("a100-sxm4-40gb").unwrap();
    let mut gpu = card(key, model);
    for shape in ["1g.5gb", "2g.10gb", "4g.20gb"] {
        mig::add_mig_device(&mut gpu, model, shape).unwrap();
    }
    let ids: Vec<_> = gpu.migs.iter().map(|m| (m.gi, m.start)).collect();
    assert_eq!(ids, [(1, 0), (5, 4), (13, 6)]);
}

#[test]
fn parts_of_a_gpu_instance_share_it() {
    let all = built_in_models();
    let (key, model) = all.get_key_value("a100-sxm4-40gb").unwrap();
    let mut gpu = card(key, model);
    for shape in ["1c.3g.20gb", "2c.3g.20gb", "1c.3g.20gb"] {
        mig::add_mig_device(&mut gpu, model, shape).unwrap();
    }
    let ids: Vec<_> = gpu.migs.iter().map(|m| (m.gi, m.ci, m.slices)).collect();
    assert_eq!(ids, [(1, 0, 1), (2, 0, 1), (2, 1, 2)]);
}

fn card(key: &str, model: &GpuModel) -> Gpu {
    Gpu {
        uuid: "GPU-0".to_owned(),
        model: key.to_owned(),
        minor: 0,
        pci: "0000:07:00.0".parse().unwrap(),
        under: "pci0000:00".to_owned(),
        numa: None,
        memory_numa: None,
        serial: String::new(),
        lost: false,
        reset_at: None,
        mig_enabled: !model.mig.is_empty(),
        migs: Vec::new(),
        links: Vec::new(),
        sensors: Sensors::default(),
        settings: CardSettings::default(),
        instances: Vec::new(),
        processes: Vec::new(),
    }
}

/// Name that NVIDIA's own tools derive from a profile's figures.
fn computed_name(model: &GpuModel, shape: &sim_node::state::MigProfile) -> String {
    let total = model.memory_mib;
    let eighths = (8 * shape.memory_mib).div_ceil(total);
    // Half gigabytes are rounded up.
    let gb = (eighths * total.div_ceil(1024) * 2 + 8) / 16;
    let suffix = if shape.profile == 7 { "+me" } else { "" };
    format!("{}g.{gb}gb{suffix}", shape.slices)
}

#[test]
fn mig_names_follow_from_their_sizes() {
    for model in built_in_models().values() {
        for shape in &model.mig {
            assert_eq!(shape.name, computed_name(model, shape), "{}", model.name);
        }
    }
}

#[test]
fn a_profile_is_written_as_it_is_read() {
    for name in names() {
        let profile = NodeProfile::find_profile(name).unwrap();
        let yaml = profile.yaml().unwrap();
        assert_eq!(
            NodeProfile::parse_profile(&yaml).unwrap(),
            profile,
            "{yaml}"
        );
    }
}

#[test]
fn a_model_needs_few_figures() {
    let yaml = "name: small\nmodels:\n  z:\n    {name: Z, compute_capability: [8, 9], \
                device_id: \"abcd\", memory_mib: 1000}\ngpus:\n  - {pci: \"0000:41:00.0\", model: z}\n";
    let state = NodeProfile::parse_profile(yaml)
        .unwrap()
        .to_state()
        .unwrap();
    let model = &state.models["z"];
    assert_eq!((model.architecture, model.class.as_str()), (8, "030200"));
    assert_eq!(model.bar1_bytes(), 1 << 30);
    assert!(model.ecc && state.gpus[0].sensors.temperature > 0);
}

#[test]
fn a_mig_device_can_be_put_at_a_place() {
    let all = built_in_models();
    let (key, model) = all.get_key_value("a100-sxm4-40gb").unwrap();
    let mut gpu = card(key, model);
    for shape in ["3g.20gb@0", "1c.3g.20gb@4", "2c.3g.20gb@4"] {
        mig::add_mig_device(&mut gpu, model, shape).unwrap();
    }
    let places: Vec<_> = gpu.migs.iter().map(|m| (m.start, m.ci, m.slices)).collect();
    assert_eq!(places, [(0, 0, 3), (4, 0, 1), (4, 1, 2)]);
    for wrong in ["1g.5gb@0", "1g.5gb@9", "1g.5gb@x"] {
        assert!(
            mig::add_mig_device(&mut gpu, model, wrong).is_err(),
            "{wrong}"
        );
    }
}

/// Profile of one card with one line replaced.
fn edited(name: &str, from: &str, to: &str) -> String {
    let (_, yaml) = BUILT_IN.iter().find(|(known, _)| *known == name).unwrap();
    assert!(yaml.contains(from));
    yaml.replacen(from, to, 1)
}

#[rstest]
#[case::model(
    "t4",
    "model: t4\n",
    "model: t5\n",
    "unknown model `t5`; there are: a100"
)]
#[case::no_model("t4", "model: t4\n", "", "card 0000:00:1e.0 has no model; set `model`")]
#[case::key("t4", "model: t4\n", "modle: t4\n", "modle")]
#[case::type_of_value("t4", "numa: 0}\nothers", "numa: no}\nothers", "line 9")]
#[case::mig_on_no_mig(
    "t4",
    "numa: 0}",
    "mig: [1g.5gb]}",
    "line 9, column 54: card 0000:00:1e.0 cannot be partitioned"
)]
#[case::link(
    "t4",
    "others:",
    "nvlinks: {\"0-1\": 1}\nothers:",
    "line 10, column 18: `0-1` in nvlinks names no two cards"
)]
#[case::numa("t4", "numa: 0}", "numa: 7}", "is on NUMA node 7; `numa` has only: 0")]
#[case::cpus(
    "t4",
    "cpus: 0-7",
    "cpus: few",
    "line 6, column 21: `few` is no list of CPUs"
)]
#[case::address(
    "t4",
    "0000:00:05.0",
    "0000:00:1e.0",
    "line 11, column 11: 0000:00:1e.0 is there twice"
)]
#[case::way(
    "t4",
    "under: \"pci0000:00\"",
    "under: \"../../etc\"",
    "`../../etc` is no way to"
)]
#[case::name("t4", "name: t4", "name: \"\"", "has no name")]
#[case::platform("t4", "model: t4", "platform: cloud\nmodel: t4", "cloud")]
#[case::vgpu(
    "t4",
    "model: t4",
    "vgpu: {driver: a, branch: b}\nmodel: t4",
    "set `platform: vgpu`"
)]
#[case::host("vgpu", "570.133.10", "570.133.10.1", "1 to 10 ASCII characters")]
#[case::tegra(
    "tegra",
    "gpus: []",
    "gpus: [{pci: \"0000:01:00.0\", model: t4}]",
    "shows no cards"
)]
#[case::cluster("gb200-nvl", "5d3c8c1e-", "", "is no cluster UUID")]
#[case::uuid("vgpu", "0000:06:00.0\"", "0000:06:00.0\", uuid: GPU-1", "")]
#[case::layout(
    "a100-mig",
    "[3g.20gb, 3g.20gb]",
    "[3g.20gb, 7g.40gb]",
    "line 27, column 20: card 0000:47:00.0 cannot be partitioned: "
)]
#[case::place(
    "a100-mig",
    "[7g.40gb]",
    "[3g.20gb@3]",
    "no room for another 3g.20gb@3"
)]
#[case::uuids(
    "a100-mig",
    "mig: [7g.40gb]",
    "mig_uuids: [MIG-1, MIG-2]\n    mig: [7g.40gb]",
    "2 mig_uuids for 1 MIG devices"
)]
#[case::remote(
    "gb200-nvl",
    "{fabric: 18}",
    "{\"0000:99:00.0\": 18}",
    "which is no other card and no NVSwitch"
)]
#[case::itself(
    "gb200-nvl",
    "{fabric: 18}",
    "{\"0008:01:00.0\": 1}",
    "which is no other card and no NVSwitch"
)]
#[case::one_way(
    "gb200-nvl",
    "{fabric: 18}",
    "{\"0009:01:00.0\": 2}",
    "has 2 NVLinks to 0009:01:00.0, which has 0"
)]
#[case::many(
    "gb200-nvl",
    "{fabric: 18}",
    "{fabric: 4000000000}",
    "the driver knows 18 at most"
)]
fn broken_profiles_say_what_is_wrong(
    #[case] name: &str,
    #[case] from: &str,
    #[case] to: &str,
    #[case] message: &str,
) {
    let parsed = NodeProfile::parse_profile(&edited(name, from, to));
    // An empty message means that the edit is valid.
    if message.is_empty() {
        parsed.unwrap();
        return;
    }
    let error = parsed.unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[rstest]
#[case("uuid", "uuid: GPU-1", "GPU-1 is there twice")]
#[case("uuid", "uuid: MIG-1", "`MIG-1` is no UUID that begins with GPU-")]
#[case("minor", "minor: 3", "two cards have the device node 3")]
fn cards_have_identities_of_their_own(#[case] key: &str, #[case] same: &str, #[case] what: &str) {
    let yaml = format!(
        "name: two\nmodel: t4\ngpus:\n  - {{pci: \"0000:01:00.0\", {same}}}\n  \
         - {{pci: \"0000:02:00.0\", {same}}}\n"
    );
    let error = NodeProfile::parse_profile(&yaml).unwrap_err().to_string();
    assert!(
        error.contains(what) && error.contains("line 5"),
        "{key}: {error}"
    );
}

#[rstest]
#[case(
    "device_id: \"abcd\"",
    "device_id: xyz",
    "`xyz` is no device_id of 4 hex digits"
)]
#[case("memory_mib: 1000", "memory_mib: 0", "must be more than reserved_mib")]
#[case(
    "memory_mib: 1000",
    "memory_mib: 1000, class: \"03\"",
    "no class of 6 hex digits"
)]
#[case(
    "memory_mib: 1000",
    "memory_mib: 1000, subsystem: x",
    "`x` is no subsystem"
)]
#[case(
    "memory_mib: 1000",
    "memory_mib: 1000, mig: [{name: 1g.1gb, profile: 0, id: 1, slices: 9, memory_slices: 1, memory_mib: 1, multiprocessors: 1, count: 1, copy: 1}]",
    "1g.1gb does not fit on the card"
)]
fn broken_models_say_what_is_wrong(#[case] from: &str, #[case] to: &str, #[case] message: &str) {
    let yaml = "name: small\nmodels:\n  z: {name: Z, compute_capability: [8, 9], device_id: \"abcd\", \
                memory_mib: 1000}\ngpus:\n  - {pci: \"0000:41:00.0\", model: z}\n";
    NodeProfile::parse_profile(yaml).unwrap();
    let error = NodeProfile::parse_profile(&yaml.replace(from, to))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(message) && error.contains("line 3"),
        "{error}"
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once_in_the_order_of_the_text() {
    let yaml = "name: many\nnuma:\n  - {node: 0, cpus: x, memory_gib: 1}\ngpus:\n  \
                - {pci: \"0000:01:00.0\", model: t5}\n  - {pci: \"0000:01:00.0\", model: t4, numa: 3}\n";
    let Error::Nonsense(problems) = NodeProfile::parse_profile(yaml).unwrap_err() else {
        panic!("another error");
    };
    let lines: Vec<_> = problems.iter().map(|p| p.at.unwrap().0).collect();
    assert_eq!(lines, [3, 5, 6, 6]);
    insta::assert_snapshot!("problems", Error::Nonsense(problems).to_string());
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let error = NodeProfile::find_profile("dgx-z").unwrap_err().to_string();
    assert!(
        error.contains("dgx-z") && error.contains("hgx2-v100"),
        "{error}"
    );
}
