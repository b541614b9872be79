//! Tests of searches with embeddings, and of their absence.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use turnbuckle_context::{
    ContextError, Owner, OwnershipPolicy,
    embedding::{Embedder, EmbeddingFuture},
};
use turnbuckle_server::testing::Peer;

use super::test_project::{TestProject, call};

/// An embedder with two dimensions: texts about drinks, and other texts.
#[derive(Default)]
struct Drinks {
    is_broken: AtomicBool,
    texts: AtomicUsize,
}

impl Embedder for Drinks {
    fn model(&self) -> &str {
        "drinks"
    }

    fn embed(&self, texts: Vec<String>) -> EmbeddingFuture<'_> {
        self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        let about_drinks = |text: &String| {
            ["tea", "beverage", "coffee"]
                .iter()
                .any(|word| text.contains(word))
        };
        let vector = |text: &String| {
            if about_drinks(text) {
                vec![1.0, 0.0]
            } else {
                vec![0.0, 1.0]
            }
        };
        let vectors = texts.iter().map(vector).collect();
        let answer = if self.is_broken.load(Ordering::Relaxed) {
            Err(ContextError::Embedding("no tea today".into()))
        } else {
            Ok(vectors)
        };
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test]
async fn items_are_found_by_meaning_without_a_common_word() {
    let (test_project, drinks) = (TestProject::new(), Arc::new(Drinks::default()));
    let owners = OwnershipPolicy::Single(Owner::for_user("ada"));
    let server = test_project
        .builder(owners)
        .embedder(drinks.clone())
        .build();
    let mut peer = Peer::connect(server).await;
    for content in ["How the tea was brewed", "Why the bridge fell down"] {
        let args = json!({ "content": content, "project_path": test_project.path() });
        call(&mut peer, "checkpoint_save", args).await;
    }
    let search =
        json!({ "query": "beverage", "project_path": test_project.path(), "content_mode": "full" });
    // The vectors are created in the background.
    let mut found = json!({});
    for _ in 0..200 {
        found = call(&mut peer, "checkpoint_search", search.clone()).await;
        if found["checkpoints"] != json!([]) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(found["embeddings"], "used");
    let best = &found["checkpoints"][0]["checkpoint"]["content"];
    assert_eq!(*best, "How the tea was brewed", "{found}");
    let status = call(&mut peer, "status", json!({})).await;
    assert_eq!(status["embeddings"], "drinks");
}

#[tokio::test(start_paused = true)]
async fn a_failed_provider_is_reported_and_not_called_for_a_while() {
    let (test_project, drinks) = (TestProject::new(), Arc::new(Drinks::default()));
    let owners = OwnershipPolicy::Single(Owner::for_user("ada"));
    let server = test_project
        .builder(owners)
        .embedder(drinks.clone())
        .build();
    drinks.is_broken.store(true, Ordering::Relaxed);
    let mut peer = Peer::connect(server).await;
    let search = json!({ "query": "tea" });
    for _ in 0..3 {
        let answer = peer.call_tool("skill_search", search.clone()).await;
        let found: serde_json::Value = answer.structured();
        assert_eq!(found["embeddings"], "unavailable");
        assert_eq!(drinks.texts.load(Ordering::Relaxed), 1, "asked once");
    }
    drinks.is_broken.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(61)).await;
    let found = call(&mut peer, "skill_search", search).await;
    assert_eq!(found["embeddings"], "used");
}
