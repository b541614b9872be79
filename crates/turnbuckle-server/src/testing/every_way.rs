//! One tool call in every way a client may make it.

use std::{fmt::Debug, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use turnbuckle_protocol::types::{LogLevel, TaskSupport};

use super::{Answer, Connect, Effects, MOST_ROUNDS, Message, Peer, anything};
use crate::{Server, Tool};

/// A tool call to be tried in every way.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Trial {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What the client says it can do.
    pub capabilities: Value,
}

impl Trial {
    /// Calls a tool as a client that can be asked anything.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            capabilities: anything(),
        }
    }
}

/// What came of a tool call, whichever way it went.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Trace {
    /// The tool's result: content, structured content and whether it is an error.
    pub result: Value,
    /// The JSON-RPC error, if there is no result.
    pub error: Option<Value>,
    /// Progress and log messages, in order.
    pub notifications: Vec<Value>,
    /// What was asked, in order.
    pub questions: Vec<String>,
    /// What the handler did to the world.
    pub effects: Vec<String>,
}

/// Runs one tool call in every way there is, and sees that all of them give the same:
///
/// - in a session, which is asked while the call waits;
/// - as a client sees it that returns with its answers, to another instance of the server each time;
/// - as a task of 2025-11-25, which the client asks for, and is asked while it waits for the result;
/// - as a task of the extension, which the client looks at now and then, bringing answers.
///
/// `server` makes an instance that notes its effects; `answer` plays the client: method and parameters of a question
/// in, the result back. Returns what came of the call. Of tasks, results, errors, questions and effects are compared:
/// what is told meanwhile reaches nobody in the extension.
///
/// A tool is tried as a task even if it says nothing of tasks, since the handler is the same. One that
/// [forbids](TaskSupport::Forbidden) them is not; one that requires them is tried in no other way.
///
/// # Panics
///
/// If two ways differ: then something in the handler is not repeated safely, or depends on how it is called.
pub async fn every_way(
    trial: Trial,
    server: impl Fn(Effects) -> Server,
    answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
) -> Trace {
    let attempt = Attempt {
        trial,
        server,
        answer: Arc::new(answer),
    };
    match attempt.tasks() {
        TaskSupport::Forbidden => attempt.as_calls().await,
        TaskSupport::Required => attempt.as_tasks().await,
        _ => {
            let called = attempt.as_calls().await;
            let ran = attempt.as_tasks().await;
            same_outcome(&called, &ran, ["as a call", "as a task"]);
            called
        }
    }
}

/// A trial with all it takes.
struct Attempt<S, A> {
    trial: Trial,
    server: S,
    answer: Arc<A>,
}

impl<S, A> Attempt<S, A>
where
    S: Fn(Effects) -> Server,
    A: Fn(&str, &Value) -> Value + Send + Sync + 'static,
{
    /// What the tool says of tasks; silence is consent.
    fn tasks(&self) -> TaskSupport {
        let server = (self.server)(Effects::default());
        let catalog = server.catalog();
        match catalog.tools.named(&self.trial.tool) {
            Some(tool) if tool.task == TaskSupport::Required => TaskSupport::Required,
            Some(tool) if !tool.forbids_tasks => TaskSupport::Optional,
            // Where there is no tool, there is nothing to run as a task.
            Some(_) | None => TaskSupport::Forbidden,
        }
    }

    async fn as_calls(&self) -> Trace {
        let effects = Effects::default();
        let server = (self.server)(effects.clone());
        let connect = Peer::connect(server).legacy("2025-11-25");
        let waiting = self.by_one_peer(connect, &effects).await;
        let returning = self.in_rounds().await;
        let ways = [
            "with a client that is asked while the call waits",
            "with a client that returns with its answers",
        ];
        same_outcome(&waiting, &returning, ways);
        let told = [&waiting.notifications, &returning.notifications];
        same("the notifications", told, ways);
        waiting
    }

    async fn as_tasks(&self) -> Trace {
        let effects = Effects::default();
        let connect = Peer::connect(self.with_task(&effects)).legacy("2025-11-25");
        let waiting = self.by_one_peer(connect.tasks(), &effects).await;
        let effects = Effects::default();
        let connect = Peer::connect(self.with_task(&effects)).modern();
        let looking = self.by_one_peer(connect.tasks(), &effects).await;
        let ways = [
            "as a task whose client waits for the result",
            "as a task whose client looks at it",
        ];
        same_outcome(&waiting, &looking, ways);
        waiting
    }

    /// An instance whose tool can be called as a task.
    fn with_task(&self, effects: &Effects) -> Server {
        let server = (self.server)(effects.clone()).task_poll_interval(Duration::from_millis(10));
        let tool = server.catalog().tools.named(&self.trial.tool).cloned();
        match tool {
            Some(tool) if tool.task == TaskSupport::Forbidden => {
                server.tool(Tool::clone(&tool).task(TaskSupport::Optional))
            }
            _ => server,
        }
    }

    /// One client stays until the call is answered.
    async fn by_one_peer(&self, connect: Connect, effects: &Effects) -> Trace {
        let asked = Effects::default();
        let (questions, answer) = (asked.clone(), self.answer.clone());
        let mut peer = self
            .introduced(connect)
            .answer(move |method, params| {
                questions.note(method);
                answer(method, params)
            })
            .await;
        let trial = &self.trial;
        let answer = peer.call_tool(&trial.tool, trial.arguments.clone()).await;
        let mut trace = Trace::of(&answer, effects);
        trace.questions = asked.seen();
        trace.note(&peer.messages());
        trace
    }

    /// The client returns with its answers, each time to another instance.
    async fn in_rounds(&self) -> Trace {
        let effects = Effects::default();
        let (mut questions, mut messages) = (Vec::new(), Vec::new());
        let mut params = json!({
            "name": self.trial.tool,
            "arguments": self.trial.arguments,
            "_meta": { "progressToken": 0 },
        });
        // A store that the instances share, as they would behind one endpoint.
        let store = (self.server)(Effects::default()).store_ref().clone();
        for _ in 0..MOST_ROUNDS {
            let instance = (self.server)(effects.clone())
                .state_keys([b"known to every instance"])
                .store(store.clone());
            let mut peer = self.introduced(Peer::connect(instance)).await;
            let answer = peer.request("tools/call", params.clone()).await;
            messages.extend(peer.messages());
            let result = answer.result().unwrap_or(&Value::Null);
            if result["resultType"] != "input_required" {
                let mut trace = Trace::of(&answer, &effects);
                trace.questions = questions;
                trace.note(&messages);
                return trace;
            }
            let mut responses = Map::new();
            for (key, question) in result["inputRequests"].as_object().into_iter().flatten() {
                let method = question["method"].as_str().unwrap_or_default();
                questions.push(method.to_owned());
                responses.insert(key.clone(), (self.answer)(method, &question["params"]));
            }
            params["inputResponses"] = responses.into();
            params["requestState"] = result["requestState"].clone();
        }
        panic!("the call still asks after {MOST_ROUNDS} rounds");
    }

    fn introduced(&self, connect: Connect) -> Connect {
        connect
            .capabilities(self.trial.capabilities.clone())
            .log_level(LogLevel::Debug)
    }
}

impl Trace {
    fn of(answer: &Answer, effects: &Effects) -> Self {
        let result = answer.result().unwrap_or(&Value::Null);
        Self {
            result: json!({
                "content": result["content"],
                "structuredContent": result["structuredContent"],
                "isError": result["isError"],
            }),
            error: answer.error().cloned(),
            notifications: vec![],
            questions: vec![],
            effects: effects.seen(),
        }
    }

    /// Keeps what the handler told while it ran.
    fn note(&mut self, messages: &[Message]) {
        let told = ["notifications/progress", "notifications/message"];
        for message in messages {
            if message
                .method()
                .is_none_or(|method| !told.contains(&method))
            {
                continue;
            }
            let mut params = message.json["params"].clone();
            // Which call it belongs to is another matter each time.
            if let Some(params) = params.as_object_mut() {
                params.remove("_meta");
                params.remove("progressToken");
            }
            self.notifications.push(params);
        }
    }
}

fn same_outcome(one: &Trace, other: &Trace, ways: [&str; 2]) {
    same("the results", [&one.result, &other.result], ways);
    same("the errors", [&one.error, &other.error], ways);
    same("the questions", [&one.questions, &other.questions], ways);
    same("the effects", [&one.effects, &other.effects], ways);
}

fn same<T: PartialEq + Debug>(what: &str, [one, other]: [&T; 2], ways: [&str; 2]) {
    assert!(
        one == other,
        "{what} differ:\n  {}: {one:?}\n  {}: {other:?}",
        ways[0],
        ways[1]
    );
}
