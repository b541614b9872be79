//! Answers what a server asks its user, if there is a terminal to ask at.

use std::io;
use std::sync::Arc;

use tokio::sync::Mutex;
use turnbuckle_client::{Consent, FormRequest, VisitRequest};
use turnbuckle_protocol::types::{ElicitAction, ElicitResult};

use crate::failure::warning;
use crate::form::{self, Talk};
use crate::output::plain;
use crate::visit::{self, Page};
use crate::voice::Voice;

/// Asks the user on behalf of a server, one question after the other.
#[derive(Clone, Debug)]
pub(crate) struct Questions {
    server: String,
    can_ask: bool,
    voice: Voice,
    turn: Arc<Mutex<()>>,
}

impl Questions {
    /// Asks on behalf of a server, by the name that the user knows it by.
    pub(crate) fn new(server: String, can_ask: bool, voice: Voice) -> Self {
        Self {
            server,
            can_ask,
            voice,
            turn: Arc::default(),
        }
    }

    /// Has a form filled in.
    pub(crate) async fn form(self, form: FormRequest) -> ElicitResult {
        if !self.can_ask {
            self.refuse(form.message());
            return form.cancel();
        }
        let cancelled = form.cancel();
        let server = self.server.clone();
        let filled =
            self.at_terminal(move |talk| form::fill(&server, form.message(), form.schema(), talk));
        filled.await.unwrap_or(cancelled)
    }

    /// Has a page visited.
    pub(crate) async fn visit(self, request: VisitRequest) -> Consent {
        if !self.can_ask {
            self.refuse(request.message());
            return Consent::Cancel;
        }
        let server = self.server.clone();
        let asked = self.at_terminal(move |talk| {
            let page = Page {
                message: request.message(),
                url: request.url(),
                host: request.host(),
                may_look_like_another: request.may_look_like_another(),
            };
            visit::ask(&server, &page, talk, visit::open)
        });
        match asked.await {
            Some(ElicitAction::Accept) => Consent::Accept,
            Some(ElicitAction::Decline) => Consent::Decline,
            Some(ElicitAction::Cancel) | None => Consent::Cancel,
        }
    }

    /// Runs a conversation where it holds up nobody else; `None` if the terminal broke.
    pub(crate) async fn at_terminal<T: Send + 'static>(
        &self,
        talk: impl FnOnce(&mut Talk<'_>) -> io::Result<T> + Send + 'static,
    ) -> Option<T> {
        let _turn = self.turn.lock().await;
        self.voice.quiet();
        let spoken = tokio::task::spawn_blocking(move || {
            let mut reader = io::stdin().lock();
            // Without its lock: whoever is interrupted while the user types still has something to say.
            let mut writer = anstream::stderr();
            talk(&mut Talk::new(&mut reader, &mut writer))
        });
        spoken.await.ok()?.ok()
    }

    fn refuse(&self, message: &str) {
        let question = plain::first_line(message);
        self.voice.say(&warning(&format!(
            "`{}` asks “{question}”, and there is no terminal to ask at; the question is cancelled",
            self.server
        )));
    }
}
