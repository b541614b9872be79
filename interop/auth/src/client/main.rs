//! Drives a server that wants a token with our client and prints a JSON line per check.
//!
//! `turnbuckle-interop-auth-client '{"url", "revision", "issuer", "client", "checks", …}'`
//!
//! `client` says how it is known: `dynamic`, `known`, `document`, `service` (by a secret) or `signer` (by a key).
#![expect(clippy::print_stdout, reason = "what it prints is its report")]

mod browser;
mod checks;
mod login;

use std::{env, error::Error, fs, process, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use crate::checks::Checks;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(20);

/// What run.py wants done.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Task {
    url: String,
    revision: String,
    issuer: String,
    client: Identity,
    checks: Vec<String>,
    /// How long a token is good for, in seconds.
    ttl: u64,
    /// Whether tokens are to be bound to a key.
    dpop: bool,
    /// Whether the login is on another device.
    device: bool,
    secret: String,
    key: String,
    document: String,
    subject: Option<String>,
    /// Whether another process of ours has begun already.
    #[serde(default)]
    is_second: bool,
}

/// How the authorization server knows us.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Identity {
    /// Not yet.
    Dynamic,
    /// As a program of its users.
    Known,
    /// By a document on the web.
    Document,
    /// As a machine with a secret.
    Service,
    /// As a machine with a key.
    Signer,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let task = env::args().nth(1).expect("a task");
    let task: Task = serde_json::from_str(&task).expect("a task");
    if !task.is_second {
        // Of the run before this one.
        let _ = fs::remove_dir_all("logins");
    }
    let wanted = task.checks.clone();
    let mut checks = Checks::new(task);
    for check in wanted {
        let outcome = timeout(PATIENCE, checks.run(&check)).await;
        report(&check, &outcome.unwrap_or_else(|_| Err("no end".into())));
    }
    process::exit(0);
}

fn report(check: &str, outcome: &Outcome) {
    let detail = outcome.as_ref().err().map(|error| story(&**error));
    let detail: String = detail.unwrap_or_default().chars().take(600).collect();
    println!(
        "{}",
        json!({ "check": check, "ok": outcome.is_ok(), "detail": detail })
    );
}

/// An error with all that led to it.
pub(crate) fn story(error: &dyn Error) -> String {
    let mut story = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        story = format!("{story}: {error}");
        cause = error.source();
    }
    story
}

impl Task {
    fn private_key(&self) -> Result<String, Box<dyn Error>> {
        Ok(fs::read_to_string(&self.key)?)
    }
}
