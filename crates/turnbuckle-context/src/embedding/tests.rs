use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{backfill::BackfillReport, *};
use crate::{
    DataDir, Database, Owner,
    memory_store::{Partition, SqliteMemoryStore},
};

/// An embedder with two dimensions: the presence of two words.
struct Toy {
    calls: AtomicUsize,
    /// Texts with this word fail.
    bad: &'static str,
    /// True to fail with a rejection of the text.
    is_clear: bool,
}

impl Toy {
    fn new(bad: &'static str) -> Self {
        let calls = AtomicUsize::new(0);
        let is_clear = false;
        Self {
            calls,
            bad,
            is_clear,
        }
    }
}

impl Embedder for Toy {
    fn model(&self) -> &str {
        "toy"
    }

    fn embed(&self, texts: Vec<String>) -> EmbeddingFuture<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let is_bad = |text: &String| !self.bad.is_empty() && text.contains(self.bad);
        let made = match texts.iter().any(is_bad) {
            true if self.is_clear => Err(ContextError::EmbeddingRejected("too long".into())),
            true => Err(ContextError::Embedding("too long".into())),
            false => Ok(texts.iter().map(|text| toy(text)).collect()),
        };
        Box::pin(std::future::ready(made))
    }
}

fn toy(text: &str) -> Vec<f32> {
    let has = |word: &str| f32::from(u8::from(text.contains(word)));
    let vector = vec![has("tea") + 0.01, has("rain") + 0.01];
    unit(vector).unwrap()
}

struct TestDatabase {
    data_dir: Arc<DataDir>,
    database: Arc<Database>,
    _folder: tempfile::TempDir,
}

/// The texts that a test embeds.
#[derive(Clone, Copy)]
enum EmbeddingSubject {
    Item,
    Chunk,
}

fn database() -> TestDatabase {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = Arc::new(DataDir::new(folder.path()));
    let database = data_dir.open_shared(&Owner::for_user("ada")).unwrap();
    TestDatabase {
        data_dir,
        database,
        _folder: folder,
    }
}

impl TestDatabase {
    fn item(&self, body: &str) -> i64 {
        let insert = "INSERT INTO item (id, kind, branch, title, body, hash, created, updated)
            VALUES (?1, 'checkpoint', 'main', 'title', ?1, ?1, 0, 0)";
        let add = |db: &rusqlite::Transaction<'_>| {
            db.execute(insert, [body])?;
            Ok(db.last_insert_rowid())
        };
        self.database.write(add).unwrap()
    }

    fn change(&self, row: i64, body: &str) {
        let update = "UPDATE item SET body = ?1 WHERE row = ?2";
        let change = |db: &rusqlite::Transaction<'_>| Ok(db.execute(update, (body, row))?);
        self.database.write(change).unwrap();
    }

    /// Adds a file with one chunk to a tree, or to an unfinished run if the tree is 0.
    fn chunk(&self, tree: i64, path: &str, body: &str) -> i64 {
        self.database
            .write(|db| {
                db.execute_batch(
                    "INSERT OR IGNORE INTO tree VALUES (1, '/a', 'main', '{}', '{}', 0, 0);
                    INSERT OR IGNORE INTO tree VALUES (2, '/b', 'main', '{}', '{}', 0, 0);
                    INSERT OR IGNORE INTO run VALUES (1, '/a', 0);",
                )?;
                let insert =
                    "INSERT INTO file (tree, run, path, size, modified, hash, language, indexed)
                    VALUES (nullif(?1, 0), iif(?1 = 0, 1, NULL), ?2, 0, 0, x'', 'rust', 0)";
                db.execute(insert, (tree, path))?;
                let insert =
                    "INSERT INTO chunk (file, first_line, last_line, body) VALUES (?1, 1, 1, ?2)";
                db.execute(insert, (db.last_insert_rowid(), body))?;
                Ok(db.last_insert_rowid())
            })
            .unwrap()
    }

    async fn backfill(
        &self,
        embedder: &Toy,
        of: EmbeddingSubject,
    ) -> Result<BackfillReport, ContextError> {
        backfill(self.source(of), embedder, |_| ControlFlow::Continue(())).await
    }

    fn source(&self, of: EmbeddingSubject) -> EmbeddingSource {
        let (data_dir, partition) = (
            self.data_dir.clone(),
            Partition::shared(&Owner::for_user("ada")),
        );
        match of {
            EmbeddingSubject::Item => {
                EmbeddingSource::Items(Arc::new(SqliteMemoryStore::new(data_dir)), partition)
            }
            EmbeddingSubject::Chunk => EmbeddingSource::Chunks(data_dir, partition),
        }
    }

    /// Returns the nearest items, and the number of embeddings that cannot be compared.
    fn nearest(&self, text: &str, limit: usize) -> (Vec<i64>, usize) {
        let select = "SELECT row, data FROM vector WHERE of = 'item' AND model = 'toy'";
        let look = |db: &rusqlite::Transaction<'_>| {
            let mut select = db.prepare(select)?;
            Ok(nearest(select.query([])?, &toy(text), limit)?)
        };
        let found = self.database.read(look).unwrap();
        (
            found.rows.into_iter().map(|(row, _)| row).collect(),
            found.skipped,
        )
    }
}

#[tokio::test]
async fn missing_embeddings_are_created_and_found() {
    let database = database();
    let rows: Vec<_> = (0..70)
        .map(|number| database.item(&format!("{number} about rain")))
        .collect();
    let tea = database.item("about tea");
    let toy = Toy::new("");
    let filled = database
        .backfill(&toy, EmbeddingSubject::Item)
        .await
        .unwrap();
    assert_eq!((filled.created, filled.remaining), (71, 0));
    assert_eq!(toy.calls.load(Ordering::Relaxed), 3);
    assert_eq!(database.nearest("tea", 1), (vec![tea], 0));
    assert_eq!(database.nearest("rain", 3).0, rows[..3]);
    let covered = database
        .source(EmbeddingSubject::Item)
        .coverage("toy")
        .unwrap();
    assert_eq!((covered.created, covered.total), (71, 71));
    assert_eq!(
        database
            .backfill(&toy, EmbeddingSubject::Item)
            .await
            .unwrap(),
        BackfillReport::default()
    );
}

#[tokio::test]
async fn only_published_files_are_embedded() {
    let database = database();
    for (tree, path) in [(1, "a.rs"), (2, "b.rs"), (0, "c.rs")] {
        database.chunk(tree, path, "tea");
    }
    let filled = database
        .backfill(&Toy::new(""), EmbeddingSubject::Chunk)
        .await
        .unwrap();
    assert_eq!(filled.created, 2);
}

#[tokio::test]
async fn a_rejected_text_does_not_block_the_others() {
    let database = database();
    for text in ["tea", "huge", "rain"] {
        database.item(text);
    }
    let filled = database
        .backfill(&Toy::new("huge"), EmbeddingSubject::Item)
        .await
        .unwrap();
    assert_eq!((filled.created, filled.remaining), (2, 1));
}

#[tokio::test]
async fn rejected_texts_are_skipped_in_any_position() {
    let database = database();
    for number in 0..5 {
        database.item(&format!("{number} huge"));
    }
    for number in 0..28 {
        database.item(&format!("{number} tea"));
    }
    // The only text in the last batch.
    database.change(database.item("last"), "last huge");
    let mut toy = Toy::new("huge");
    toy.is_clear = true;
    let filled = database
        .backfill(&toy, EmbeddingSubject::Item)
        .await
        .unwrap();
    assert_eq!((filled.created, filled.remaining), (28, 6));
}

#[tokio::test]
async fn the_backfill_ends_if_the_provider_rejects_everything() {
    let database = database();
    for number in 0..200 {
        database.item(&format!("{number} huge"));
    }
    let mut toy = Toy::new("huge");
    toy.is_clear = true;
    let failed = database.backfill(&toy, EmbeddingSubject::Item).await;
    assert!(matches!(failed, Err(ContextError::EmbeddingRejected(_))));
    assert!(toy.calls.load(Ordering::Relaxed) < 100);
}

#[tokio::test]
async fn the_backfill_ends_if_the_provider_always_fails() {
    let database = database();
    for number in 0..40 {
        database.item(&format!("{number} huge"));
    }
    let toy = Toy::new("huge");
    let failed = database.backfill(&toy, EmbeddingSubject::Item).await;
    assert!(matches!(failed, Err(ContextError::Embedding(_))));
    assert_eq!(toy.calls.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_backfill_can_be_stopped_and_continued() {
    let database = database();
    for number in 0..70 {
        database.item(&format!("{number}"));
    }
    let toy = Toy::new("");
    let (sender, receiver) = std::sync::mpsc::channel();
    let test_thread = std::thread::current().id();
    let stopped = backfill(
        database.source(EmbeddingSubject::Item),
        &toy,
        move |progress| {
            // The callback may block.
            assert_ne!(std::thread::current().id(), test_thread);
            sender.send((progress.done, progress.total)).unwrap();
            match progress.done {
                64 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        },
    )
    .await;
    assert!(matches!(stopped, Err(ContextError::Cancelled)));
    let seen: Vec<_> = receiver.iter().collect();
    assert_eq!(seen, [(0, 70), (32, 70), (64, 70)]);
    assert_eq!(
        database
            .backfill(&toy, EmbeddingSubject::Item)
            .await
            .unwrap()
            .created,
        6
    );
}

#[test]
fn a_changed_text_does_not_get_an_outdated_embedding() {
    let database = database();
    let row = database.item("about tea");
    let mut pending = database
        .source(EmbeddingSubject::Item)
        .missing("toy", 0, 9)
        .unwrap();
    database.change(row, "about rain");
    let made = vec![(pending.remove(0), toy("tea"))];
    assert_eq!(
        database
            .source(EmbeddingSubject::Item)
            .save("toy", made)
            .unwrap(),
        0
    );
    let pending = database
        .source(EmbeddingSubject::Item)
        .missing("toy", 0, 9)
        .unwrap();
    assert_eq!(pending[0].text, "title\nabout rain\n");
}

#[test]
fn embeddings_with_other_dimensions_are_counted_and_skipped() {
    let database = database();
    database.item("about tea");
    let mut pending = database
        .source(EmbeddingSubject::Item)
        .missing("toy", 0, 9)
        .unwrap();
    let made = vec![(pending.remove(0), vec![1.0, 2.0, 3.0])];
    assert_eq!(
        database
            .source(EmbeddingSubject::Item)
            .save("toy", made)
            .unwrap(),
        1
    );
    assert_eq!(database.nearest("tea", 9), (Vec::new(), 1));
}

#[test]
fn a_long_text_is_truncated_at_a_character_boundary() {
    let database = database();
    database.item(&"ä".repeat(50_000));
    let pending = database
        .source(EmbeddingSubject::Item)
        .missing("toy", 0, 9)
        .unwrap();
    assert!((5_900..6_010).contains(&pending[0].text.len()));
}

#[test]
fn a_vector_is_normalized_to_length_1() {
    assert_eq!(unit(vec![3.0, 4.0]), Some(vec![0.6, 0.8]));
    for bad in [
        vec![],
        vec![0.0, 0.0],
        vec![f32::NAN],
        vec![f32::INFINITY],
        vec![1.0; MAX_DIMENSIONS + 1],
    ] {
        assert_eq!(unit(bad), None);
    }
}

#[test]
fn a_vector_is_compared_with_a_stored_one() {
    let stored = to_bytes(&[0.6, 0.8]);
    assert!((cosine(&[0.6, 0.8], &stored).unwrap() - 1.0).abs() < 1e-6);
    assert!((cosine(&[-0.8, 0.6], &stored).unwrap()).abs() < 1e-6);
    assert_eq!(cosine(&[1.0], &stored), None);
    assert_eq!(cosine(&[0.6, 0.8], &stored[..7]), None);
}
