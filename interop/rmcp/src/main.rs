//! Drives a server with the client of rmcp and prints a JSON line per check.
//!
//! `turnbuckle-interop-rmcp CLIENT REVISION CHECK,… stdio COMMAND… | http URL`
#![allow(deprecated, reason = "what the newest revision drops is still tried")]

mod checks;
mod handlers;

use std::{error::Error, process, time::Duration};

use rmcp::{
    ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::ProtocolVersion,
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::json;
use tokio::{
    process::Command,
    time::{Instant, timeout},
};

use crate::{
    checks::{Checks, Outcome},
    handlers::ClientHandlers,
};

const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [client, revision, wanted, transport, target @ ..] = &*arguments else {
        return Err("usage: CLIENT REVISION CHECK,… stdio COMMAND… | http URL".into());
    };
    let report = |check: &str, outcome: Outcome| {
        let detail = outcome
            .as_ref()
            .err()
            .map(ToString::to_string)
            .unwrap_or_default();
        let line = json!({
            "client": client, "transport": transport, "check": check, "ok": outcome.is_ok(), "detail": detail
        });
        println!("{line}");
    };
    let client = match connect(revision, transport, target).await {
        Ok(client) => client,
        Err(error) => {
            report("connect", Err(error));
            return Ok(());
        }
    };
    report("connect", Ok(()));
    let mark = format!("{}-{}", process::id(), transport);
    let checks = Checks {
        client,
        revision: revision.clone(),
        mark,
    };
    for name in wanted.split(',') {
        let outcome = timeout(PATIENCE, checks.run(name)).await;
        report(
            name,
            outcome.unwrap_or_else(|_| Err("no end within 10 s".into())),
        );
    }
    report("close", close(checks.client).await);
    Ok(())
}

async fn connect(
    revision: &str,
    transport: &str,
    target: &[String],
) -> Result<RunningService<RoleClient, ClientHandlers>, Box<dyn Error>> {
    let lifecycle = if revision >= "2026-07-28" {
        ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        }
    } else {
        ClientLifecycleMode::Initialize
    };
    let (first, rest) = target.split_first().ok_or("no command and no URL")?;
    let handlers = ClientHandlers::default();
    Ok(if transport == "stdio" {
        let mut command = Command::new(first);
        command.args(rest);
        handlers
            .serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle)
            .await?
    } else {
        let transport = StreamableHttpClientTransport::from_uri(&**first);
        handlers.serve_with_lifecycle(transport, lifecycle).await?
    })
}

async fn close(client: RunningService<RoleClient, ClientHandlers>) -> Outcome {
    let started = Instant::now();
    client.cancel().await?;
    let taken = started.elapsed();
    if taken < Duration::from_millis(1900) {
        Ok(())
    } else {
        Err(format!("it took {taken:?}").into())
    }
}
