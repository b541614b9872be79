//! The debug tools of `turnbuckle serve`, one after the other.

use serde_json::{Value, json};

use super::{Checks, Outcome, equal, holds, text};

impl Checks {
    pub(super) async fn debug(&self, name: &str) -> Outcome {
        match name {
            "debug_create" => self.create().await,
            "debug_list" => self.listed().await.and_then(|open| equal(open.len(), 1)),
            "debug_enable" => self.enable().await,
            "debug_status" => self.status().await,
            "debug_missing" => self.missing().await,
            "debug_close" => self.close().await,
            _ => Err("there is no such check".into()),
        }
    }

    async fn create(&self) -> Outcome {
        let arguments = json!({ "program": "build", "target_type": "native" });
        let session = self.done("debug_create_session", arguments).await?;
        equal(session["state"].clone(), "recording")?;
        equal(session["target_type"].clone(), "native")
    }

    async fn listed(&self) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
        let listed = self.done("debug_list_sessions", json!({})).await?;
        let open = listed["sessions"].as_array().ok_or("the list is missing")?;
        Ok(open.clone())
    }

    async fn enable(&self) -> Outcome {
        let arguments = json!({ "pattern": "checkpoint_*" });
        let enabled = self.done("debug_log_enable", arguments).await?;
        equal(
            enabled,
            json!({ "status": "enabled", "filter_pattern": "checkpoint_*" }),
        )
    }

    async fn status(&self) -> Outcome {
        let status = self.done("debug_log_status", json!({})).await?;
        equal(status["enabled"].clone(), true)?;
        equal(status["filter_pattern"].clone(), "checkpoint_*")?;
        equal(status["current_depth"].clone(), 1)
    }

    async fn missing(&self) -> Outcome {
        let result = self.call("debug_create_session", json!({})).await?;
        equal(result["isError"].clone(), true)?;
        holds(&text(&result), "program")
    }

    async fn close(&self) -> Outcome {
        let open = self.listed().await?;
        let id = open.first().map(|session| session["session_id"].clone());
        let id = id.ok_or("no session is open")?;
        let arguments = json!({ "session_id": id });
        let closed = self.done("debug_close_session", arguments).await?;
        equal(closed, json!({ "closed": id, "status": "ok" }))?;
        equal(self.listed().await?.len(), 0)
    }

    /// Calls a tool that must succeed; returns its result as JSON.
    async fn done(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Result<Value, Box<dyn std::error::Error>> {
        let result = self.call(tool, arguments).await?;
        if result["isError"] == true {
            return Err(text(&result).into());
        }
        Ok(result["structuredContent"].clone())
    }
}
