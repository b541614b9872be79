//! Limits on the size of items.

use serde_json::Value;

use super::{ItemKind, NewItem};
use crate::ContextError;

const KB: usize = 1024;
pub(crate) const MAX_TAGS: usize = 32;
const MAX_TAG_CHARS: usize = 100;
pub(crate) const MAX_METADATA_ENTRIES: usize = 32;
const MAX_KEY_CHARS: usize = 100;
const MAX_VALUE_CHARS: usize = 2_000;
const MAX_BRANCH_CHARS: usize = 255;
/// Factor for exported items: a redaction marker can be longer than the secret that it replaces.
const MARKER_FACTOR: usize = 2;

/// The origin of a new item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemSource {
    /// A call.
    Caller,
    /// An export, with texts that were redacted before.
    Export,
}

/// Rejects an item with an empty or too long member. The error names the member and the limit.
pub(crate) fn validate(new_item: &NewItem, source: ItemSource) -> Result<(), ContextError> {
    let limits = SizeLimits {
        factor: match source {
            ItemSource::Caller => 1,
            ItemSource::Export => MARKER_FACTOR,
        },
    };
    match new_item.kind {
        ItemKind::Checkpoint => {
            limits.bytes(
                "content",
                &new_item.body,
                100 * KB,
                "save it in several checkpoints",
            )?;
            limits.chars("summary", &new_item.title, 500, "use one sentence")?;
            required("content", &new_item.body)?;
        }
        ItemKind::Remediation => {
            let hint = "keep the lines that name the error, and put the rest into `context`";
            limits.chars("error_msg", &new_item.title, 1_000, hint)?;
            limits.chars(
                "solution",
                &new_item.body,
                5_000,
                "keep the steps that solved the error",
            )?;
            limits.bytes(
                "context",
                &new_item.detail,
                10 * KB,
                "keep the conditions of the error",
            )?;
            required("error_msg", &new_item.title)?;
            required("solution", &new_item.body)?;
        }
        ItemKind::Skill => {
            limits.chars("name", &new_item.title, 200, "use a few words")?;
            limits.chars(
                "description",
                &new_item.detail,
                2_000,
                "put the rest into `content`",
            )?;
            limits.chars(
                "content",
                &new_item.body,
                50_000,
                "split it into several skills",
            )?;
            required("name", &new_item.title)?;
            required("description", &new_item.detail)?;
            required("content", &new_item.body)?;
            if super::save::slug(&new_item.title).is_empty() {
                return Err(ContextError::invalid(
                    "`name` needs at least one letter or digit",
                ));
            }
        }
    }
    limits.chars(
        "branch",
        &new_item.branch,
        MAX_BRANCH_CHARS,
        "use a shorter branch name",
    )?;
    required("branch", &new_item.branch)?;
    limits.tags(&new_item.tags)?;
    limits.meta(new_item)?;
    if (0.0..=1.0).contains(&new_item.confidence) {
        return Ok(());
    }
    Err(ContextError::invalid(format!(
        "`confidence` is {}; expected a number from 0 to 1",
        new_item.confidence
    )))
}

struct SizeLimits {
    factor: usize,
}

impl SizeLimits {
    fn bytes(&self, name: &str, text: &str, max: usize, hint: &str) -> Result<(), ContextError> {
        self.check_max(name, text.len(), max, "bytes", hint)
    }

    fn chars(&self, name: &str, text: &str, max: usize, hint: &str) -> Result<(), ContextError> {
        // Characters need to be counted only if there are more bytes than allowed characters.
        if text.len() <= max {
            return Ok(());
        }
        self.check_max(name, text.chars().count(), max, "characters", hint)
    }

    fn tags(&self, tags: &[String]) -> Result<(), ContextError> {
        self.check_max(
            "tags",
            tags.len(),
            MAX_TAGS,
            "entries",
            "keep the most useful ones",
        )?;
        for tag in tags {
            self.chars("tags", tag, MAX_TAG_CHARS, "use one or two words per tag")?;
            required("tags", tag)?;
        }
        Ok(())
    }

    fn meta(&self, new_item: &NewItem) -> Result<(), ContextError> {
        let hint = "put searchable text into the body of the item";
        self.check_max(
            "metadata",
            new_item.meta.len(),
            MAX_METADATA_ENTRIES,
            "entries",
            hint,
        )?;
        for (key, value) in &new_item.meta {
            self.chars("metadata", key, MAX_KEY_CHARS, "use a shorter key")?;
            required("metadata", key)?;
            let name = format!("metadata.{key}");
            match value {
                Value::String(text) => self.chars(&name, text, MAX_VALUE_CHARS, hint)?,
                other => self.chars(&name, &other.to_string(), MAX_VALUE_CHARS, hint)?,
            }
        }
        Ok(())
    }

    fn check_max(
        &self,
        name: &str,
        given: usize,
        max: usize,
        unit: &str,
        hint: &str,
    ) -> Result<(), ContextError> {
        if given <= max * self.factor {
            return Ok(());
        }
        Err(ContextError::invalid(format!(
            "`{name}` has {given} {unit}; at most {max} are allowed: {hint}"
        )))
    }
}

fn required(name: &str, text: &str) -> Result<(), ContextError> {
    if !text.trim().is_empty() {
        return Ok(());
    }
    Err(ContextError::invalid(format!(
        "`{name}` is empty; expected a non-empty string"
    )))
}
