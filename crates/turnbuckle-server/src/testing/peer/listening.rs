//! Hearing of changes.

use serde_json::{Value, json};

use super::Peer;

impl Peer {
    /// Wants to hear of changes, and returns when the server knows: then nothing more is missed.
    ///
    /// `filter` is what `subscriptions/listen` takes, for example
    /// `{ "toolsListChanged": true, "resourceSubscriptions": ["notes://all"] }`. Sessions are told of lists anyway; there
    /// each resource is subscribed to.
    pub async fn listen(&mut self, filter: Value) {
        if self.voice.is_modern() {
            self.start("subscriptions/listen", json!({ "notifications": filter }))
                .await;
            self.expect_notification("notifications/subscriptions/acknowledged")
                .await;
            return;
        }
        let resources = filter["resourceSubscriptions"].as_array();
        for uri in resources.into_iter().flatten() {
            let answer = self.request("resources/subscribe", json!({ "uri": uri }));
            answer.await.expect_result();
        }
        // The oldest clients are told of nothing before their first answer.
        self.request("ping", Value::Null).await.expect_result();
    }
}
