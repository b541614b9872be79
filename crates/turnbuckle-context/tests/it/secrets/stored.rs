//! Secrets on every way in; afterwards no byte of the data holds one.

use std::{collections::BTreeMap, fs, ops::ControlFlow, path::Path};

use aho_corasick::AhoCorasick;
use serde_json::{Map, Value, json};
use turnbuckle_context::{
    DataDir, Owner, Redactor,
    code_index::{IndexOptions, index},
    collections,
    memory::{self, ItemKind, NewItem, SaveOutcome},
    transfer::{DataSelection, ImportOptions, export, import},
};

use super::{
    in_sentence, places,
    planted::{self, Planted},
};

/// Someone's data, and a repository.
struct Place {
    data: tempfile::TempDir,
    repository: tempfile::TempDir,
    data_dir: DataDir,
    ada: Owner,
}

impl Place {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        Self {
            data_dir: DataDir::new(data.path()),
            data,
            repository: tempfile::tempdir().unwrap(),
            ada: Owner::for_user("ada"),
        }
    }

    fn database(&self) -> std::sync::Arc<turnbuckle_context::Database> {
        let path = self.repository.path().to_str().unwrap();
        let project = self.data_dir.project(&self.ada, path).unwrap();
        self.data_dir.open_project(&self.ada, &project).unwrap()
    }

    fn save(&self, draft: NewItem) -> SaveOutcome {
        memory::save(&self.database(), Redactor::standard(), draft).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.repository.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Looks at the bytes while the database is open, with its log, and again when all is closed.
    fn assert_clean(self, planted: &[Planted]) {
        let needles = needles(planted);
        assert_none(self.data.path(), &needles);
        drop(self.data_dir);
        assert_none(self.data.path(), &needles);
    }
}

/// What to look for: the middle of every secret, since the words of an index have lost their case and their ends.
fn needles(planted: &[Planted]) -> Vec<String> {
    let secrets = planted.iter().flat_map(|planted| &planted.secrets);
    let middle = |secret: &String| {
        let runs = secret.split(|char: char| !char.is_ascii_alphanumeric());
        let run = runs.max_by_key(|run| run.len()).unwrap();
        run[1..run.len() - 2].to_ascii_lowercase()
    };
    let needles: Vec<_> = secrets.map(middle).collect();
    assert!(
        needles.iter().all(|needle| needle.len() >= 6),
        "{needles:?}"
    );
    needles
}

fn assert_none(folder: &Path, needles: &[String]) {
    let search = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(needles)
        .unwrap();
    let mut searched = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_none(&path, needles);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        searched += bytes.len();
        if let Some(found) = search.find(&bytes) {
            let around = found.start().saturating_sub(80)..(found.end() + 40).min(bytes.len());
            let around = String::from_utf8_lossy(&bytes[around]);
            panic!(
                "{} in {}: {around}",
                needles[found.pattern().as_usize()],
                path.display()
            );
        }
    }
    assert!(
        searched > 0
            || fs::read_dir(folder)
                .unwrap()
                .all(|entry| entry.unwrap().path().is_dir())
    );
}

fn meta(name: &str, value: &str) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), json!(value))])
}

#[test]
fn no_way_of_saving_keeps_a_secret() {
    let place = Place::new();
    let all = planted::all();
    for (number, planted) in all.iter().enumerate() {
        let text = in_sentence(&planted.text);
        // What is too long for a summary, a name or a tag stands in the others.
        let short = match planted.text.len() < 100 {
            true => &*planted.text,
            false => "",
        };
        let unique = format!("{text}\n{number}");
        let meta = Map::from_iter([
            ("note".to_owned(), json!(text)),
            (format!("{number} {short}"), json!(1)),
        ]);
        let drafts = [
            NewItem::checkpoint(&*unique)
                .title(format!("about {short}"))
                .tags([format!("tag {short}")])
                .meta(meta),
            NewItem::remediation(&*unique, &*text).detail(&*text),
            NewItem::skill(format!("skill {number} {short}"), &*text, &*text),
        ];
        for draft in drafts {
            let least = match draft.kind {
                _ if short.is_empty() => 2,
                ItemKind::Checkpoint => 5,
                _ => 3,
            };
            let saved = place.save(draft);
            let count = saved.redacted.get(planted.rule).copied();
            assert!(
                count >= Some(least),
                "{count:?} of {least} in {:?}",
                saved.item
            );
            assert!(saved.item.redacted >= least);
        }
    }
    place.assert_clean(&all);
}

#[test]
fn an_import_keeps_no_secret() {
    let place = Place::new();
    let all = planted::all();
    // An export with a mark per thing, and then the marks are what they must never be again.
    for number in 0..all.len() {
        place.save(
            NewItem::checkpoint(format!("<{number}>\n{number}"))
                .meta(meta("note", &format!("<{number}>"))),
        );
    }
    let mut lines = Vec::new();
    export(
        &place.data_dir,
        &place.ada,
        &DataSelection::Everything,
        &mut lines,
    )
    .unwrap();
    let mut lines = String::from_utf8(lines).unwrap();
    for (number, planted) in all.iter().enumerate() {
        let text = json!(planted.text).to_string();
        lines = lines.replace(&format!("<{number}>"), &text[1..text.len() - 1]);
    }

    let elsewhere = Place::new();
    let folder = elsewhere.repository.path().to_str().unwrap().to_owned();
    let mut options = ImportOptions::default();
    options.into = Some(folder);
    let redactor = Redactor::standard();
    let data_dir = &elsewhere.data_dir;
    let imported = import(
        data_dir,
        &elsewhere.ada,
        redactor,
        &options,
        &mut lines.as_bytes(),
    )
    .unwrap();
    assert_eq!(imported.new, all.len() as u64);
    for planted in &all {
        assert!(imported.redacted[planted.rule] >= 2, "{}", planted.rule);
    }
    elsewhere.assert_clean(&all);
}

#[test]
fn an_index_keeps_no_secret() {
    let place = Place::new();
    let all = planted::all();
    let mut expected = BTreeMap::<&str, usize>::new();
    for (number, planted) in all.iter().enumerate() {
        let [prose, json, env, code] = places(planted).map(|(_, text)| text);
        place.write(&format!("docs/{number}.md"), &prose);
        place.write(&format!("data/{number}.json"), &json);
        place.write(&format!("settings/{number}.ini"), &env);
        place.write(&format!("src/{number}.rs"), &code);
        // Somewhere in a long file, so that it lies on the border of two chunks for some.
        let long = "fn step() {\n    go();\n}\n\n".repeat(10 + number);
        place.write(&format!("long/{number}.rs"), &format!("{long}{code}{long}"));
        *expected.entry(planted.rule).or_default() += 5;
    }
    let named = all
        .iter()
        .find(|planted| planted.rule == "github-pat")
        .unwrap();
    place.write(&format!("src/{}.rs", named.text), "fn named() {}\n");

    let root = place.repository.path().canonicalize().unwrap();
    let mut watch = |_| ControlFlow::Continue(());
    let (options, redactor) = (IndexOptions::default(), Redactor::standard());
    let database = place.database();
    let indexed = index(&database, &root, "main", &options, redactor, &mut watch).unwrap();
    assert_eq!(indexed.read, all.len() as u64 * 5);
    for (rule, count) in expected {
        assert!(indexed.redacted[rule] >= count, "{rule}");
    }
    place.assert_clean(&all);
}

#[test]
fn a_branch_keeps_no_secret() {
    let place = Place::new();
    let all = planted::all();
    let planted = all.iter().find(|planted| planted.rule == "github-pat");
    let token = &planted.unwrap().text;
    place.write(".git/HEAD", &format!("ref: refs/heads/try/{token}\n"));
    let path = place.repository.path().to_str().unwrap();
    let project = place.data_dir.project(&place.ada, path).unwrap();
    assert_eq!(project.branch(), "try/[REDACTED:github-pat]");
    place.save(NewItem::checkpoint("anything").branch(project.branch()));
    place.assert_clean(&all);
}

#[test]
fn names_that_are_kept_are_refused_with_a_secret() {
    let place = Place::new();
    let all = planted::all();
    let planted = all.iter().find(|planted| planted.rule == "github-pat");
    let token = &planted.unwrap().text;
    place.write("src/a.rs", "fn a() {}\n");
    let root = place.repository.path().canonicalize().unwrap();
    let database = place.database();
    for is_include in [true, false] {
        let patterns = vec![format!("src/{token}/*.rs")];
        let mut options = IndexOptions::default();
        match is_include {
            true => options.include = patterns,
            false => options.exclude = patterns,
        }
        let mut watch = |_| ControlFlow::Continue(());
        let redactor = Redactor::standard();
        let refused = index(&database, &root, "main", &options, redactor, &mut watch);
        assert!(refused.unwrap_err().to_string().contains("secret"));
    }
    let path = root.to_str().unwrap();
    let project = place.data_dir.project(&place.ada, path).unwrap();
    let name = collections::name(&place.ada, project.id(), &format!("try/{token}"));
    let refused = collections::create(&place.data_dir, &place.ada, &name, 3);
    assert!(refused.unwrap_err().to_string().contains("secret"));
    place.assert_clean(&all);
}
