//! Candidates of a search, by their words.

use tokio_postgres::Transaction;

use super::{
    error::AttemptError, items::count, params, partitions::PartitionId, tokens::WordQuery,
};
use crate::{
    memory::ItemKind,
    memory_store::{Cooccurrence, ItemNumber, TermCandidates, sqlite::items::row_range},
};

/// Lists the items that contain the terms.
pub(super) async fn candidates(
    tx: &Transaction<'_>,
    place: PartitionId,
    kind: ItemKind,
    terms: &[String],
) -> Result<TermCandidates, AttemptError> {
    let range = row_range(kind);
    let ends = "SELECT min(number), max(number) FROM turnbuckle.item \
                WHERE partition = $1 AND number BETWEEN $2 AND $3";
    let parameters = params![place.0 => INT8, *range.start() => INT8, *range.end() => INT8];
    let row = tx.query_typed_one(ends, parameters).await?;
    let ends: (Option<i64>, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
    let Some((oldest, newest)) = ends.0.zip(ends.1) else {
        return Ok(TermCandidates::without_items(terms.len()));
    };
    // The words are so frequent or so rare that the server's guesses lead to reading the whole table.
    tx.batch_execute("SET LOCAL enable_seqscan = off").await?;
    let key = place.key(kind);
    let most = TermCandidates::max_listed(terms.len());
    let queries: Vec<_> = terms
        .iter()
        .map(|term| WordQuery::new(&key, [&**term]))
        .collect();
    let lists = matching(tx, place, &queries, most).await?;
    let mut candidates = TermCandidates::from_lists(lists, most, oldest, newest);
    let sets = candidates.cooccurrence_sets();
    if sets.is_empty() {
        return Ok(candidates);
    }
    let queries: Vec<_> = sets
        .iter()
        .map(|set| WordQuery::new(&key, set.iter().map(|&term| &*terms[term])))
        .collect();
    let lists = matching(tx, place, &queries, TermCandidates::MAX_COOCCURRENCES).await?;
    let cooccurrences = sets.into_iter().zip(lists);
    candidates.cooccurrences = cooccurrences
        .map(|(terms, numbers)| Cooccurrence { terms, numbers })
        .collect();
    Ok(candidates)
}

/// Returns the newest items that match each query.
async fn matching(
    tx: &Transaction<'_>,
    place: PartitionId,
    queries: &[WordQuery],
    most: usize,
) -> Result<Vec<Vec<ItemNumber>>, AttemptError> {
    // The order by an expression, so that no index is read in the order of numbers: that takes long for a rare word.
    let select = "SELECT ARRAY(SELECT i.number FROM turnbuckle.item_words i \
                  WHERE q.query <> '' AND i.words @@ q.query::tsquery AND i.partition + 0 = $3 \
                  AND (q.phrases = '' OR NOT EXISTS (SELECT 1 \
                  FROM unnest(string_to_array(q.phrases, chr(10))) AS phrase \
                  WHERE strpos(i.phrases, phrase) = 0)) \
                  ORDER BY i.number + 0 DESC LIMIT $4) \
                  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS q (query, phrases, at) \
                  ORDER BY q.at";
    let texts: Vec<&str> = queries.iter().map(|query| &*query.query).collect();
    let phrases: Vec<&str> = queries.iter().map(|query| &*query.phrases).collect();
    let parameters = params![
        texts => TEXT_ARRAY,
        phrases => TEXT_ARRAY,
        place.0 => INT8,
        count(most) => INT8,
    ];
    let mut lists = Vec::with_capacity(queries.len());
    for row in tx.query_typed(select, parameters).await? {
        let numbers: Vec<i64> = row.try_get(0)?;
        lists.push(numbers.into_iter().map(ItemNumber::new).collect());
    }
    Ok(lists)
}
