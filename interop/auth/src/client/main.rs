//! Tests a server that requires a token with our client, and prints a JSON line per check.
//!
//! `turnbuckle-interop-auth-client '{"url", "revision", "issuer", "client", "checks", …}'`
//!
//! `client` is the client identity: `dynamic`, `known`, `document`, `service` (with a secret) or `signer` (with a key).
#![expect(clippy::print_stdout, reason = "the report is printed")]

mod browser;
mod checks;
mod login;

use std::{env, error::Error, fs, process, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use crate::checks::Checks;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

/// The checks to run, from run.py.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Task {
    url: String,
    revision: String,
    issuer: String,
    client: Identity,
    checks: Vec<String>,
    /// Lifetime of a token, in seconds.
    ttl: u64,
    /// True if tokens are bound to a key.
    dpop: bool,
    /// True if the login is on another device.
    device: bool,
    secret: String,
    key: String,
    document: String,
    subject: Option<String>,
    /// True for the second of two processes.
    #[serde(default)]
    is_second: bool,
}

/// The identity of the client at the authorization server.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Identity {
    /// Registered dynamically.
    Dynamic,
    /// Preregistered, for users.
    Known,
    /// A client metadata document.
    Document,
    /// A service with a secret.
    Service,
    /// A service with a key.
    Signer,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let task = env::args().nth(1).expect("a task");
    let task: Task = serde_json::from_str(&task).expect("a task");
    if !task.is_second {
        // Logins of the previous run.
        let _ = fs::remove_dir_all("logins");
    }
    let names = task.checks.clone();
    let mut checks = Checks::new(task);
    for check in names {
        let outcome = timeout(CHECK_TIMEOUT, checks.run(&check)).await;
        report(&check, &outcome.unwrap_or_else(|_| Err("timed out".into())));
    }
    process::exit(0);
}

fn report(check: &str, outcome: &Outcome) {
    let detail = outcome.as_ref().err().map(|error| error_chain(&**error));
    let detail: String = detail.unwrap_or_default().chars().take(600).collect();
    println!(
        "{}",
        json!({ "check": check, "ok": outcome.is_ok(), "detail": detail })
    );
}

/// Returns an error with its sources.
pub(crate) fn error_chain(error: &dyn Error) -> String {
    let mut chain = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        chain = format!("{chain}: {error}");
        cause = error.source();
    }
    chain
}

impl Task {
    fn private_key(&self) -> Result<String, Box<dyn Error>> {
        Ok(fs::read_to_string(&self.key)?)
    }
}
