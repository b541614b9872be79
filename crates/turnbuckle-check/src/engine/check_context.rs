//! The context of the rules for one server, revision and transport.

use std::{
    collections::HashMap,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;
use tokio::sync::{Mutex, OnceCell};
use turnbuckle_protocol::revision::Revision;

use crate::{
    engine::{
        outcome::NotPassed,
        transcript::{ServerEnd, Transcript},
    },
    options::CheckOptions,
    probe::{
        ListedItems, ReadSample, SafeCall, ServerInventory, get_prompts, read_resources,
        task_runs::TaskRuns, tool_runs::ToolRuns,
    },
    server_rules::{CollectedMessages, SchemaFindings},
    session::{ProbeResponse, Session, request_builder::RequestBuilder},
    target::{ServerTarget, TargetTransport},
    wire::{http::RawHttpClient, pace::ServerPace},
};

/// The maximum number of sessions that rules share one after another. It bounds the work for a server that ends them
/// all.
const MAX_SHARED_SESSIONS: usize = 8;

/// The number of consecutive failures to open a session after which no more are opened.
const MAX_CONSECUTIVE_FAILURES: usize = 3;

/// A server in one revision on one transport, as rules see it. Expensive probes run once and are shared.
pub(crate) struct CheckContext {
    /// The revision under test.
    pub(crate) revision: Revision,
    /// The server.
    pub(crate) target: ServerTarget,
    /// The options of the check.
    pub(crate) options: CheckOptions,
    /// The pace of the server, and the time limits.
    pub(crate) pace: ServerPace,
    /// The messages exchanged in this revision.
    pub(crate) transcript: Transcript,
    shared: SharedSessions,
    scratch: SharedSessions,
    failures: AtomicUsize,
    /// The responses to `initialize`, by requested version.
    pub(crate) initialize_responses: Mutex<HashMap<String, ProbeResponse>>,
    inventory: OnceCell<Result<ServerInventory, NotPassed>>,
    resource_samples: OnceCell<Vec<ReadSample>>,
    prompt_samples: OnceCell<Vec<ReadSample>>,
    tool_runs: OnceCell<Result<ToolRuns, NotPassed>>,
    task_runs: OnceCell<Result<TaskRuns, NotPassed>>,
    /// The requests made for the schema rules.
    pub(crate) schema_samples: OnceCell<CollectedMessages>,
    /// The violations that the schema rules found.
    pub(crate) schema_findings: OnceLock<SchemaFindings>,
}

impl CheckContext {
    /// Prepares the context without connecting.
    pub(crate) fn new(target: &ServerTarget, options: &CheckOptions, revision: Revision) -> Self {
        Self {
            revision,
            target: target.clone(),
            options: options.clone(),
            pace: target.pace.with_limits(options),
            transcript: Transcript::observed(revision, options.on_message.clone()),
            shared: SharedSessions::default(),
            scratch: SharedSessions::default(),
            failures: AtomicUsize::new(0),
            initialize_responses: Mutex::default(),
            inventory: OnceCell::new(),
            resource_samples: OnceCell::new(),
            prompt_samples: OnceCell::new(),
            tool_runs: OnceCell::new(),
            task_runs: OnceCell::new(),
            schema_samples: OnceCell::new(),
            schema_findings: OnceLock::new(),
        }
    }

    /// Returns the initialized session that most rules share.
    ///
    /// Rules that may break it use [`new_session`](Self::new_session) or
    /// [`scratch_session`](Self::scratch_session).
    pub(crate) async fn session(&self) -> Result<&Session, NotPassed> {
        self.shared.get(self).await
    }

    /// Returns a shared session for malformed input. If it breaks, the next rule gets another.
    pub(crate) async fn scratch_session(&self) -> Result<&Session, NotPassed> {
        self.scratch.get(self).await
    }

    /// Replaces the shared sessions if the server has ended them or no longer responds.
    pub(crate) async fn replace_ended_sessions(&self) {
        self.shared.replace_ended().await;
        self.scratch.replace_ended().await;
    }

    /// Opens a separate session: another process or another HTTP session.
    pub(crate) async fn new_session(&self) -> Result<Session, NotPassed> {
        if self.failures.load(Ordering::Relaxed) >= MAX_CONSECUTIVE_FAILURES {
            let why = format!(
                "the server failed to open a session {MAX_CONSECUTIVE_FAILURES} times in a row"
            );
            return Err(NotPassed::not_tested(why));
        }
        let started = self.open_session().await;
        match &started {
            Ok(_) => self.failures.store(0, Ordering::Relaxed),
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        started
    }

    async fn open_session(&self) -> Result<Session, NotPassed> {
        let mut session = self.uninitialized_session().await?;
        session
            .initialize_session()
            .await
            .map_err(NotPassed::into_not_tested)?;
        Ok(session)
    }

    /// Opens a session without initializing it.
    pub(crate) async fn uninitialized_session(&self) -> Result<Session, NotPassed> {
        let request_builder = RequestBuilder::new(self.revision);
        Session::open(&self.target, &self.transcript, request_builder, &self.pace).await
    }

    /// Opens an uninitialized session in another revision.
    pub(crate) async fn session_in(&self, revision: Revision) -> Result<Session, NotPassed> {
        let (request_builder, transcript) = (
            RequestBuilder::new(revision),
            self.transcript.for_other_revision(),
        );
        Session::open(&self.target, &transcript, request_builder, &self.pace).await
    }

    /// Returns the end of the server, unless invalid input came before it.
    pub(crate) fn unprovoked_end(&self) -> Option<ServerEnd> {
        let end = self.transcript.server_end();
        end.filter(|end| !end.is_provoked)
    }

    /// Returns an HTTP client that is independent of sessions.
    pub(crate) fn http_client(&self) -> Result<RawHttpClient, NotPassed> {
        match &self.target.transport {
            TargetTransport::Http(endpoint) => {
                Ok(RawHttpClient::new(endpoint, &self.transcript, &self.pace))
            }
            TargetTransport::ServerCommand(_) | TargetTransport::Streams(_) => {
                Err(NotPassed::not_applicable("the transport is not HTTP"))
            }
        }
    }

    /// Returns an advertised capability, for example `/tools/listChanged`.
    pub(crate) async fn capability(&self, pointer: &str) -> Result<Value, NotPassed> {
        let capabilities = self.session().await?.capabilities();
        match capabilities.pointer(pointer) {
            Some(Value::Bool(false)) | None => {
                let name = pointer.trim_start_matches('/').replace('/', ".");
                let why = format!("the server does not declare the capability `{name}`");
                Err(NotPassed::not_applicable(why))
            }
            Some(value) => Ok(value.clone()),
        }
    }

    /// Returns the tools, resources and prompts of the server.
    pub(crate) async fn inventory(&self) -> Result<&ServerInventory, NotPassed> {
        let discovering = self.inventory.get_or_init(|| ServerInventory::read(self));
        discovering
            .await
            .as_ref()
            .map_err(|failure| failure.clone().into_not_tested())
    }

    /// Returns what was skipped so far, with reasons.
    pub(crate) fn skipped(&self) -> Vec<String> {
        match self.inventory.get() {
            Some(Ok(inventory)) => inventory.skipped().to_vec(),
            _ => Vec::new(),
        }
    }

    /// Returns the listed tools.
    pub(crate) async fn tools(&self) -> Result<&ListedItems, NotPassed> {
        let list = &self.inventory().await?.tools;
        list.items()?;
        if list.is_empty() {
            Err(NotPassed::not_applicable("the server lists no tools"))
        } else {
            Ok(list)
        }
    }

    /// Returns the tool calls that may be made: of tools annotated as read-only, and those that the
    /// user allows.
    pub(crate) async fn safe_calls(&self) -> Result<Vec<&SafeCall>, NotPassed> {
        self.tools().await?;
        let calls = self.inventory().await?.calls.iter();
        let calls: Vec<_> = calls.filter(|call| !call.only_as_task).collect();
        if calls.is_empty() {
            Err(NotPassed::not_tested(
                "no callable tool is annotated `readOnlyHint`; use `--call` or `--allow-writes` to allow calls",
            ))
        } else {
            Ok(calls)
        }
    }

    /// Returns the tasks that were started once, for all rules.
    pub(crate) async fn task_runs(&self) -> Result<&TaskRuns, NotPassed> {
        let task_runs = self.task_runs.get_or_init(|| TaskRuns::run(self)).await;
        task_runs
            .as_ref()
            .map_err(|failure| failure.clone().into_not_tested())
    }

    /// Returns the first listed resources, read once for all rules.
    pub(crate) async fn resource_samples(&self) -> Result<&[ReadSample], NotPassed> {
        let list = self.inventory().await?.resources.items()?;
        let session = self.session().await?;
        Ok(self
            .resource_samples
            .get_or_init(|| read_resources(session, list))
            .await)
    }

    /// Returns the first listed prompts, read once for all rules.
    pub(crate) async fn prompt_samples(&self) -> Result<&[ReadSample], NotPassed> {
        let list = self.inventory().await?.prompts.items()?;
        let session = self.session().await?;
        Ok(self
            .prompt_samples
            .get_or_init(|| get_prompts(session, list))
            .await)
    }

    /// Returns the tool calls that were made once, for all rules.
    pub(crate) async fn tool_runs(&self) -> Result<&ToolRuns, NotPassed> {
        let tool_runs = self.tool_runs.get_or_init(|| ToolRuns::run(self)).await;
        tool_runs
            .as_ref()
            .map_err(|failure| failure.clone().into_not_tested())
    }
}

/// A session that rules share, and its replacements.
#[derive(Default)]
struct SharedSessions {
    sessions: [OnceCell<Result<Session, NotPassed>>; MAX_SHARED_SESSIONS],
    current: AtomicUsize,
}

impl SharedSessions {
    async fn get(&self, ctx: &CheckContext) -> Result<&Session, NotPassed> {
        let Some(session) = self.sessions.get(self.current.load(Ordering::Relaxed)) else {
            let why = format!(
                "the server has ended {MAX_SHARED_SESSIONS} sessions, or stopped responding in them"
            );
            return Err(NotPassed::not_tested(why));
        };
        let session = session.get_or_init(|| ctx.new_session()).await;
        session
            .as_ref()
            .map_err(|failure| failure.clone().into_not_tested())
    }

    async fn replace_ended(&self) {
        let current = self.current.load(Ordering::Relaxed);
        let session = self.sessions.get(current).and_then(OnceCell::get);
        if let Some(Ok(session)) = session
            && session.is_lost().await
        {
            self.current.store(current + 1, Ordering::Relaxed);
        }
    }
}
