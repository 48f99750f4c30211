//! Random tests: wanted states, crashes between any two steps, files of other programs, and containers that
//! hold names.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Event that the store must survive.
#[derive(Clone, Debug)]
enum Event {
    /// A call of `settle`. In a crash only the first steps are done, and the next one may leave a temporary
    /// file.
    Round {
        wishes: Vec<Wish>,
        in_use: Option<Vec<(usize, usize)>>,
        crash: Option<(usize, bool)>,
    },
    /// Another program writes a file.
    Foreign { file: usize, text: usize },
    /// Another program removes the file of a key.
    Loss { key: usize },
}

/// Wanted state for one key, with the names of the spec.
#[derive(Clone, Debug)]
enum Wish {
    Spec(Vec<usize>),
    Held(Vec<usize>),
    Nothing,
    AsItIs,
}

/// Folder of the store, and the facts that the test keeps beside it.
struct World {
    dir: tempfile::TempDir,
    keys: Vec<SpecKey>,
    /// Files of other programs, which must not change.
    foreign: Vec<(PathBuf, String)>,
}

/// Makes a folder in memory if possible. On a disk the test would wait for thousands of syncs.
fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

fn wish() -> impl Strategy<Value = Wish> {
    let names = || prop::collection::vec(0..NAMES.len(), 1..4);
    prop_oneof![
        4 => names().prop_map(Wish::Spec),
        2 => names().prop_map(Wish::Held),
        4 => Just(Wish::Nothing),
        1 => Just(Wish::AsItIs),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let held = prop::collection::vec((0..4usize, 0..NAMES.len()), 0..4);
    let in_use = prop_oneof![4 => held.prop_map(Some), 1 => Just(None)];
    let crash = prop::option::of((0..6usize, any::<bool>()));
    let wishes = prop::collection::vec(wish(), 4);
    prop_oneof![
        6 => (wishes, in_use, crash).prop_map(|(wishes, in_use, crash)| Event::Round { wishes, in_use, crash }),
        2 => (0..6usize, 0..4usize).prop_map(|(file, text)| Event::Foreign { file, text }),
        1 => (0..4usize).prop_map(|key| Event::Loss { key }),
    ]
}

impl World {
    fn new() -> Self {
        let claim = |uid| SpecKey::of_claim("example.com/claim", uid).unwrap();
        let kinds = ["example.com/x", "example.com/y"].map(SpecKey::of_kind);
        Self {
            dir: quick_folder(),
            keys: kinds.into_iter().chain([claim("1"), claim("2")]).collect(),
            foreign: Vec::new(),
        }
    }

    fn store(&self) -> Store {
        Store::new(self.dir.path().join("cdi"))
    }

    /// Makes a spec of the key's kind. Names have the number of the key in them, because CDI's names must be
    /// unique over all files.
    fn spec(&self, key: usize, names: &[usize]) -> CdiSpec {
        let devices = names.iter().map(|name| NamedEdits {
            name: self.device(key, *name),
            container_edits: ContainerEdits {
                device_nodes: vec![ContainerNode::new("/".as_ref(), "/dev/null")],
                ..ContainerEdits::default()
            },
            ..NamedEdits::default()
        });
        CdiSpec::from(rules::KindEdits {
            kind: self.keys[key].cdi_kind().to_owned(),
            devices: devices.collect(),
            ..rules::KindEdits::default()
        })
    }

    fn device(&self, key: usize, name: usize) -> String {
        format!("{}{key}", NAMES[name])
    }

    fn name(&self, key: usize, name: usize) -> String {
        format!("{}={}", self.keys[key].cdi_kind(), self.device(key, name))
    }

    fn wishes(&self, wishes: &[Wish]) -> WantedFiles {
        let wish = |(key, wish): (usize, &Wish)| {
            let spec = |names: &Vec<usize>| Arc::new(self.spec(key, names));
            let wanted = match wish {
                Wish::Spec(names) => WantedFile::Spec(spec(names)),
                Wish::Held(names) => WantedFile::Held(spec(names)),
                Wish::Nothing => WantedFile::Absent,
                Wish::AsItIs => WantedFile::Unchanged,
            };
            (self.keys[key].clone(), wanted)
        };
        wishes.iter().enumerate().map(wish).collect()
    }

    /// Names that a runtime finds: those of every complete JSON file.
    fn found(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for key in &self.keys {
            let text = fs_err::read_to_string(self.store().file_path(key)).unwrap_or_default();
            let spec: Value = serde_json::from_str(&text).unwrap_or_default();
            for device in spec["devices"].as_array().into_iter().flatten() {
                let (kind, name) = (spec["kind"].as_str().unwrap(), &device["name"]);
                names.insert(format!("{kind}={}", name.as_str().unwrap()));
            }
        }
        names
    }

    /// Writes a file of another program, with a name of ours or another one. The text is not a spec, a spec of
    /// another kind, a spec of our kind in another format, or exactly our text.
    fn intrude(&mut self, file: usize, text: usize) {
        let names = ["other.json", ".example.com-x.json"];
        let path = match self.keys.get(file) {
            Some(key) => self.store().file_path(key),
            None => self
                .dir
                .path()
                .join("cdi")
                .join(names[file - self.keys.len()]),
        };
        let key = file.min(self.keys.len() - 1);
        let own = self.spec(key, &[0]);
        let text = match text {
            0 => "mine".to_owned(),
            1 => own.to_text().replace("example.com", "example.org"),
            2 => serde_json::to_string(&own).unwrap(),
            _ => own.to_text(),
        };
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, &text).unwrap();
        self.foreign.retain(|(other, _)| *other != path);
        let is_key = file < self.keys.len();
        let is_ours = is_key && text.contains(&format!("\"{}\"", self.keys[key].cdi_kind()));
        if !is_ours {
            self.foreign.push((path, text));
        }
    }

    fn lose(&mut self, key: usize) {
        let path = self.store().file_path(&self.keys[key]);
        let _ = fs_err::remove_file(&path);
        self.foreign.retain(|(other, _)| *other != path);
    }

    /// Makes a whole call of `settle`, or only its first steps.
    fn work(
        &self,
        wishes: &WantedFiles,
        in_use: &InUse,
        crash: Option<(usize, bool)>,
    ) -> Option<StoreOutcome> {
        let store = self.store();
        let Some((steps, leaves_draft)) = crash else {
            return Some(store.settle_files(wishes, in_use));
        };
        let mut plan = StorePlan::new(&store, wishes, in_use);
        let all = std::mem::take(&mut plan.steps);
        for step in all.into_iter().take(steps) {
            plan.carry_out(step);
        }
        if leaves_draft && store.dir.exists() {
            let name = format!(".{}.tmp-1-0", wishes[0].0.file_name());
            fs_err::write(store.dir.join(name), "{\"cdiVer").unwrap();
        }
        None
    }

    fn is_foreign(&self, path: &Path) -> bool {
        self.foreign.iter().any(|(other, _)| other == path)
    }

    /// Checks the conditions that hold at every moment.
    fn check_always(&self) {
        for (path, text) in &self.foreign {
            assert_eq!(&fs_err::read_to_string(path).unwrap(), text, "{path:?}");
        }
        for key in &self.keys {
            let path = self.store().file_path(key);
            if !self.is_foreign(&path) && path.exists() {
                let text = fs_err::read_to_string(&path).unwrap();
                assert!(
                    serde_json::from_str::<CdiSpec>(&text).is_ok(),
                    "half: {text}"
                );
            }
        }
    }

    /// Checks the conditions that hold after a call without a crash.
    fn check_settled(&self, wishes: &WantedFiles, in_use: &InUse, outcome: &StoreOutcome) {
        let found = self.found();
        for name in &outcome.names {
            assert!(
                found.contains(name),
                "{name} is referred to, and in no spec"
            );
        }
        for (key, wanted) in wishes {
            let path = self.store().file_path(key);
            if self.is_foreign(&path) {
                let wants = matches!(wanted, WantedFile::Spec(_) | WantedFile::Held(_));
                let said = outcome
                    .files
                    .iter()
                    .any(|file| file.path == path && file.problem.is_some());
                assert_eq!(wants, said, "{key}");
                continue;
            }
            let text = fs_err::read_to_string(&path).ok();
            let spec = text
                .as_deref()
                .map(|text| serde_json::from_str::<CdiSpec>(text).unwrap());
            match (wanted, &spec) {
                (WantedFile::Spec(wish), spec) => assert_eq!(spec.as_ref(), Some(&**wish), "{key}"),
                (WantedFile::Held(_), spec) => assert!(spec.is_some(), "{key}"),
                (WantedFile::Absent, Some(spec)) => {
                    let is_stale = text == Some(spec.to_text()) && !in_use.has_any(spec);
                    assert!(!is_stale, "{key} is stale");
                }
                (WantedFile::Absent, None) | (WantedFile::Unchanged, _) => {}
            }
        }
        let is_draft = |name: &String| name.contains(".tmp-");
        let drafts: Vec<String> = match self.store().dir.exists() {
            true => entries(&self.store().dir)
                .into_iter()
                .filter(is_draft)
                .collect(),
            false => Vec::new(),
        };
        assert_eq!(drafts, [""; 0]);
    }
}

/// True if a name may disappear in a round. Only a new spec or the removal of the file may take a name away, and
/// no file is removed while a container holds a name of it.
fn may_go(
    world: &World,
    name: &String,
    wishes: &WantedFiles,
    in_use: &InUse,
    before: &BTreeSet<String>,
) -> bool {
    let names_of = |key: usize| (0..NAMES.len()).map(move |name| world.name(key, name));
    let key = (0..wishes.len()).find(|key| names_of(*key).any(|own| own == *name));
    let key = key.expect("only the store takes names away");
    match (&wishes[key].1, in_use) {
        (WantedFile::Spec(spec) | WantedFile::Held(spec), _) => {
            !spec.qualified_names().any(|own| own == *name)
        }
        (WantedFile::Absent, InUse::Names(names)) => {
            let is_held = |own: String| names.contains(&own) && before.contains(&own);
            !names_of(key).any(is_held)
        }
        (WantedFile::Absent, InUse::Unknown) | (WantedFile::Unchanged, _) => false,
    }
}

fn play(world: &mut World, event: Event) {
    let (wishes, in_use, crash) = match event {
        Event::Foreign { file, text } => return world.intrude(file, text),
        Event::Loss { key } => return world.lose(key),
        Event::Round {
            wishes,
            in_use,
            crash,
        } => (world.wishes(&wishes), in_use, crash),
    };
    let in_use = in_use.map_or(InUse::Unknown, |held| {
        let names = held.iter().map(|(key, name)| world.name(*key, *name));
        InUse::Names(names.collect())
    });
    let before = world.found();
    let outcome = world.work(&wishes, &in_use, crash);
    for name in before.difference(&world.found()) {
        assert!(
            may_go(world, name, &wishes, &in_use, &before),
            "{name} is gone"
        );
    }
    if let Some(outcome) = outcome {
        world.check_settled(&wishes, &in_use, &outcome);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_name_is_lost_no_file_is_left_and_nothing_of_others_is_touched(
        events in prop::collection::vec(event(), 1..12),
    ) {
        let mut world = World::new();
        for event in events {
            play(&mut world, event);
            world.check_always();
        }
    }
}
