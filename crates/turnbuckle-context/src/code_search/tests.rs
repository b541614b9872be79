use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::{code_index::tree_for, text::tokenize::identifier_parts};

/// A database with a tree, and room for others.
struct Shelf {
    db: Database,
    _folder: tempfile::TempDir,
}

/// Whom a file belongs to: a tree, or a run that is not finished.
#[derive(Clone, Copy)]
enum Of {
    Tree(i64),
    Run,
}

const TREE: i64 = 1;

impl Shelf {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(folder.path().join("a.db")).unwrap();
        db.write(|db| {
            for tree in [TREE, 2] {
                let insert = "INSERT INTO tree (id, root, branch, settings, counts, refreshed)
                              VALUES (?1, '/tree/' || ?1, 'main', '{}', '{}', 0)";
                db.execute(insert, [tree])?;
            }
            db.execute("INSERT INTO run VALUES (1, '1', 0)", [])?;
            Ok(())
        })
        .unwrap();
        Self {
            db,
            _folder: folder,
        }
    }

    /// Files with one chunk each: path, names it defines, text.
    fn with(files: &[(&str, &str, &str)]) -> Self {
        let shelf = Self::new();
        for (path, defs, body) in files {
            shelf.add(Of::Tree(TREE), path, &[(defs, body)]);
        }
        shelf
    }

    fn add(&self, of: Of, path: &str, chunks: &[(&str, &str)]) {
        let (tree, run) = match of {
            Of::Tree(tree) => (Some(tree), None),
            Of::Run => (None, Some(1)),
        };
        let language = path.rsplit('.').next().unwrap();
        let write = |db: &Transaction<'_>| {
            let insert =
                "INSERT INTO file (tree, run, path, size, modified, hash, language, indexed)
                          VALUES (?1, ?2, ?3, 0, 0, x'', ?4, 0)";
            db.execute(insert, (tree, run, path, language))?;
            let file = db.last_insert_rowid();
            for (line, (defs, body)) in (1..).zip(chunks) {
                let symbol = defs.split(' ').next();
                let insert = "INSERT INTO chunk (file, first_line, last_line, symbol, defs, body)
                              VALUES (?1, ?2, ?2, ?3, ?4, ?5)";
                db.execute(insert, (file, line, symbol, defs, body))?;
                let insert = "INSERT INTO chunk_fts (rowid, body, idents, path, defs)
                              VALUES (?1, ?2, ?3, ?4, ?5)";
                let id = db.last_insert_rowid();
                db.execute(insert, (id, body, identifier_parts(body), path, defs))?;
            }
            Ok(())
        };
        self.db.write(write).unwrap();
    }

    fn vectors(&self, vectors: &[(i64, [f32; 2])]) {
        let write = |db: &Transaction<'_>| {
            for (chunk, vector) in vectors {
                let data: Vec<u8> = vector.iter().flat_map(|part| part.to_le_bytes()).collect();
                let insert = "INSERT INTO vector VALUES ('chunk', ?1, 'model', ?2)";
                db.execute(insert, (chunk, data))?;
            }
            Ok(())
        };
        self.db.write(write).unwrap();
    }

    fn tree(&self) -> IndexTree {
        let root = Path::new("/tree/1");
        tree_for(&self.db, root).unwrap().unwrap()
    }

    fn ask(&self, query: &CodeQuery) -> Vec<FileHit> {
        search(&self.db, &self.tree(), query).unwrap()
    }

    fn paths(&self, query: &CodeQuery) -> Vec<String> {
        self.ask(query).into_iter().map(|hit| hit.path).collect()
    }

    fn find(&self, text: &str) -> Vec<String> {
        self.paths(&CodeQuery::new(text))
    }
}

fn in_path(text: &str, path: &str) -> CodeQuery {
    CodeQuery {
        path: Some(path.to_owned()),
        ..CodeQuery::new(text)
    }
}

#[test]
fn a_question_finds_what_its_words_are_in_and_not_only_what_has_all_of_them() {
    let shelf = Shelf::with(&[
        ("src/a.rs", "", "retries the connection with backoff"),
        ("src/b.rs", "", "paints a window"),
    ]);
    let hits = shelf.ask(&CodeQuery::new("how are failed connections retried?"));
    assert_eq!(hits.len(), 1);
    let expected = ChunkHit {
        first_line: 1,
        last_line: 1,
        symbol: String::new(),
        kind: String::new(),
        body: "retries the connection with backoff".into(),
        score: 1.0,
    };
    assert_eq!(hits[0].chunks, [expected]);
    assert_eq!((hits[0].path.as_str(), hits[0].score), ("src/a.rs", 1.0));
}

#[test]
fn another_tree_and_an_unfinished_run_are_not_seen() {
    let shelf = Shelf::with(&[("seen.rs", "", "the needle")]);
    shelf.add(Of::Tree(2), "other.rs", &[("", "a needle needle")]);
    shelf.add(Of::Run, "staged.rs", &[("needle", "fn needle")]);
    assert_eq!(shelf.find("needle"), ["seen.rs"]);
}

#[test]
fn what_is_staged_in_masses_does_not_crowd_out_the_tree() {
    let shelf = Shelf::with(&[(
        "seen.rs",
        "",
        "a long text in which a needle is hidden somewhere",
    )]);
    let staged: Vec<(&str, &str)> = vec![("needle", "needle"); 1_000];
    shelf.add(Of::Run, "staged.rs", &staged);
    assert_eq!(shelf.find("needle"), ["seen.rs"]);
}

#[test]
fn the_definition_of_a_name_comes_before_its_uses() {
    let shelf = Shelf::with(&[
        (
            "a.rs",
            "caller",
            "fn caller() { open_file(); let other = 1; open_file(); let more = 2; }",
        ),
        (
            "b.rs",
            "open_file",
            "fn open_file() { let a = 1; let b = 2; let c = 3; something() }",
        ),
        (
            "c.rs",
            "OpenFile",
            "struct OpenFile { handle: u32, name: String, other: u64 }",
        ),
    ]);
    // What most chunks have is worth nothing to bm25.
    for file in 0..20 {
        let path = format!("other{file}.rs");
        shelf.add(Of::Tree(TREE), &path, &[("", "something else")]);
    }
    assert_eq!(shelf.find("open_file")[0], "b.rs");
    assert_eq!(
        shelf.find("where is open_file called or defined")[0],
        "b.rs"
    );
    assert_eq!(shelf.find("OpenFile")[0], "c.rs");
    assert_eq!(shelf.find("File::open_file()")[0], "b.rs");
    assert_eq!(shelf.find("open_file").len(), 3);
}

#[test]
fn words_for_the_same_thing_are_found_after_the_words_asked_for() {
    let shelf = Shelf::with(&[
        ("a.rs", "", "walks a dir"),
        ("b.rs", "", "opens the folder of the user and does more"),
        ("c.rs", "", "paints"),
    ]);
    assert_eq!(shelf.find("open a folder"), ["b.rs", "a.rs"]);
    assert_eq!(shelf.find("folder"), ["b.rs"]);
}

#[test]
fn documentation_and_declarations_count_less_unless_they_are_asked_for() {
    let text = "matches the route of a request";
    let shelf = Shelf::with(&[("a.md", "", text), ("b.d.ts", "", text), ("c.ts", "", text)]);
    let db = &shelf.db;
    let set = "UPDATE file SET language = 'markdown' WHERE path = 'a.md'";
    db.write(|db| Ok(db.execute(set, [])?)).unwrap();
    assert_eq!(shelf.find("how routes match"), ["c.ts", "b.d.ts", "a.md"]);
    assert_eq!(shelf.find("manual of how routes match")[0], "a.md");
}

#[test]
fn a_path_finds_its_file() {
    let shelf = Shelf::with(&[
        ("src/lib.rs", "", "mod routing;"),
        ("crates/a/src/lib.rs", "", "mod other;"),
        (
            "src/main.rs",
            "",
            "// see src/lib.rs, src/lib.rs and src/lib.rs",
        ),
    ]);
    assert_eq!(shelf.find("crates/a/src/lib.rs")[0], "crates/a/src/lib.rs");
    assert_eq!(
        shelf.find("/home/someone/project/src/main.rs:3")[0],
        "src/main.rs"
    );
    assert!(shelf.find("lib.rs")[..2].contains(&"src/lib.rs".to_owned()));
}

#[test]
fn a_quoted_phrase_comes_before_its_words_apart() {
    let shelf = Shelf::with(&[
        (
            "a.rs",
            "",
            "the connection was lost, and the guests refused connection",
        ),
        (
            "b.rs",
            "",
            "some long text that ends with connection refused as its message",
        ),
    ]);
    assert_eq!(shelf.find("\"connection refused\"")[0], "b.rs");
}

#[test]
fn tests_count_less_unless_they_are_asked_for() {
    let shelf = Shelf::with(&[
        (
            "src/route.rs",
            "",
            "matches the route of a request, with parameters",
        ),
        ("tests/route.rs", "", "matches the route of a request"),
    ]);
    assert_eq!(
        shelf.find("match the route of a request")[0],
        "src/route.rs"
    );
    assert_eq!(
        shelf.find("tests that match the route of a request")[0],
        "tests/route.rs"
    );
}

#[test]
fn the_name_of_a_file_and_of_its_folder_counts() {
    let shelf = Shelf::with(&[
        ("src/other/thing.rs", "", "compress the body"),
        ("src/compression/layer.rs", "", "compress the body"),
        ("src/other/compressing.rs", "", "compress the body"),
    ]);
    let found = shelf.find("compressing bodies in a layer");
    assert_eq!(found.last().unwrap(), "src/other/thing.rs");
}

#[test]
fn a_file_with_several_fitting_places_comes_before_one_with_a_single_one() {
    let shelf = Shelf::new();
    let text = "parses the header";
    shelf.add(Of::Tree(TREE), "a.rs", &[("", text)]);
    shelf.add(
        Of::Tree(TREE),
        "b.rs",
        &[("", text), ("", text), ("", text)],
    );
    shelf.add(Of::Tree(TREE), "c.rs", &[("", "nothing of the kind")]);
    assert_eq!(shelf.find("header parsing"), ["b.rs", "a.rs"]);
}

#[test]
fn the_language_can_be_chosen() {
    let shelf = Shelf::with(&[("a.rs", "", "needle"), ("b.py", "", "needle needle")]);
    let query = CodeQuery {
        language: Some("RS".into()),
        ..CodeQuery::new("needle")
    };
    assert_eq!(shelf.paths(&query), ["a.rs"]);
}

#[test]
fn paths_can_be_chosen_by_prefix_and_by_pattern() {
    let all = [
        "a.rs",
        "src/a.rs",
        "src/b.ts",
        "src/deep/c.rs",
        "src/deep/er/d.rs",
        "tools/e.tsx",
    ];
    let files: Vec<_> = all.iter().map(|path| (*path, "", "needle")).collect();
    let shelf = Shelf::with(&files);
    for (filter, expected) in [
        ("src", &all[1..5]),
        ("./src/deep/", &all[3..5]),
        ("/src/a.rs", &all[1..2]),
        ("/tree/1/src/deep", &all[3..5]),
        ("/tree/1/src/*.rs", &all[1..2]),
        ("", &all[..]),
        ("/tree/1", &all[..]),
        ("src/*.rs", &all[1..2]),
        ("src/*/*.rs", &all[3..4]),
        ("src/**/c.rs", &all[3..4]),
        ("src/**/*.{rs,ts}", &all[1..5]),
        (
            "**/*.rs",
            &["a.rs", "src/a.rs", "src/deep/c.rs", "src/deep/er/d.rs"],
        ),
        ("*.{ts,tsx}", &["src/b.ts", "tools/e.tsx"]),
        (
            "?.rs",
            &["a.rs", "src/a.rs", "src/deep/c.rs", "src/deep/er/d.rs"],
        ),
        ("nowhere/*", &[]),
    ] {
        let mut found = shelf.paths(&in_path("needle", filter));
        found.sort_unstable();
        assert_eq!(found, expected, "{filter}");
    }
}

#[test]
fn a_rare_language_is_found_among_masses_of_another() {
    let shelf = Shelf::new();
    for file in 0..600 {
        shelf.add(Of::Tree(TREE), &format!("{file}.rs"), &[("", "needle")]);
    }
    shelf.add(
        Of::Tree(TREE),
        "a.py",
        &[("", "one needle in a text that is much longer")],
    );
    assert_eq!(shelf.paths(&in_path("needle", "*.py")), ["a.py"]);
    assert_eq!(shelf.find("needle").len(), 10);
}

#[test]
fn the_limit_is_kept() {
    let files: Vec<String> = (0..150).map(|file| format!("{file}.rs")).collect();
    let files: Vec<_> = files
        .iter()
        .map(|path| (path.as_str(), "", "needle"))
        .collect();
    let shelf = Shelf::with(&files);
    for (limit, expected) in [(0, 0), (3, 3), (usize::MAX, MAX_FILES)] {
        let query = CodeQuery {
            limit,
            ..CodeQuery::new("needle")
        };
        assert_eq!(shelf.ask(&query).len(), expected);
    }
}

#[test]
fn meaning_adds_to_words() {
    let shelf = Shelf::with(&[
        ("a.rs", "", "automobile"),
        ("b.rs", "", "vehicle"),
        ("c.rs", "", "bicycle"),
    ]);
    shelf.vectors(&[(1, [1.0, 0.0]), (2, [0.8, 0.6]), (3, [-1.0, 0.0])]);
    let query = CodeQuery {
        embedding: Some(EmbeddingQuery {
            model: "model".into(),
            vector: vec![1.0, 0.0],
        }),
        ..CodeQuery::new("vehicle")
    };
    assert_eq!(shelf.paths(&query), ["b.rs", "a.rs"]);
    let other_model = CodeQuery {
        embedding: Some(EmbeddingQuery {
            model: "other".into(),
            vector: vec![1.0, 0.0],
        }),
        ..CodeQuery::new("vehicle")
    };
    assert_eq!(shelf.paths(&other_model), ["b.rs"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_question_with_any_filter_has_an_answer(
        text in any::<String>(), path in "[a-z*?\\[\\]{},/.\\\\-]{0,12}", language in "[a-z'\"]{0,3}",
    ) {
        let shelf = Shelf::with(&[("a.rs", "name", "some text"), ("b/c.py", "", &text)]);
        let query = CodeQuery { language: Some(language), ..in_path(&text, &path) };
        search(&shelf.db, &shelf.tree(), &query).unwrap();
        search(&shelf.db, &shelf.tree(), &CodeQuery::new(path)).unwrap();
    }
}
