//! Tasks that were begun to see how they live and end, made once for all rules about them.

use std::{ops::Range, time::Duration};

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::discovery::Call;
use crate::outcome::Unmet;
use crate::session::{Answer, Session};
use crate::trials::{LOG_LEVEL, ask, input_responses, token};
use crate::visit::Visit;

/// The name of the extension by which calls become tasks without being asked to.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The key under which a message says to which task it belongs.
pub(crate) const RELATED: &str = "io.modelcontextprotocol/related-task";

/// How many tasks are begun.
const MOST: usize = 8;
/// The longest pause between two questions how a task is doing.
const PAUSE: Duration = Duration::from_secs(2);

/// Tasks that were begun, and what came of them.
pub(crate) struct Lives {
    /// The conversation in which they were.
    pub(crate) session: Session,
    /// The calls that were to become tasks, and what was answered.
    pub(crate) begun: Vec<(Call, Result<Answer, Unmet>)>,
    /// The tasks that came of it.
    pub(crate) all: Vec<Life>,
}

/// A task from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Life {
    /// What was called.
    pub(crate) call: Call,
    /// The token for its progress.
    pub(crate) token: Value,
    /// The answer to the call.
    pub(crate) created: Answer,
    /// Its id.
    pub(crate) id: String,
    /// How it was doing, asked again and again.
    pub(crate) gets: Vec<Answer>,
    /// The answers that it asked for, brought to it.
    pub(crate) updates: Vec<Answer>,
    /// What `tasks/result` has brought, where there is such a method.
    pub(crate) result: Option<Answer>,
    /// What was said meanwhile: the entries of the tape.
    pub(crate) meanwhile: Range<usize>,
}

impl Lives {
    /// Begins tasks of all tools that may be called, and waits for their ends.
    pub(crate) async fn make(visit: &Visit) -> Result<Self, Unmet> {
        let mut session = visit.silent().await?;
        if !session.speech.has_handshake() {
            session.speech.capabilities["extensions"] = json!({ EXTENSION: {} });
        }
        session.begin_properly().await.map_err(Unmet::aside)?;
        let asked = session.speech.has_handshake();
        offered(&session)?;
        session.attend().await;
        let calls = &visit.discovered().await?.calls;
        let calls = calls.iter().filter(|call| !asked || takes_tasks(call));
        let mut lives = Self {
            session,
            begun: Vec::new(),
            all: Vec::new(),
        };
        for call in calls {
            if lives.all.len() == MOST {
                break;
            }
            lives.live(visit, call).await;
        }
        Ok(lives)
    }

    /// Returns the tasks; if there are none, why.
    pub(crate) fn some(&self) -> Result<&[Life], Unmet> {
        match self.all.is_empty() {
            true => Err(Unmet::not_tested("no call that may be made became a task")),
            false => Ok(&self.all),
        }
    }

    async fn live(&mut self, visit: &Visit, call: &Call) {
        let from = visit.tape.len();
        let token = token();
        let created = begin(&self.session, call, &token).await;
        let life = match &created {
            Ok(answer) => task_id(answer).map(|id| (id, answer.clone())),
            Err(_) => None,
        };
        self.begun.push((call.clone(), created));
        let Some((id, created)) = life else { return };
        let mut life = Life {
            call: call.clone(),
            token,
            created,
            id,
            gets: Vec::new(),
            updates: Vec::new(),
            result: None,
            meanwhile: from..from,
        };
        // What goes wrong on the way ends it here; rules see how far it came.
        let _ = match self.session.speech.has_handshake() {
            true => life.wait(&self.session).await,
            false => life.poll(visit, &self.session).await,
        };
        self.session.listen(visit.options.silence).await;
        life.meanwhile = from..visit.tape.len();
        self.all.push(life);
    }
}

impl Life {
    /// Returns how it was doing, in the order in which it was said.
    pub(crate) fn statuses(&self) -> Vec<(usize, String)> {
        let gets = self.gets.iter();
        gets.filter_map(|get| {
            let status = get.value["result"]["status"].as_str()?;
            Some((get.received?, status.to_owned()))
        })
        .collect()
    }

    /// Returns the last answer about it, if it is over.
    pub(crate) fn end(&self) -> Option<&Answer> {
        self.gets.last().filter(|get| is_over(&get.value["result"]))
    }

    async fn wait(&mut self, session: &Session) -> Result<(), Unmet> {
        self.get(session).await?;
        let params = json!({ "taskId": self.id });
        self.result = Some(session.ask("tasks/result", params).await?);
        self.get(session).await
    }

    async fn poll(&mut self, visit: &Visit, session: &Session) -> Result<(), Unmet> {
        let until = Instant::now() + visit.options.patience * 2;
        loop {
            self.get(session).await?;
            let result = self
                .gets
                .last()
                .map(|get| get.value["result"].clone())
                .unwrap_or_default();
            if is_over(&result) || !result.is_object() || Instant::now() > until {
                return Ok(());
            }
            if let Some(requests) = result["inputRequests"].as_object() {
                self.bring(session, requests).await?;
            }
            let pause = result["pollIntervalMs"]
                .as_u64()
                .map_or(PAUSE, Duration::from_millis);
            sleep(pause.min(PAUSE)).await;
        }
    }

    async fn get(&mut self, session: &Session) -> Result<(), Unmet> {
        let params = json!({ "taskId": self.id });
        self.gets.push(session.ask("tasks/get", params).await?);
        Ok(())
    }

    async fn bring(
        &mut self,
        session: &Session,
        requests: &Map<String, Value>,
    ) -> Result<(), Unmet> {
        let params = json!({ "taskId": self.id, "inputResponses": input_responses(requests) });
        self.updates
            .push(session.ask("tasks/update", params).await?);
        Ok(())
    }
}

/// Makes a call that is to become a task.
pub(crate) async fn begin(session: &Session, call: &Call, token: &Value) -> Result<Answer, Unmet> {
    let mut params = call.params();
    params["_meta"] = json!({ "progressToken": token });
    match session.speech.has_handshake() {
        true => params["task"] = json!({ "ttl": 60_000 }),
        false => params["_meta"][LOG_LEVEL] = "debug".into(),
    }
    ask(session, call, params).await
}

/// Returns the id of the task that a call became.
pub(crate) fn task_id(answer: &Answer) -> Option<String> {
    let result = &answer.value["result"];
    let task = match result.get("task") {
        Some(task) => task,
        None if result["resultType"] == "task" => result,
        None => return None,
    };
    task["taskId"].as_str().map(str::to_owned)
}

/// Says whether a task is over.
pub(crate) fn is_over(task: &Value) -> bool {
    ["completed", "failed", "cancelled"]
        .iter()
        .any(|status| task["status"] == *status)
}

/// Says whether a tool lets its calls become tasks when they are asked to.
pub(crate) fn takes_tasks(call: &Call) -> bool {
    let support = &call.tool["execution"]["taskSupport"];
    support == "optional" || support == "required"
}

/// Makes sure that the server has tasks.
pub(crate) fn offered(session: &Session) -> Result<(), Unmet> {
    let capabilities = session.capabilities();
    let offered = match session.speech.has_handshake() {
        true => capabilities.pointer("/tasks/requests/tools/call").is_some(),
        false => capabilities["extensions"].get(EXTENSION).is_some(),
    };
    match offered {
        true => Ok(()),
        false => Err(Unmet::not_applicable("the server declares no tasks")),
    }
}
