use std::collections::BTreeSet;

use proptest::{
    strategy::{Strategy, ValueTree as _},
    test_runner::TestRunner,
};

use super::*;
use crate::memory::{MemoryQuery, search};

/// Two stores with the same data.
struct Pair {
    sqlite: SqliteMemoryStore<Arc<DataDir>>,
    postgres: PostgresMemoryStore,
    partition: Partition,
    _folder: tempfile::TempDir,
    _server: PostgresServer,
}

impl Pair {
    async fn new() -> Self {
        let (server, folder) = (start(), tempfile::tempdir().unwrap());
        Self {
            sqlite: SqliteMemoryStore::new(Arc::new(DataDir::new(folder.path()))),
            postgres: connect(&server.url()).await,
            partition: Partition::shared(&ada()),
            _folder: folder,
            _server: server,
        }
    }

    async fn save(&self, item: PreparedItem) {
        self.sqlite
            .save(&self.partition, item.clone())
            .await
            .unwrap();
        self.postgres.save(&self.partition, item).await.unwrap();
    }
}

/// Returns random values of a strategy, the same in each run.
fn generate<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..count)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect()
}

/// Words of notes about programs, and some that differ by case, marks, endings and separators.
const WORDS: &str = "(the|a|login|Login|form|forms|cache|cached|caching|connection|connections|refused|\
    parseHttpHeader|parse_http_header|http|header|E0502|error|errors|borrow|borrowed|timeout|timeouts|\
    retry|retries|retried|café|cafe|Müller|muller|straße|ГОРОД|город|日本語|v2\\.10|2|10|don't|x-y|x|y|\
    database|databases|PostgreSQL|sqlite|migration|migrations|lock|locking|deadlock|index|indices)";

#[tokio::test(flavor = "multi_thread")]
async fn random_texts_have_the_same_candidates() {
    let pair = Pair::new().await;
    let text = format!("({WORDS}[ .,_/-]{{1,2}}){{1,12}}|\\PC{{0,30}}");
    for (at, text) in generate(text.as_str(), 250).into_iter().enumerate() {
        let item = NewItem::checkpoint(format!("{text}\n{at}")).title(text.replace('e', "é"));
        pair.save(PreparedItem::new(item.tags(["red", "green"]), 0, TIME))
            .await;
    }
    let word = WORDS
        .replace("\\.", " ")
        .replace('\'', " ")
        .replace("x-y", "x y");
    let mut terms = generate(format!("{word}( {word}){{0,2}}").as_str(), 250);
    terms.extend(["red green", "green red", "absent", "", " ", "the"].map(str::to_owned));
    for term in &mut terms {
        *term = term.to_lowercase().replace('_', " ");
    }
    let mut matches = 0;
    for terms in terms.chunks(20) {
        let kind = ItemKind::Checkpoint;
        let expected = pair
            .sqlite
            .candidates(&pair.partition, kind, terms)
            .await
            .unwrap();
        let found = pair
            .postgres
            .candidates(&pair.partition, kind, terms)
            .await
            .unwrap();
        for ((term, expected), found) in terms.iter().zip(&expected.lists).zip(&found.lists) {
            assert_eq!(found, expected, "{term:?}");
            matches += usize::from(!found.numbers.is_empty());
        }
        assert_eq!(found, expected);
    }
    assert!(matches > 100, "only {matches} terms match anything");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_data_ranks_the_same() {
    let pair = Pair::new().await;
    let text = format!("({WORDS} ){{3,40}}");
    for (at, text) in generate(text.as_str(), 400).into_iter().enumerate() {
        let item = match at % 3 {
            0 => NewItem::checkpoint(text).title(format!("step {at}")),
            1 => NewItem::remediation(text, format!("fix {at}")).detail("in a loop"),
            _ => NewItem::skill(format!("skill {at}"), "how to", text),
        };
        let item = item.confidence(0.5 + (at % 6) as f64 / 10.0);
        let time = TIME + (at as i64 * 7_919 % 400) * 3_600_000;
        pair.save(PreparedItem::new(item, 0, time)).await;
    }
    let questions = generate(format!("({WORDS} ){{1,6}}").as_str(), 120);
    let (mut hits, mut best) = (0, BTreeSet::new());
    for (at, question) in questions.into_iter().enumerate() {
        let mut query = MemoryQuery::new(ItemKind::ALL[at % 3], question);
        query.now = TIME + 1_000 * 3_600_000;
        let partitions = [pair.partition.clone()];
        let expected = search(&pair.sqlite, &partitions, &query).await.unwrap();
        let found = search(&pair.postgres, &partitions, &query).await.unwrap();
        assert_eq!(found, expected, "{}", query.text);
        hits += found.len();
        best.extend(found.first().map(|hit| hit.item.id.clone()));
    }
    assert!(
        hits > 500 && best.len() > 20,
        "{hits} hits, {} first ones",
        best.len()
    );
}
