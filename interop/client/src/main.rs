//! Drives a server of another project with our client and prints a JSON line per check.
//!
//! `turnbuckle-interop-client SERVER ERA REVISION CHECK,… stdio COMMAND… | http URL [ADDRESS] | sse URL`
//!
//! SERVER selects the checks: `workbench`, `everything`, `filesystem`, `memory` or `time`. ERA is the option of the
//! client: `auto`, `modern` or `legacy`. The only check `refused` requires that connecting fails. A connection to the
//! address after the URL restarts the server.
#![expect(clippy::print_stdout, reason = "what it prints is its report")]

mod checks;
mod connect;
mod handlers;

use std::{env, error::Error, process, time::Duration};

use serde_json::json;
use tokio::time::timeout;
use turnbuckle_client::{Client, ConnectError, Roots, stdio::ExitReason};

use crate::{
    checks::{Checks, Kind, Outcome},
    handlers::ClientHandlers,
};

const PATIENCE: Duration = Duration::from_secs(15);

/// A bridge starts its server once to learn what it is, and once for the session.
const CONNECTING: Duration = Duration::from_secs(40);

/// The longest time until the connection is closed. A server that was ended by a signal is found by its exit, and by run.py.
const CLOSING: Duration = Duration::from_secs(30);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kind, era, revision, wanted, transport, target @ ..] = &arguments[..] else {
        panic!("SERVER ERA REVISION CHECK,… TRANSPORT TARGET…");
    };
    let (handlers, roots) = (ClientHandlers::default(), roots());
    let client = connect::connect(era, transport, target, &handlers, &roots);
    let client = timeout(CONNECTING, client).await;
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
        handlers,
        roots,
        restart: target.get(1).filter(|_| transport == "http").cloned(),
    };
    for check in wanted.split(',') {
        let outcome = timeout(PATIENCE, checks.run(check)).await;
        report(check, &outcome.unwrap_or_else(|_| Err("no end".into())));
    }
    report("close", &close(&client).await);
    process::exit(0);
}

/// The error of a client with another era than the server's names the revisions of the server.
fn no_common_revision(client: Result<Client, Box<dyn Error>>) -> Outcome {
    let error = client.err().ok_or("it was connected")?;
    match error.downcast_ref() {
        Some(ConnectError::NoCommonRevision { server }) if !server.is_empty() => Ok(()),
        _ => Err(error),
    }
}

/// After the client is closed, the child process has exited by itself.
async fn close(client: &Client) -> Outcome {
    let process = client.process();
    let closed = timeout(CLOSING, client.close()).await;
    closed.map_err(|_| format!("no end within {CLOSING:?}"))?;
    match process.map(|process| process.exit()) {
        None | Some(Some(ExitReason::Code(0))) => Ok(()),
        Some(exit) => Err(format!("the process is not gone by itself: {exit:?}").into()),
    }
}

/// The current folder.
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

/// An error with all its sources.
fn story(error: &dyn Error) -> String {
    let mut story = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        story = format!("{story}: {error}");
        cause = error.source();
    }
    story
}
