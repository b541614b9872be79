use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::*;
use crate::Database;

/// Two numbers per text: which of two words it has.
struct Toy {
    calls: AtomicUsize,
    /// A text with this in it is too much.
    bad: &'static str,
    /// It says so, and not only that it failed.
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

struct Shelf {
    database: Arc<Database>,
    _folder: tempfile::TempDir,
}

fn shelf() -> Shelf {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(Database::open(folder.path().join("a.db")).unwrap());
    Shelf {
        database,
        _folder: folder,
    }
}

impl Shelf {
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

    /// A file of a tree with one chunk; of a run that is not finished, for tree 0.
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
        backfill(&self.database, embedder, of, |_| ControlFlow::Continue(())).await
    }

    /// The items that are nearest, and how many cannot be compared.
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
async fn what_is_missing_is_made_and_then_found() {
    let shelf = shelf();
    let rows: Vec<_> = (0..70)
        .map(|number| shelf.item(&format!("{number} about rain")))
        .collect();
    let tea = shelf.item("about tea");
    let toy = Toy::new("");
    let filled = shelf.backfill(&toy, EmbeddingSubject::Item).await.unwrap();
    assert_eq!((filled.created, filled.remaining), (71, 0));
    assert_eq!(toy.calls.load(Ordering::Relaxed), 3);
    assert_eq!(shelf.nearest("tea", 1), (vec![tea], 0));
    assert_eq!(shelf.nearest("rain", 3).0, rows[..3]);
    let covered = coverage(&shelf.database, EmbeddingSubject::Item, "toy").unwrap();
    assert_eq!((covered.created, covered.total), (71, 71));
    assert_eq!(
        shelf.backfill(&toy, EmbeddingSubject::Item).await.unwrap(),
        BackfillReport::default()
    );
}

#[tokio::test]
async fn only_files_that_are_shown_take_part() {
    let shelf = shelf();
    for (tree, path) in [(1, "a.rs"), (2, "b.rs"), (0, "c.rs")] {
        shelf.chunk(tree, path, "tea");
    }
    let filled = shelf
        .backfill(&Toy::new(""), EmbeddingSubject::Chunk)
        .await
        .unwrap();
    assert_eq!(filled.created, 2);
}

#[tokio::test]
async fn a_text_that_is_too_much_does_not_hold_up_the_others() {
    let shelf = shelf();
    for text in ["tea", "huge", "rain"] {
        shelf.item(text);
    }
    let filled = shelf
        .backfill(&Toy::new("huge"), EmbeddingSubject::Item)
        .await
        .unwrap();
    assert_eq!((filled.created, filled.remaining), (2, 1));
}

#[tokio::test]
async fn texts_that_are_refused_are_passed_over_however_they_lie() {
    let shelf = shelf();
    for number in 0..5 {
        shelf.item(&format!("{number} huge"));
    }
    for number in 0..28 {
        shelf.item(&format!("{number} tea"));
    }
    // Alone in the last batch.
    shelf.change(shelf.item("last"), "last huge");
    let mut toy = Toy::new("huge");
    toy.is_clear = true;
    let filled = shelf.backfill(&toy, EmbeddingSubject::Item).await.unwrap();
    assert_eq!((filled.created, filled.remaining), (28, 6));
}

#[tokio::test]
async fn a_provider_that_refuses_everything_is_given_up() {
    let shelf = shelf();
    for number in 0..200 {
        shelf.item(&format!("{number} huge"));
    }
    let mut toy = Toy::new("huge");
    toy.is_clear = true;
    let failed = shelf.backfill(&toy, EmbeddingSubject::Item).await;
    assert!(matches!(failed, Err(ContextError::EmbeddingRejected(_))));
    assert!(toy.calls.load(Ordering::Relaxed) < 100);
}

#[tokio::test]
async fn a_provider_that_always_fails_is_given_up() {
    let shelf = shelf();
    for number in 0..40 {
        shelf.item(&format!("{number} huge"));
    }
    let toy = Toy::new("huge");
    let failed = shelf.backfill(&toy, EmbeddingSubject::Item).await;
    assert!(matches!(failed, Err(ContextError::Embedding(_))));
    assert_eq!(toy.calls.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn it_can_be_stopped_and_goes_on_later() {
    let shelf = shelf();
    for number in 0..70 {
        shelf.item(&format!("{number}"));
    }
    let toy = Toy::new("");
    let (tell, heard) = std::sync::mpsc::channel();
    let test_thread = std::thread::current().id();
    let stopped = backfill(
        &shelf.database,
        &toy,
        EmbeddingSubject::Item,
        move |progress| {
            // It may wait for a disk.
            assert_ne!(std::thread::current().id(), test_thread);
            tell.send((progress.done, progress.total)).unwrap();
            match progress.done {
                64 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        },
    )
    .await;
    assert!(matches!(stopped, Err(ContextError::Cancelled)));
    let seen: Vec<_> = heard.iter().collect();
    assert_eq!(seen, [(0, 70), (32, 70), (64, 70)]);
    assert_eq!(
        shelf
            .backfill(&toy, EmbeddingSubject::Item)
            .await
            .unwrap()
            .created,
        6
    );
}

#[test]
fn what_changed_meanwhile_gets_no_embedding_of_what_it_was() {
    let shelf = shelf();
    let row = shelf.item("about tea");
    let mut pending =
        missing_embeddings(&shelf.database, EmbeddingSubject::Item, "toy", 0, 9).unwrap();
    shelf.change(row, "about rain");
    let made = vec![(pending.remove(0), toy("tea"))];
    assert_eq!(
        save_embeddings(&shelf.database, EmbeddingSubject::Item, "toy", made).unwrap(),
        0
    );
    let pending = missing_embeddings(&shelf.database, EmbeddingSubject::Item, "toy", 0, 9).unwrap();
    assert_eq!(pending[0].text, "title\nabout rain\n");
}

#[test]
fn embeddings_of_another_size_are_counted_and_not_compared() {
    let shelf = shelf();
    shelf.item("about tea");
    let mut pending =
        missing_embeddings(&shelf.database, EmbeddingSubject::Item, "toy", 0, 9).unwrap();
    let made = vec![(pending.remove(0), vec![1.0, 2.0, 3.0])];
    assert_eq!(
        save_embeddings(&shelf.database, EmbeddingSubject::Item, "toy", made).unwrap(),
        1
    );
    assert_eq!(shelf.nearest("tea", 9), (Vec::new(), 1));
}

#[test]
fn a_long_text_is_cut_between_letters() {
    let shelf = shelf();
    shelf.item(&"ä".repeat(50_000));
    let pending = missing_embeddings(&shelf.database, EmbeddingSubject::Item, "toy", 0, 9).unwrap();
    assert!((5_900..6_010).contains(&pending[0].text.len()));
}

#[test]
fn a_vector_gets_the_length_1() {
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
fn what_was_kept_is_compared() {
    let kept = to_bytes(&[0.6, 0.8]);
    assert!((cosine(&[0.6, 0.8], &kept).unwrap() - 1.0).abs() < 1e-6);
    assert!((cosine(&[-0.8, 0.6], &kept).unwrap()).abs() < 1e-6);
    assert_eq!(cosine(&[1.0], &kept), None);
    assert_eq!(cosine(&[0.6, 0.8], &kept[..7]), None);
}
