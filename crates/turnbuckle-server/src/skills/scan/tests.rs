use std::sync::Mutex;

use tracing::{Event, Level, Metadata, Subscriber, span};

use super::*;

#[test]
fn an_invalid_skill_is_reported_once_per_problem() {
    let place = TestFolder::new("reported");
    place.write("tea/SKILL.md", "# Tea");
    place.write("good/SKILL.md", "---\nname: good\ndescription: x\n---\n");
    let mut folder = SkillFolder::new(place.0.clone());
    let warnings = Warnings::default();

    tracing::subscriber::with_default(warnings.clone(), || {
        assert_eq!(folder.scan().len(), 1);
        folder.scan();
        assert_eq!(warnings.count(), 1);

        place.write("tea/SKILL.md", "---\nname: coffee\ndescription: x\n---\n");
        folder.scan();
        folder.scan();
        assert_eq!(warnings.count(), 2);

        place.write("tea/SKILL.md", "---\nname: tea\ndescription: x\n---\n");
        assert_eq!(folder.scan().len(), 2);
        place.write("tea/SKILL.md", "# Tea");
        folder.scan();
        assert_eq!(warnings.count(), 3);
    });
}

#[test]
fn an_unchanged_file_is_not_read_twice() {
    let place = TestFolder::new("unread");
    place.write("tea/SKILL.md", "---\nname: tea\ndescription: x\n---\n");
    place.write("tea/pots.md", "Pots.");
    let mut folder = SkillFolder::new(place.0.clone());
    let pots = |folder: &mut SkillFolder| folder.scan()[0].files[1].digest.clone();
    let truth = pots(&mut folder);
    // Written just now, so its stamp is not reliable yet.
    assert!(folder.cached.values().all(|cached| !cached.is_reliable));

    for cached in folder.cached.values_mut() {
        cached.is_reliable = true;
        cached.digest = "as remembered".into();
    }
    let remembered = pots(&mut folder);
    place.write("tea/pots.md", "Other pots.");
    let changed = pots(&mut folder);

    assert_eq!(&*remembered, "as remembered");
    assert_eq!(*changed, *digest(b"Other pots."));
    assert_ne!(changed, truth);
}

#[test]
fn a_missing_folder_is_empty_until_it_exists() {
    let place = TestFolder::new("absent");
    let mut folder = SkillFolder::new(place.0.join("later"));

    assert!(folder.scan().is_empty());
    place.write(
        "later/tea/SKILL.md",
        "---\nname: tea\ndescription: x\n---\n",
    );
    assert_eq!(folder.scan().len(), 1);
}

struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let name = format!("turnbuckle-folder-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Counts warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<usize>>);

impl Warnings {
    fn count(&self) -> usize {
        *self.0.lock().unwrap()
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        if *event.metadata().level() == Level::WARN {
            *self.0.lock().unwrap() += 1;
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
