//! Short calls while slow ones are in flight.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use turnbuckle_bench::{
    Failure,
    connection::{Call, Connection, text_of},
};

use super::{report::Report, slow_calls::SlowCalls};

const PROBES: usize = 200;
/// The duration of a blocking call: far longer than all concurrent probes take.
const BLOCKS: Duration = Duration::from_secs(4);

/// Calls `echo` repeatedly on one connection and returns the time of each call.
pub(crate) async fn echo(address: SocketAddr, times: usize) -> Result<Vec<Duration>, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut latencies = Vec::with_capacity(times);
    for turn in 0..times {
        let message = format!("echo-{turn}");
        let arguments = format!(r#"{{"message":"{message}"}}"#);
        let call = Call {
            id: turn as u64,
            tool: "echo",
            arguments,
            session: None,
        };
        let started = Instant::now();
        let response = connection.call(&call).await?;
        latencies.push(started.elapsed());
        if text_of(&response, call.id)? != message {
            return Err(format!("wrong echo: {response:.300}").into());
        }
    }
    latencies.sort();
    Ok(latencies)
}

/// Polls the server until it reports that all calls are running.
pub(crate) async fn wait_until_held(
    address: SocketAddr,
    calls: usize,
    held: &SlowCalls,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut connection = Connection::open(address).await?;
    for id in 0.. {
        let call = Call {
            id,
            tool: "held",
            arguments: "{}".into(),
            session: None,
        };
        let running: usize = text_of(&connection.call(&call).await?, id)?.parse()?;
        report.peak(running);
        if running == calls {
            return Ok(());
        }
        if held.over() > 0 {
            report.fault(format!("only {running} of {calls} calls ran at once"));
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Calls `echo` while every slow call is in flight.
pub(crate) async fn during_slow_calls(
    address: SocketAddr,
    held: &SlowCalls,
    report: &mut Report,
) -> Result<(), Failure> {
    let latencies = echo(address, PROBES).await?;
    if held.over() > 0 {
        report.fault("`echo` was not answered before the held calls ended");
    }
    report.latencies("echo during the slow calls", &latencies);
    Ok(())
}

/// Calls `echo` while threads are blocked: all its responses must arrive before the first of theirs.
pub(crate) async fn during_blocking_calls(
    address: SocketAddr,
    count: usize,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut blocking = JoinSet::new();
    for index in 0..count {
        let mut connection = Connection::open(address).await?;
        let id = index as u64;
        let arguments = format!(r#"{{"ms":{},"tag":"block-{index}"}}"#, BLOCKS.as_millis());
        connection
            .send_call(&Call {
                id,
                tool: "block",
                arguments,
                session: None,
            })
            .await?;
        blocking.spawn(async move {
            text_of(&connection.response_text().await?, id).map(|text| (index, text))
        });
    }
    let latencies = echo(address, PROBES).await?;
    if blocking.try_join_next().is_some() {
        report.fault("`echo` was not answered before the blocking calls ended");
    }
    report.latencies("echo during blocking calls", &latencies);
    while let Some(response) = blocking.join_next().await {
        let (index, text) = response??;
        if text != format!("block-{index}") {
            report.fault(format!("blocking call {index} got the response {text}"));
        }
    }
    Ok(())
}
