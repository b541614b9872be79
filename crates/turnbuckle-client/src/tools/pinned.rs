//! Tools that are only called as they were when somebody pinned them.

use super::digest::ToolDigest;
use crate::client::Client;
use crate::error::CallError;

impl Client {
    /// Makes sure that a tool is as it was pinned, if it was.
    ///
    /// What was listed counts, for that is what the caller saw; the tools are listed if this one never was, or if the
    /// server said that they changed.
    pub(super) async fn ensure_pinned(&self, tool: &str) -> Result<(), CallError> {
        let Some(&pinned) = self.inner.settings.pinned.get(tool) else {
            return Ok(());
        };
        let listed = match self.inner.tools.digest(tool) {
            Some(digest) => Some(digest),
            None => Box::pin(self.listed_anew(tool)).await?,
        };
        match listed == Some(pinned) {
            true => Ok(()),
            false => Err(CallError::NotAsPinned {
                tool: tool.to_owned(),
                pinned,
                listed,
            }),
        }
    }

    async fn listed_anew(&self, name: &str) -> Result<Option<ToolDigest>, CallError> {
        let mut tools = self.tools();
        while let Some(tool) = tools.next().await {
            let tool = tool?;
            if tool.name == name {
                return Ok(Some(ToolDigest::of(&tool)));
            }
        }
        Ok(None)
    }
}
