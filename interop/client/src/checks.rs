//! The expected behavior of a server, check by check.

mod everything;
mod reference;
mod workbench;

use std::{collections::BTreeSet, error::Error, fmt::Debug, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    time::{sleep, timeout},
};
use turnbuckle_client::{
    CallError, Change, Client, Era, Roots, Subscription, SubscriptionEvent, ToolOutput,
};
use turnbuckle_protocol::types::{
    CompleteParams, CompletionReference, LogLevel, ReadResourceResult,
};

use crate::handlers::ClientHandlers;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// The kind of server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Ours, on a package of another project.
    Workbench,
    /// The reference server with all features.
    Everything,
    /// The reference server for files.
    Filesystem,
    /// The reference server for a graph of knowledge.
    Memory,
    /// The reference server for times of day.
    Time,
}

/// Facts about a server that the checks use.
struct ServerFacts {
    name: &'static str,
    tools: &'static [&'static str],
    /// A tool with required arguments.
    needs_arguments: &'static str,
}

impl Kind {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "workbench" => Self::Workbench,
            "everything" => Self::Everything,
            "filesystem" => Self::Filesystem,
            "memory" => Self::Memory,
            "time" => Self::Time,
            _ => panic!("unknown server `{name}`"),
        }
    }

    fn facts(self) -> &'static ServerFacts {
        match self {
            Self::Workbench => &workbench::FACTS,
            Self::Everything => &everything::FACTS,
            Self::Filesystem => &reference::FILESYSTEM,
            Self::Memory => &reference::MEMORY,
            Self::Time => &reference::TIME,
        }
    }
}

pub(crate) struct Checks {
    pub(crate) client: Client,
    pub(crate) kind: Kind,
    pub(crate) revision: String,
    pub(crate) handlers: ClientHandlers,
    pub(crate) roots: Roots,
    /// The address that restarts the server when a connection to it is opened, and closes it then.
    pub(crate) restart: Option<String>,
}

impl Checks {
    pub(crate) async fn run(&self, check: &str) -> Outcome {
        match check {
            "version" => self.version(),
            "server_info" => self.server_info(),
            "tools" => self.tools().await,
            "missing_argument" => self.missing_argument().await,
            "unknown_tool" => refused(self.call("no_such_tool", json!({})).await),
            "ping" => Ok(self.client.ping().await?),
            "restarted" => self.restarted().await,
            // Last, about all messages before.
            "nothing_odd" => equal(self.handlers.anomalies(), Vec::<String>::new()),
            _ => match self.kind {
                Kind::Workbench => workbench::run(self, check).await,
                Kind::Everything => everything::run(self, check).await,
                Kind::Filesystem => reference::filesystem(self, check).await,
                Kind::Memory => reference::memory(self, check).await,
                Kind::Time => reference::time(self, check).await,
            },
        }
    }

    fn version(&self) -> Outcome {
        let server = self.client.server();
        equal(server.revision.to_string(), self.revision.clone())?;
        let modern = &*self.revision >= "2026-07-28";
        equal(server.era, if modern { Era::Modern } else { Era::Legacy })
    }

    fn server_info(&self) -> Outcome {
        let server = self.client.server();
        let name = server.info.as_ref().map(|info| info.name.as_str());
        equal(name, Some(self.kind.facts().name))
    }

    async fn tools(&self) -> Outcome {
        let tools = self.client.tools().all().await?;
        let found: BTreeSet<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let missing = self.kind.facts().tools.iter();
        let missing: Vec<_> = missing.filter(|name| !found.contains(**name)).collect();
        equal(missing, Vec::new())
    }

    /// The server fails, in a result or in an error.
    async fn missing_argument(&self) -> Outcome {
        refused(
            self.call(self.kind.facts().needs_arguments, json!({}))
                .await,
        )
    }

    /// After a restart of the server, calls succeed as before.
    async fn restarted(&self) -> Outcome {
        let address = self.restart.as_deref().ok_or("no address for a restart")?;
        let mut control = TcpStream::connect(address).await?;
        control.read_to_end(&mut Vec::new()).await?;
        self.tools().await?;
        Box::pin(self.run("text")).await
    }

    /// Calls a tool.
    async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, CallError> {
        self.client.call_tool(tool, arguments).await
    }

    /// Calls a tool that must not fail, and returns its text.
    async fn said(&self, tool: &str, arguments: Value) -> Result<String, Box<dyn Error>> {
        let result = self.call(tool, arguments).await?;
        if result.is_error() {
            return Err(format!("`{tool}` failed: {}", result.text()).into());
        }
        Ok(result.text())
    }

    /// Calls a tool with a client request that is declined.
    async fn said_when_declined(&self, tool: &str) -> Result<String, Box<dyn Error>> {
        self.handlers.decline(true);
        let said = self.said(tool, json!({})).await;
        self.handlers.decline(false);
        said
    }

    /// Completes an argument of a prompt.
    async fn completions(
        &self,
        prompt: &str,
        argument: &str,
        begun: &str,
    ) -> Result<Vec<String>, Box<dyn Error>> {
        let reference = CompletionReference::prompt(prompt);
        let params = CompleteParams::new(reference, argument, begun);
        Ok(self.client.complete(params).await?.values)
    }

    /// Enables log messages, if the level is not sent with each request.
    async fn log_from_info_on(&self) -> Outcome {
        if self.client.server().era == Era::Legacy {
            self.client.set_log_level(LogLevel::Info).await?;
        }
        self.handlers.take_logs();
        Ok(())
    }

    /// Waits for a log message with this text.
    async fn logs(&self, part: &str) -> Outcome {
        let mut received = Vec::new();
        for _ in 0..100 {
            received.extend(self.handlers.take_logs());
            if received.iter().any(|data| data.to_string().contains(part)) {
                return Ok(());
            }
            sleep(Duration::from_millis(50)).await;
        }
        Err(format!("nothing like {part:?} in {received:?}").into())
    }
}

/// Waits for a notification that a resource changed.
async fn update(changes: &mut Subscription, uri: &str) -> Outcome {
    let received = async {
        while let Some(received) = changes.next().await {
            match received? {
                SubscriptionEvent::Change(Change::Resource { uri: changed }) => {
                    return equal(&*changed, uri);
                }
                SubscriptionEvent::Acknowledged(_) | SubscriptionEvent::Change(_) => {}
                other => return Err(format!("received {other:?}").into()),
            }
        }
        Err("the stream ended".into())
    };
    let received = timeout(Duration::from_secs(5), received).await;
    received.unwrap_or_else(|_| Err("nothing was received within 5 s".into()))
}

fn refused(outcome: Result<ToolOutput, CallError>) -> Outcome {
    match outcome {
        Ok(result) if result.is_error() => Ok(()),
        Ok(result) => Err(format!("it was done: {}", result.text()).into()),
        Err(CallError::Rejected { .. }) => Ok(()),
        Err(other) => Err(other.into()),
    }
}

fn not_there(outcome: Result<ReadResourceResult, CallError>) -> Outcome {
    match outcome {
        Err(CallError::Rejected { .. }) => Ok(()),
        other => Err(format!("expected to be refused, got {other:?}").into()),
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it reads better where it is called"
)]
fn equal<T: PartialEq + Debug>(actual: T, expected: T) -> Outcome {
    if actual == expected {
        return Ok(());
    }
    Err(format!("expected {expected:?}, got {actual:?}").into())
}

fn holds(whole: &str, part: &str) -> Outcome {
    if whole.contains(part) {
        return Ok(());
    }
    Err(format!("expected {part:?} in {whole:?}").into())
}

fn unknown(check: &str) -> Outcome {
    Err(format!("unknown check `{check}` for this server").into())
}
