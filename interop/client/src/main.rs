//! Drives a server of another project with our client and prints a JSON line per check.
//!
//! `turnbuckle-interop-client SERVER ERA REVISION CHECK,… stdio COMMAND… | http URL | sse URL`
//!
//! SERVER says which checks there are: `workbench`, `everything`, `filesystem`, `memory` or `time`. ERA is what the
//! client is told: `auto`, `modern` or `legacy`. The only check `refused` is that there is no connection.
#![expect(clippy::print_stdout, reason = "what it prints is its report")]

mod answers;
mod checks;
mod connect;

use std::{env, error::Error, process, time::Duration};

use serde_json::json;
use tokio::time::timeout;
use turnbuckle_client::{Client, ConnectError, Roots, stdio::ExitReason};

use crate::{
    answers::Answers,
    checks::{Checks, Kind, Outcome},
};

const PATIENCE: Duration = Duration::from_secs(15);

/// Ending takes no longer than a server that ends at the end of its input.
const CLOSING: Duration = Duration::from_millis(1900);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kind, era, revision, wanted, transport, target @ ..] = &arguments[..] else {
        panic!("SERVER ERA REVISION CHECK,… TRANSPORT TARGET…");
    };
    let (answers, roots) = (Answers::default(), roots());
    let client = connect::connect(era, transport, target, &answers, &roots);
    let client = timeout(PATIENCE, client).await;
    let client = client.unwrap_or_else(|_| Err("no end".into()));
    if wanted == "refused" {
        return report(wanted, &no_common_revision(client));
    }
    let client = match client {
        Ok(client) => client,
        Err(error) => return report("connect", &Err(error)),
    };
    report("connect", &Ok(()));
    let checks = Checks {
        client: client.clone(),
        kind: Kind::named(kind),
        revision: revision.clone(),
        answers,
        roots,
    };
    for check in wanted.split(',') {
        let outcome = timeout(PATIENCE, checks.run(check)).await;
        report(check, &outcome.unwrap_or_else(|_| Err("no end".into())));
    }
    report("close", &close(&client).await);
    process::exit(0);
}

/// A client that was told to speak another era than the server does says what the server speaks.
fn no_common_revision(client: Result<Client, Box<dyn Error>>) -> Outcome {
    let error = client.err().ok_or("it was connected")?;
    match error.downcast_ref() {
        Some(ConnectError::NoCommonRevision { server }) if !server.is_empty() => Ok(()),
        _ => Err(error),
    }
}

/// Once it is closed, a child process is gone, and went by itself.
async fn close(client: &Client) -> Outcome {
    let process = client.process();
    let closed = timeout(CLOSING, client.close()).await;
    closed.map_err(|_| format!("no end within {CLOSING:?}"))?;
    match process.map(|process| process.exit()) {
        None | Some(Some(ExitReason::Code(0))) => Ok(()),
        Some(exit) => Err(format!("the process is not gone by itself: {exit:?}").into()),
    }
}

/// The folder that we are in.
fn roots() -> Roots {
    let folder = env::current_dir().expect("we are somewhere");
    Roots::new([format!("file://{}", folder.display())]).expect("its path is plain")
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
fn story(error: &dyn Error) -> String {
    let mut story = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        story = format!("{story}: {error}");
        cause = error.source();
    }
    story
}
