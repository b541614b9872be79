//! Trials of the tools that may be called, made once: what came of them tells many rules something.
//!
//! Every trial asks for all that a call may ask for: progress, log messages of every level, news of changes. Whoever wants
//! to see what happens without tries the one tool again that has shown something.

mod news;
mod trial;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::discovery::Call;
use crate::outcome::Unmet;
use crate::session::{Answer, Session};
use crate::visit::Visit;

pub(crate) use self::news::{Listening, News, SUBSCRIPTION};
pub(crate) use self::trial::{Trial, ask, input_responses};

/// How long to wait after a call for what it makes the server say elsewhere.
const AFTERWARDS: Duration = Duration::from_millis(20);

/// How many tools are tried.
const MOST: usize = 25;
/// How many may stay without an answer before no more are tried.
const SILENT: usize = 2;

/// The key of the level from which on a request wants log messages, where there is no handshake.
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Trials of the tools that may be called, and what came of them.
pub(crate) struct Trials {
    /// The conversation in which they were made.
    pub(crate) session: Session,
    /// What was asked to be told about changes.
    pub(crate) news: News,
    /// The trials, in the order in which they were made.
    pub(crate) made: Vec<Trial>,
}

impl Trials {
    /// Calls every tool that may be called, one after the other.
    pub(crate) async fn make(visit: &Visit) -> Result<Self, Unmet> {
        let calls = visit.callable().await?;
        let session = visit.fresh().await?;
        let logs = session.capabilities().get("logging").is_some();
        if logs && session.speech.has_handshake() {
            // That it is refused is for a rule of its own to say.
            let _ = set_level(&session, "debug").await;
        }
        let news = News::ask(visit, &session).await?;
        let mut made = Vec::new();
        let mut silent = 0;
        for call in calls.into_iter().take(MOST) {
            if silent == SILENT {
                break;
            }
            let meta = json!({ "progressToken": token(), LOG_LEVEL: "debug" });
            let mut trial = Trial::make(visit, &session, call, wanting(&session, meta)).await;
            session.listen(AFTERWARDS).await;
            trial.meanwhile.end = visit.tape.len();
            silent += usize::from(trial.unmet.is_some());
            made.push(trial);
        }
        Ok(Self {
            session,
            news,
            made,
        })
    }

    /// Returns the trials that made the server send such notifications.
    pub(crate) fn that_sent(&self, visit: &Visit, method: &str) -> Vec<&Trial> {
        let sent = |trial: &&Trial| !trial.heard(visit, method).is_empty();
        self.made.iter().filter(sent).collect()
    }

    /// Returns the trials in which the server asked its client something.
    pub(crate) fn that_asked(&self, visit: &Visit) -> Vec<&Trial> {
        let asked = |trial: &&Trial| !trial.questions(visit).is_empty();
        self.made.iter().filter(asked).collect()
    }

    /// Returns how long a call took; those that were not answered come after all others.
    pub(crate) fn took(&self, call: &Call) -> Duration {
        let same = |trial: &&Trial| {
            let tried = &trial.call;
            tried.name == call.name && tried.arguments == call.arguments
        };
        let tried = self.made.iter().find(same);
        let answered = tried.filter(|trial| trial.unmet.is_none());
        answered.map_or(Duration::MAX, |trial| trial.took)
    }

    /// Says that none of the tools did something.
    pub(crate) fn none(&self, what: &str) -> Unmet {
        Unmet::not_tested(format!(
            "none of the {} tools called {what}",
            self.made.len()
        ))
    }
}

/// Asks for log messages from a level on.
pub(crate) async fn set_level(session: &Session, level: &str) -> Result<Answer, Unmet> {
    session
        .ask("logging/setLevel", json!({ "level": level }))
        .await
}

/// Returns a token for progress that none had before.
pub(crate) fn token() -> Value {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    format!("check-{}", NEXT.fetch_add(1, Ordering::Relaxed)).into()
}

/// Leaves out of `_meta` what the revision does not know.
fn wanting(session: &Session, mut meta: Value) -> Value {
    if let (true, Some(meta)) = (session.speech.has_handshake(), meta.as_object_mut()) {
        meta.remove(LOG_LEVEL);
    }
    meta
}
