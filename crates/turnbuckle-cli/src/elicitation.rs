//! Answers elicitation requests of a server by asking the user at the terminal.

pub(crate) mod form_prompt;
pub(crate) mod url;

use std::{io, sync::Arc};

use form_prompt::Prompter;
use tokio::sync::Mutex;
use turnbuckle_client::{ElicitationAction, FormRequest, UrlElicitationRequest};
use turnbuckle_protocol::types::{ElicitAction, ElicitResult};
use url::ElicitedUrl;

use crate::{error::warning, output::sanitize, ui::Ui};

/// Asks the user on behalf of a server, one request at a time.
#[derive(Clone, Debug)]
pub(crate) struct TerminalElicitation {
    server: String,
    is_interactive: bool,
    ui: Ui,
    prompt_lock: Arc<Mutex<()>>,
}

impl TerminalElicitation {
    /// Creates prompts for a server. `server` is the name that the user knows it by.
    pub(crate) fn new(server: String, is_interactive: bool, ui: Ui) -> Self {
        Self {
            server,
            is_interactive,
            ui,
            prompt_lock: Arc::default(),
        }
    }

    /// Asks the user to fill in a form.
    pub(crate) async fn elicit_form(self, form: FormRequest) -> ElicitResult {
        if !self.is_interactive {
            self.report_cancelled(form.message());
            return form.cancel();
        }
        let cancelled = form.cancel();
        let server = self.server.clone();
        let result = self.prompt(move |prompter| {
            form_prompt::fill_form(&server, form.message(), form.schema(), prompter)
        });
        result.await.unwrap_or(cancelled)
    }

    /// Asks the user whether to open a URL.
    pub(crate) async fn elicit_url(self, request: UrlElicitationRequest) -> ElicitationAction {
        if !self.is_interactive {
            self.report_cancelled(request.message());
            return ElicitationAction::Cancel;
        }
        let server = self.server.clone();
        let action = self.prompt(move |prompter| {
            let elicited = ElicitedUrl {
                message: request.message(),
                url: request.url(),
                host: request.host(),
                has_punycode: request.has_confusable_host(),
            };
            url::confirm_and_open(&server, &elicited, prompter, url::open_browser)
        });
        match action.await {
            Some(ElicitAction::Accept) => ElicitationAction::Accept,
            Some(ElicitAction::Decline) => ElicitationAction::Decline,
            Some(ElicitAction::Cancel) | None => ElicitationAction::Cancel,
        }
    }

    /// Runs a prompt on a blocking thread. Returns `None` if the terminal fails.
    pub(crate) async fn prompt<T: Send + 'static>(
        &self,
        prompter: impl FnOnce(&mut Prompter<'_>) -> io::Result<T> + Send + 'static,
    ) -> Option<T> {
        let _guard = self.prompt_lock.lock().await;
        self.ui.clear_progress();
        let outcome = tokio::task::spawn_blocking(move || {
            let mut reader = io::stdin().lock();
            // Not locked: an interrupt while the user types still has to print its error.
            let mut writer = anstream::stderr();
            prompter(&mut Prompter::new(&mut reader, &mut writer))
        });
        outcome.await.ok()?.ok()
    }

    fn report_cancelled(&self, message: &str) {
        let summary = sanitize::first_line(message);
        self.ui.print(&warning(&format!(
            "`{}` requests input (“{summary}”), which needs a terminal; the request is cancelled",
            self.server
        )));
    }
}
