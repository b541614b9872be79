use std::sync::Arc;

use super::{PROJECT, TIME, ada, create_project, matching, save};
use crate::{
    memory::{ItemKind, NewItem, PreparedItem},
    memory_store::{ImportEntry, MemoryStore, TermCandidates, TermList},
};

/// Checks the candidates of terms.
pub async fn candidates(make: impl AsyncFn() -> Arc<dyn MemoryStore>) {
    words_are_compared_as_fts5_does(&*make().await).await;
    words_that_differ_do_not_match(&*make().await).await;
    a_phrase_matches_adjacent_words_of_one_member(&*make().await).await;
    all_members_are_searched(&*make().await).await;
    candidates_have_the_kind(&*make().await).await;
    frequent_terms_are_cut_and_estimated(&*make().await).await;
}

/// Checks whether a term matches a text.
async fn assert_match(store: &dyn MemoryStore, text: &str, term: &str, expected: bool) {
    let partition = create_project(store, &ada(), PROJECT).await;
    save(store, &partition, NewItem::checkpoint(text)).await;
    let found = matching(store, &partition, term).await;
    let is_found = found.iter().any(|body| body == text);
    assert_eq!(is_found, expected, "`{term}` in `{text}`");
}

async fn words_are_compared_as_fts5_does(store: &dyn MemoryStore) {
    for (text, term) in [
        ("It was Running late", "runs"),
        ("connections were refused", "connected"),
        ("two ponies", "poni"),
        ("this generalizes well", "generalization"),
        ("the caresses", "caress"),
        ("foo_bar-baz's", "bar"),
        ("foo_bar-baz's", "s"),
        ("version 2.10", "10"),
        ("Café au lait", "cafe"),
        ("a cafe\u{301} with a combining mark", "cafe"),
        ("plain cafe here", "café"),
        ("two marks: mộc", "moc"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("Straße", "straße"),
        ("ГОРОД", "город"),
        ("日本語 text", "日本語"),
        ("the word the is kept", "the"),
        ("x is one letter", "x"),
    ] {
        assert_match(store, text, term, true).await;
    }
}

async fn words_that_differ_do_not_match(store: &dyn MemoryStore) {
    for (text, term) in [
        ("prefixes do not count", "pref"),
        ("nor do parts of words", "arts"),
        ("the letter ø is not o: smør", "smor"),
        ("sharp s is not ss: Maße", "masse"),
        ("short words keep their s: is as us", "u"),
    ] {
        assert_match(store, text, term, false).await;
    }
}

async fn a_phrase_matches_adjacent_words_of_one_member(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let item = NewItem::checkpoint("the login-form, validated")
        .title("the cache")
        .tags(["red", "green"]);
    save(store, &partition, item).await;
    for (term, expected) in [
        ("login form", true),
        ("login forms", true),
        ("form login", false),
        ("the login form", true),
        ("login validated", false),
        ("cache the", false),
        ("red green", true),
    ] {
        let found = !matching(store, &partition, term).await.is_empty();
        assert_eq!(found, expected, "{term}");
    }
}

async fn all_members_are_searched(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let item = NewItem::checkpoint("parseHttpHeader fails")
        .title("summary")
        .detail("description")
        .tags(["label"]);
    save(store, &partition, item).await;
    for (term, expected) in [
        ("summary", true),
        ("fails", true),
        ("description", true),
        ("label", true),
        // A part of an identifier.
        ("header", true),
        ("default", false),
        ("checkpoint", false),
    ] {
        let found = !matching(store, &partition, term).await.is_empty();
        assert_eq!(found, expected, "{term}");
    }
}

async fn candidates_have_the_kind(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    save(store, &partition, NewItem::remediation("common", "fix")).await;
    assert!(matching(store, &partition, "common").await.is_empty());
    let terms = ["common".to_owned(), "absent".to_owned()];
    let listed = store.candidates(&partition, ItemKind::Checkpoint, &terms);
    assert_eq!(listed.await.unwrap(), TermCandidates::without_items(2));
    let listed = store.candidates(&partition, ItemKind::Remediation, &terms);
    let listed = listed.await.unwrap();
    assert_eq!(listed.item_count, 1.0);
    assert_eq!(
        (listed.lists[0].count, listed.lists[0].numbers.len()),
        (1.0, 1)
    );
    assert_eq!(listed.lists[1], TermList::default());
}

/// Returns terms, of which the first two are in all items, so many that each list is short.
fn many_terms() -> Vec<String> {
    let rest = (0..30).map(|number| format!("absent{number}"));
    let frequent = ["common", "frequent"].map(str::to_owned);
    frequent.into_iter().chain(rest).collect()
}

async fn frequent_terms_are_cut_and_estimated(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let terms = many_terms();
    let most = TermCandidates::max_listed(terms.len());
    let count = most + most / 5;
    let mut entries = (0..count).map(|number| {
        let new_item = NewItem::checkpoint(format!("common frequent number{number}"));
        Ok(ImportEntry::Item {
            item: Box::new(PreparedItem::new(new_item, 0, TIME)),
            id: None,
        })
    });
    store.import(&partition, &mut entries).await.unwrap();
    let listed = store.candidates(&partition, ItemKind::Checkpoint, &terms);
    let listed = listed.await.unwrap();
    assert_eq!(listed.lists.len(), terms.len());
    let near = |estimate: f64| (estimate / count as f64 - 1.0).abs() < 0.1;
    assert!(near(listed.item_count), "{}", listed.item_count);
    for list in &listed.lists[..2] {
        assert!(list.is_cut);
        assert_eq!(list.numbers.len(), most);
        assert!(list.numbers.is_sorted_by(|one, other| one > other));
        assert!(near(list.count), "{}", list.count);
    }
    assert!(
        listed.lists[2..]
            .iter()
            .all(|list| *list == TermList::default())
    );
    let [both] = &*listed.cooccurrences else {
        panic!("one set of terms is cut: {:?}", listed.cooccurrences.len());
    };
    let mut indices = both.terms.clone();
    indices.sort_unstable();
    assert_eq!(indices, [0, 1]);
    assert_eq!(
        both.numbers.len(),
        TermCandidates::MAX_COOCCURRENCES.min(count)
    );
    assert_eq!(both.numbers[0], listed.lists[0].numbers[0]);
}
