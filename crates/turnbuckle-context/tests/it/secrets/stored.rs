//! Stores secrets through every interface, and checks that no byte of the data contains one.

use std::{collections::BTreeMap, fs, ops::ControlFlow, path::Path};

use aho_corasick::AhoCorasick;
use serde_json::{Map, Value, json};
use turnbuckle_context::{
    DataDir, Owner, Redactor,
    evaluation::{
        code_index::{IndexOptions, index},
        collections,
        memory::{self, ItemKind, NewItem, SaveOutcome},
    },
    transfer::{DataSelection, ImportOptions, export, import},
};

use super::{
    in_sentence, places,
    planted::{self, Planted},
};

/// A data directory and a repository.
struct TestProject {
    data: tempfile::TempDir,
    repository: tempfile::TempDir,
    data_dir: DataDir,
    ada: Owner,
}

impl TestProject {
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

    fn save(&self, new_item: NewItem) -> SaveOutcome {
        memory::save(&self.database(), Redactor::standard(), new_item).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.repository.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Checks the files while the database is open, with its WAL, and again after closing it.
    fn assert_clean(self, planted: &[Planted]) {
        let needles = needles(planted);
        assert_none(self.data.path(), &needles);
        drop(self.data_dir);
        assert_none(self.data.path(), &needles);
    }
}

/// Returns the middle of every secret, because the words of an index are in lower case and stemmed.
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
fn saved_items_contain_no_secret() {
    let test_folder = TestProject::new();
    let all = planted::all();
    for (number, planted) in all.iter().enumerate() {
        let text = in_sentence(&planted.text);
        // A secret that is too long for a summary, name or tag is in the other members.
        let short = if planted.text.len() < 100 {
            &*planted.text
        } else {
            ""
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
        for new_item in drafts {
            let least = match new_item.kind {
                _ if short.is_empty() => 2,
                ItemKind::Checkpoint => 5,
                _ => 3,
            };
            let saved = test_folder.save(new_item);
            let count = saved.redacted.get(planted.rule).copied();
            assert!(
                count >= Some(least),
                "{count:?} of {least} in {:?}",
                saved.item
            );
            assert!(saved.item.redacted >= least);
        }
    }
    test_folder.assert_clean(&all);
}

#[test]
fn imported_items_contain_no_secret() {
    let test_folder = TestProject::new();
    let all = planted::all();
    // Replace the markers of an export by secrets.
    for number in 0..all.len() {
        test_folder.save(
            NewItem::checkpoint(format!("<{number}>\n{number}"))
                .meta(meta("note", &format!("<{number}>"))),
        );
    }
    let mut lines = Vec::new();
    export(
        &test_folder.data_dir,
        &test_folder.ada,
        &DataSelection::Everything,
        &mut lines,
    )
    .unwrap();
    let mut lines = String::from_utf8(lines).unwrap();
    for (number, planted) in all.iter().enumerate() {
        let text = json!(planted.text).to_string();
        lines = lines.replace(&format!("<{number}>"), &text[1..text.len() - 1]);
    }

    let elsewhere = TestProject::new();
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
fn an_index_contains_no_secret() {
    let test_folder = TestProject::new();
    let all = planted::all();
    let mut expected = BTreeMap::<&str, usize>::new();
    for (number, planted) in all.iter().enumerate() {
        let [prose, json, env, code] = places(planted).map(|(_, text)| text);
        test_folder.write(&format!("docs/{number}.md"), &prose);
        test_folder.write(&format!("data/{number}.json"), &json);
        test_folder.write(&format!("settings/{number}.ini"), &env);
        test_folder.write(&format!("src/{number}.rs"), &code);
        // In the middle of a long file, so that some secrets cross a chunk boundary.
        let long = "fn step() {\n    go();\n}\n\n".repeat(10 + number);
        test_folder.write(&format!("long/{number}.rs"), &format!("{long}{code}{long}"));
        *expected.entry(planted.rule).or_default() += 5;
    }
    let named = all
        .iter()
        .find(|planted| planted.rule == "github-pat")
        .unwrap();
    test_folder.write(&format!("src/{}.rs", named.text), "fn named() {}\n");

    let root = test_folder.repository.path().canonicalize().unwrap();
    let mut watch = |_| ControlFlow::Continue(());
    let (options, redactor) = (IndexOptions::default(), Redactor::standard());
    let database = test_folder.database();
    let indexed = index(&database, &root, "main", &options, redactor, &mut watch).unwrap();
    assert_eq!(indexed.read, all.len() as u64 * 5);
    for (rule, count) in expected {
        assert!(indexed.redacted[rule] >= count, "{rule}");
    }
    test_folder.assert_clean(&all);
}

#[test]
fn a_branch_contains_no_secret() {
    let test_folder = TestProject::new();
    let all = planted::all();
    let planted = all.iter().find(|planted| planted.rule == "github-pat");
    let token = &planted.unwrap().text;
    test_folder.write(".git/HEAD", &format!("ref: refs/heads/try/{token}\n"));
    let path = test_folder.repository.path().to_str().unwrap();
    let project = test_folder
        .data_dir
        .project(&test_folder.ada, path)
        .unwrap();
    assert_eq!(project.branch(), "try/[REDACTED:github-pat]");
    test_folder.save(NewItem::checkpoint("anything").branch(project.branch()));
    test_folder.assert_clean(&all);
}

#[test]
fn stored_names_with_a_secret_are_rejected() {
    let test_folder = TestProject::new();
    let all = planted::all();
    let planted = all.iter().find(|planted| planted.rule == "github-pat");
    let token = &planted.unwrap().text;
    test_folder.write("src/a.rs", "fn a() {}\n");
    let root = test_folder.repository.path().canonicalize().unwrap();
    let database = test_folder.database();
    for is_include in [true, false] {
        let patterns = vec![format!("src/{token}/*.rs")];
        let mut options = IndexOptions::default();
        if is_include {
            options.include = patterns;
        } else {
            options.exclude = patterns;
        }
        let mut watch = |_| ControlFlow::Continue(());
        let redactor = Redactor::standard();
        let rejected = index(&database, &root, "main", &options, redactor, &mut watch);
        assert!(rejected.unwrap_err().to_string().contains("secret"));
    }
    let path = root.to_str().unwrap();
    let project = test_folder
        .data_dir
        .project(&test_folder.ada, path)
        .unwrap();
    let name = collections::name(&test_folder.ada, project.id(), &format!("try/{token}"));
    let rejected = collections::create(&test_folder.data_dir, &test_folder.ada, &name, 3);
    assert!(rejected.unwrap_err().to_string().contains("secret"));
    test_folder.assert_clean(&all);
}
