//! The measured client on rmcp, with the defaults.
//!
//! ```console
//! $ turnbuckle-bench-rmcp-client --url URL | --stdio COMMAND [--era modern|legacy] [--calls N] [--at-once K] [--message BYTES]
//! ```
//!
//! It prints `{"calls":N,"seconds":S,"cpu_seconds":C}`: the time of the calls, without connecting and the handshake.

mod plan;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use plan::{Era, Failure, Plan, Server};
use rmcp::{
    ClientLifecycleMode, ClientServiceExt, Peer, RoleClient, ServiceExt,
    model::{CallToolRequestParams, ClientConfig, ProtocolVersion},
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio::process::Command;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let plan = Plan::from_process()?;
    let client = connect(&plan).await?;
    let message: Arc<str> = plan.message.as_str().into();

    let (begun, cpu) = (Instant::now(), process_time());
    let callers: Vec<_> = plan
        .shares()
        .map(|calls| tokio::spawn(call(client.peer().clone(), calls, Arc::clone(&message))))
        .collect();
    for caller in callers {
        caller.await??;
    }
    let (seconds, cpu) = (begun.elapsed(), process_time() - cpu);

    let took = json!({
        "calls": plan.calls,
        "seconds": seconds.as_secs_f64(),
        "cpu_seconds": cpu.as_secs_f64(),
    });
    println!("{took}");
    client.cancel().await?;
    Ok(())
}

async fn connect(plan: &Plan) -> Result<RunningService<RoleClient, ClientConfig>, Failure> {
    match &plan.server {
        Server::Url(url) => {
            let transport = StreamableHttpClientTransport::from_uri(url.as_str());
            begin(plan.era, transport).await
        }
        Server::Child(command) => {
            let mut words = command.split(' ');
            let mut command = Command::new(words.next().unwrap_or_default());
            command.args(words);
            begin(plan.era, TokioChildProcess::new(command)?).await
        }
    }
}

/// Opens the connection as the era requires.
async fn begin<T, E, A>(
    era: Era,
    transport: T,
) -> Result<RunningService<RoleClient, ClientConfig>, Failure>
where
    T: rmcp::transport::IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let client = ClientConfig::default();
    Ok(match era {
        Era::Legacy => client.serve(transport).await?,
        Era::Modern => {
            let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
            let lifecycle = ClientLifecycleMode::Discover { preferred_versions };
            client.serve_with_lifecycle(transport, lifecycle).await?
        }
    })
}

async fn call(client: Peer<RoleClient>, calls: u64, message: Arc<str>) -> Result<(), Failure> {
    for _ in 0..calls {
        let arguments = [("message".to_owned(), json!(&*message))];
        let request =
            CallToolRequestParams::new("echo").with_arguments(arguments.into_iter().collect());
        let answer = client.call_tool(request).await?;
        let said = answer.content.first().and_then(|block| block.as_text());
        if said.is_none_or(|said| *said.text != *message) {
            return Err(format!("wrong answer: {answer:?}").into());
        }
    }
    Ok(())
}

/// Returns the CPU time of this process, in user space and in the kernel.
fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let part = |number: i64| u64::try_from(number).unwrap_or_default();
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}
