//! Opens and checks many legacy sessions.

use std::{net::SocketAddr, sync::Arc};

use tokio::task::JoinSet;

use crate::{
    Failure,
    connection::{Call, Connection, text_of},
    message::{self, Headers},
};

/// Connections that open or check sessions concurrently.
const WORKERS: usize = 16;

/// Opens `count` sessions and returns their ids; no connection stays open.
pub async fn open(address: SocketAddr, path: &str, count: usize) -> Result<Arc<[String]>, Failure> {
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let share = count / WORKERS + usize::from(worker < count % WORKERS);
        workers.spawn(open_share(address, path.to_owned(), share));
    }
    let mut sessions = Vec::with_capacity(count);
    while let Some(share) = workers.join_next().await {
        sessions.extend(share??);
    }
    Ok(sessions.into())
}

async fn open_share(
    address: SocketAddr,
    path: String,
    count: usize,
) -> Result<Vec<String>, Failure> {
    let mut connection = Connection::open_at(address, &path).await?;
    let mut sessions = Vec::with_capacity(count);
    for _ in 0..count {
        let opened = connection
            .exchange(&Headers::new(), message::INITIALIZE)
            .await?;
        let id = opened
            .header("mcp-session-id")
            .ok_or("`initialize` gave no session id")?
            .to_owned();
        connection
            .exchange(&message::session_headers(Some(&id)), message::INITIALIZED)
            .await?;
        sessions.push(id);
    }
    Ok(sessions)
}

/// Calls `echo` this many times, in one session after the other.
pub async fn call(
    address: SocketAddr,
    sessions: &Arc<[String]>,
    calls: usize,
) -> Result<(), Failure> {
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let sessions = sessions.clone();
        workers.spawn(async move {
            let mut connection = Connection::open(address).await?;
            for turn in (worker..calls).step_by(WORKERS) {
                let call = Call {
                    id: turn as u64,
                    tool: "echo",
                    arguments: r#"{"message":"hello"}"#.to_owned(),
                    session: Some(&sessions[turn % sessions.len()]),
                };
                text_of(&connection.call(&call).await?, call.id)?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(outcome) = workers.join_next().await {
        outcome??;
    }
    Ok(())
}

/// Pings every session and returns what went wrong: each must still exist.
pub async fn check(address: SocketAddr, sessions: Arc<[String]>) -> Vec<String> {
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let sessions = sessions.clone();
        workers.spawn(async move {
            let mut connection = Connection::open(address).await?;
            for id in sessions.iter().skip(worker).step_by(WORKERS) {
                let headers = message::session_headers(Some(id));
                let response = connection.exchange(&headers, message::PING).await?;
                if !response.response_text().contains("\"result\"") {
                    return Err(format!("session {id}: {}", response.response_text()).into());
                }
            }
            Ok::<_, Failure>(())
        });
    }
    let mut faults = Vec::new();
    while let Some(outcome) = workers.join_next().await {
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => faults.push(format!("an idle session is lost: {error}")),
            Err(error) => faults.push(error.to_string()),
        }
    }
    faults
}
