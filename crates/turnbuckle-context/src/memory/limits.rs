//! How much may be saved at once.

use serde_json::Value;

use super::{Draft, Kind};
use crate::ContextError;

const KB: usize = 1024;
pub(crate) const MOST_TAGS: usize = 32;
const LONGEST_TAG: usize = 100;
pub(crate) const MOST_META: usize = 32;
const LONGEST_KEY: usize = 100;
const LONGEST_VALUE: usize = 2_000;
const LONGEST_BRANCH: usize = 255;
/// A mark can be longer than the secret it stands for, so what was exported may be longer than what was saved.
const ROOM_FOR_MARKS: usize = 2;

/// Who brings a draft.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A caller.
    Caller,
    /// An export, whose texts have been through here before.
    Export,
}

/// Refuses a draft that is empty or too long, and says what is wrong with which part.
pub(crate) fn check(draft: &Draft, source: Source) -> Result<(), ContextError> {
    let limits = Limits {
        factor: match source {
            Source::Caller => 1,
            Source::Export => ROOM_FOR_MARKS,
        },
    };
    match draft.kind {
        Kind::Checkpoint => {
            limits.bytes(
                "content",
                &draft.body,
                100 * KB,
                "save it in several checkpoints",
            )?;
            limits.chars("summary", &draft.title, 500, "say it in a sentence")?;
            required("content", &draft.body)?;
        }
        Kind::Remediation => {
            let advice = "keep the lines that name the error, and put the rest into `context`";
            limits.chars("error_msg", &draft.title, 1_000, advice)?;
            limits.chars(
                "solution",
                &draft.body,
                5_000,
                "leave out what others can see themselves",
            )?;
            limits.bytes(
                "context",
                &draft.detail,
                10 * KB,
                "keep what the error depends on",
            )?;
            required("error_msg", &draft.title)?;
            required("solution", &draft.body)?;
        }
        Kind::Skill => {
            limits.chars("name", &draft.title, 200, "a few words are enough")?;
            limits.chars(
                "description",
                &draft.detail,
                2_000,
                "put the rest into `content`",
            )?;
            limits.chars("content", &draft.body, 50_000, "make several skills of it")?;
            required("name", &draft.title)?;
            required("description", &draft.detail)?;
            required("content", &draft.body)?;
            if super::save::slug(&draft.title).is_empty() {
                return Err(ContextError::refused(
                    "`name` needs at least one letter or digit",
                ));
            }
        }
    }
    limits.chars(
        "branch",
        &draft.branch,
        LONGEST_BRANCH,
        "no branch is called that",
    )?;
    required("branch", &draft.branch)?;
    limits.tags(&draft.tags)?;
    limits.meta(draft)?;
    if (0.0..=1.0).contains(&draft.confidence) {
        return Ok(());
    }
    Err(ContextError::refused(format!(
        "`confidence` is {}; give a number from 0 to 1",
        draft.confidence
    )))
}

struct Limits {
    factor: usize,
}

impl Limits {
    fn bytes(&self, name: &str, text: &str, most: usize, advice: &str) -> Result<(), ContextError> {
        self.at_most(name, text.len(), most, "bytes", advice)
    }

    fn chars(&self, name: &str, text: &str, most: usize, advice: &str) -> Result<(), ContextError> {
        // Counting is only needed where the bytes do not settle it.
        if text.len() <= most {
            return Ok(());
        }
        self.at_most(name, text.chars().count(), most, "characters", advice)
    }

    fn tags(&self, tags: &[String]) -> Result<(), ContextError> {
        self.at_most(
            "tags",
            tags.len(),
            MOST_TAGS,
            "entries",
            "keep those that will be looked for",
        )?;
        for tag in tags {
            self.chars("tags", tag, LONGEST_TAG, "a tag is a word or two")?;
            required("tags", tag)?;
        }
        Ok(())
    }

    fn meta(&self, draft: &Draft) -> Result<(), ContextError> {
        let advice = "put what should be found into the text";
        self.at_most("metadata", draft.meta.len(), MOST_META, "entries", advice)?;
        for (key, value) in &draft.meta {
            self.chars("metadata", key, LONGEST_KEY, "make the key shorter")?;
            required("metadata", key)?;
            let name = format!("metadata.{key}");
            match value {
                Value::String(text) => self.chars(&name, text, LONGEST_VALUE, advice)?,
                other => self.chars(&name, &other.to_string(), LONGEST_VALUE, advice)?,
            }
        }
        Ok(())
    }

    fn at_most(
        &self,
        name: &str,
        given: usize,
        most: usize,
        unit: &str,
        advice: &str,
    ) -> Result<(), ContextError> {
        if given <= most * self.factor {
            return Ok(());
        }
        Err(ContextError::refused(format!(
            "`{name}` has {given} {unit}, and {most} are allowed; {advice}"
        )))
    }
}

fn required(name: &str, text: &str) -> Result<(), ContextError> {
    if !text.trim().is_empty() {
        return Ok(());
    }
    Err(ContextError::refused(format!(
        "`{name}` is empty; say something"
    )))
}
