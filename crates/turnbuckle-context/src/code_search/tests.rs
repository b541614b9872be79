use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::{code_index::tree_for, text::tokenize::identifier_parts};

/// A database with a tree.
struct TestDatabase {
    db: Database,
    _folder: tempfile::TempDir,
}

/// The owner of a file: a tree, or an unfinished run.
#[derive(Clone, Copy)]
enum FileState {
    Tree(i64),
    Run,
}

const TREE: i64 = 1;

impl TestDatabase {
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

    /// Adds files with one chunk each: path, defined names, text.
    fn with(files: &[(&str, &str, &str)]) -> Self {
        let database = Self::new();
        for (path, defs, body) in files {
            database.add(FileState::Tree(TREE), path, &[(defs, body)]);
        }
        database
    }

    fn add(&self, of: FileState, path: &str, chunks: &[(&str, &str)]) {
        let (tree, run) = match of {
            FileState::Tree(tree) => (Some(tree), None),
            FileState::Run => (None, Some(1)),
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

    fn search_all(&self, query: &CodeQuery) -> Vec<FileHit> {
        search(&self.db, &self.tree(), query).unwrap()
    }

    fn paths(&self, query: &CodeQuery) -> Vec<String> {
        self.search_all(query)
            .into_iter()
            .map(|hit| hit.path)
            .collect()
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
fn a_query_finds_files_with_any_of_its_words() {
    let database = TestDatabase::with(&[
        ("src/a.rs", "", "retries the connection with backoff"),
        ("src/b.rs", "", "paints a window"),
    ]);
    let hits = database.search_all(&CodeQuery::new("how are failed connections retried?"));
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
fn another_tree_and_an_unfinished_run_are_not_searched() {
    let database = TestDatabase::with(&[("seen.rs", "", "the needle")]);
    database.add(FileState::Tree(2), "other.rs", &[("", "a needle needle")]);
    database.add(FileState::Run, "staged.rs", &[("needle", "fn needle")]);
    assert_eq!(database.find("needle"), ["seen.rs"]);
}

#[test]
fn many_staged_files_do_not_displace_files_of_the_tree() {
    let database = TestDatabase::with(&[(
        "seen.rs",
        "",
        "a long text in which a needle is hidden somewhere",
    )]);
    let staged: Vec<(&str, &str)> = vec![("needle", "needle"); 1_000];
    database.add(FileState::Run, "staged.rs", &staged);
    assert_eq!(database.find("needle"), ["seen.rs"]);
}

#[test]
fn the_definition_of_a_name_ranks_before_its_uses() {
    let database = TestDatabase::with(&[
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
    // bm25 gives no weight to words in most chunks.
    for file in 0..20 {
        let path = format!("other{file}.rs");
        database.add(FileState::Tree(TREE), &path, &[("", "something else")]);
    }
    assert_eq!(database.find("open_file")[0], "b.rs");
    assert_eq!(
        database.find("where is open_file called or defined")[0],
        "b.rs"
    );
    assert_eq!(database.find("OpenFile")[0], "c.rs");
    assert_eq!(database.find("File::open_file()")[0], "b.rs");
    assert_eq!(database.find("open_file").len(), 3);
}

#[test]
fn synonyms_rank_after_the_words_of_the_query() {
    let database = TestDatabase::with(&[
        ("a.rs", "", "walks a dir"),
        ("b.rs", "", "opens the folder of the user and does more"),
        ("c.rs", "", "paints"),
    ]);
    assert_eq!(database.find("open a folder"), ["b.rs", "a.rs"]);
    assert_eq!(database.find("folder"), ["b.rs"]);
}

#[test]
fn documentation_and_declarations_rank_lower_unless_requested() {
    let text = "matches the route of a request";
    let database =
        TestDatabase::with(&[("a.md", "", text), ("b.d.ts", "", text), ("c.ts", "", text)]);
    let db = &database.db;
    let set = "UPDATE file SET language = 'markdown' WHERE path = 'a.md'";
    db.write(|db| Ok(db.execute(set, [])?)).unwrap();
    assert_eq!(
        database.find("how routes match"),
        ["c.ts", "b.d.ts", "a.md"]
    );
    assert_eq!(database.find("manual of how routes match")[0], "a.md");
}

#[test]
fn a_path_finds_its_file() {
    let database = TestDatabase::with(&[
        ("src/lib.rs", "", "mod routing;"),
        ("crates/a/src/lib.rs", "", "mod other;"),
        (
            "src/main.rs",
            "",
            "// see src/lib.rs, src/lib.rs and src/lib.rs",
        ),
    ]);
    assert_eq!(
        database.find("crates/a/src/lib.rs")[0],
        "crates/a/src/lib.rs"
    );
    assert_eq!(
        database.find("/home/someone/project/src/main.rs:3")[0],
        "src/main.rs"
    );
    assert!(database.find("lib.rs")[..2].contains(&"src/lib.rs".to_owned()));
}

#[test]
fn a_quoted_phrase_ranks_before_its_single_words() {
    let database = TestDatabase::with(&[
        (
            "a.rs",
            "",
            "the connection was lost, and the guests rejected connection",
        ),
        (
            "b.rs",
            "",
            "some long text that ends with connection rejected as its message",
        ),
    ]);
    assert_eq!(database.find("\"connection rejected\"")[0], "b.rs");
}

#[test]
fn tests_rank_lower_unless_requested() {
    let database = TestDatabase::with(&[
        (
            "src/route.rs",
            "",
            "matches the route of a request, with parameters",
        ),
        ("tests/route.rs", "", "matches the route of a request"),
    ]);
    assert_eq!(
        database.find("match the route of a request")[0],
        "src/route.rs"
    );
    assert_eq!(
        database.find("tests that match the route of a request")[0],
        "tests/route.rs"
    );
}

#[test]
fn file_and_folder_names_raise_the_score() {
    let database = TestDatabase::with(&[
        ("src/other/thing.rs", "", "compress the body"),
        ("src/compression/layer.rs", "", "compress the body"),
        ("src/other/compressing.rs", "", "compress the body"),
    ]);
    let found = database.find("compressing bodies in a layer");
    assert_eq!(found.last().unwrap(), "src/other/thing.rs");
}

#[test]
fn a_file_with_several_matching_chunks_ranks_before_one_with_a_single_match() {
    let database = TestDatabase::new();
    let text = "parses the header";
    database.add(FileState::Tree(TREE), "a.rs", &[("", text)]);
    database.add(
        FileState::Tree(TREE),
        "b.rs",
        &[("", text), ("", text), ("", text)],
    );
    database.add(
        FileState::Tree(TREE),
        "c.rs",
        &[("", "nothing of the kind")],
    );
    assert_eq!(database.find("header parsing"), ["b.rs", "a.rs"]);
}

#[test]
fn results_are_filtered_by_language() {
    let database = TestDatabase::with(&[("a.rs", "", "needle"), ("b.py", "", "needle needle")]);
    let query = CodeQuery {
        language: Some("RS".into()),
        ..CodeQuery::new("needle")
    };
    assert_eq!(database.paths(&query), ["a.rs"]);
}

#[test]
fn results_are_filtered_by_path_prefix_and_pattern() {
    let all = [
        "a.rs",
        "src/a.rs",
        "src/b.ts",
        "src/deep/c.rs",
        "src/deep/er/d.rs",
        "tools/e.tsx",
    ];
    let files: Vec<_> = all.iter().map(|path| (*path, "", "needle")).collect();
    let database = TestDatabase::with(&files);
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
        let mut found = database.paths(&in_path("needle", filter));
        found.sort_unstable();
        assert_eq!(found, expected, "{filter}");
    }
}

#[test]
fn files_in_a_rare_language_are_found() {
    let database = TestDatabase::new();
    for file in 0..600 {
        database.add(
            FileState::Tree(TREE),
            &format!("{file}.rs"),
            &[("", "needle")],
        );
    }
    database.add(
        FileState::Tree(TREE),
        "a.py",
        &[("", "one needle in a text that is much longer")],
    );
    assert_eq!(database.paths(&in_path("needle", "*.py")), ["a.py"]);
    assert_eq!(database.find("needle").len(), 10);
}

#[test]
fn the_limit_is_respected() {
    let files: Vec<String> = (0..150).map(|file| format!("{file}.rs")).collect();
    let files: Vec<_> = files
        .iter()
        .map(|path| (path.as_str(), "", "needle"))
        .collect();
    let database = TestDatabase::with(&files);
    for (limit, expected) in [(0, 0), (3, 3), (usize::MAX, MAX_FILES)] {
        let query = CodeQuery {
            limit,
            ..CodeQuery::new("needle")
        };
        assert_eq!(database.search_all(&query).len(), expected);
    }
}

#[test]
fn embeddings_complement_words() {
    let database = TestDatabase::with(&[
        ("a.rs", "", "automobile"),
        ("b.rs", "", "vehicle"),
        ("c.rs", "", "bicycle"),
    ]);
    database.vectors(&[(1, [1.0, 0.0]), (2, [0.8, 0.6]), (3, [-1.0, 0.0])]);
    let query = CodeQuery {
        embedding: Some(EmbeddingQuery {
            model: "model".into(),
            vector: vec![1.0, 0.0],
        }),
        ..CodeQuery::new("vehicle")
    };
    assert_eq!(database.paths(&query), ["b.rs", "a.rs"]);
    let other_model = CodeQuery {
        embedding: Some(EmbeddingQuery {
            model: "other".into(),
            vector: vec![1.0, 0.0],
        }),
        ..CodeQuery::new("vehicle")
    };
    assert_eq!(database.paths(&other_model), ["b.rs"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_query_with_any_filter_is_accepted(
        text in any::<String>(), path in "[a-z*?\\[\\]{},/.\\\\-]{0,12}", language in "[a-z'\"]{0,3}",
    ) {
        let database = TestDatabase::with(&[("a.rs", "name", "some text"), ("b/c.py", "", &text)]);
        let query = CodeQuery { language: Some(language), ..in_path(&text, &path) };
        search(&database.db, &database.tree(), &query).unwrap();
        search(&database.db, &database.tree(), &CodeQuery::new(path)).unwrap();
    }
}
