//! The server that is played: what it answers when nothing special is wanted, and who may want something special.

mod features;
mod plain;
mod tasks;

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tokio::time::Instant;
use turnbuckle_protocol::revision::Revision;

use super::cue::Reply;
use super::scene::Scene;
use super::target::Carrier;
use crate::tape::Head;

pub(crate) use self::plain::capabilities;

/// The endpoint on HTTP.
pub(crate) const ENDPOINT: &str = "/mcp";

/// A server that is played.
pub(crate) struct Part {
    /// What is special about it.
    pub(crate) scene: Scene,
    /// The revision that it speaks.
    pub(crate) revision: Revision,
    /// What carries messages.
    pub(crate) carrier: Carrier,
    /// Where it is on HTTP, without a path.
    pub(crate) origin: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    counts: HashMap<String, usize>,
    capabilities: Value,
    notes: Vec<(&'static str, Instant)>,
    done: Vec<&'static str>,
    kept: Option<Value>,
}

/// A request that the client made.
pub(crate) struct Heard<'a> {
    pub(crate) method: &'a str,
    pub(crate) message: &'a Value,
    /// What HTTP said before it.
    pub(crate) head: Option<&'a Head>,
}

/// A request of HTTP that brings no message.
pub(crate) struct Page<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) head: &'a Head,
    pub(crate) body: &'a str,
}

impl Part {
    /// Prepares to play a scene for a client that is checked in a revision, at an origin.
    pub(crate) fn prepared(
        scene: Scene,
        revision: Revision,
        carrier: Carrier,
    ) -> impl FnOnce(String) -> Self {
        move |origin| Self {
            scene,
            revision: scene.speaks(revision),
            carrier,
            origin,
            state: Mutex::default(),
        }
    }

    /// Says whether it speaks HTTP+SSE: whoever knows nothing newer.
    pub(crate) fn is_http_sse(&self) -> bool {
        self.carrier == Carrier::Http && self.revision < Revision::V2025_03_26
    }

    /// Says whether it begins with a handshake.
    pub(crate) fn has_handshake(&self) -> bool {
        self.revision < Revision::MODERN
    }

    /// Returns what is done about a request.
    pub(crate) fn reply(&self, heard: &Heard<'_>) -> Reply {
        self.learn(heard);
        let special = self.scene.reply(self, heard);
        let reply = special.unwrap_or_else(|| self.plainly(heard));
        let again = self.count(heard.method);
        self.state()
            .counts
            .insert(heard.method.to_owned(), again + 1);
        reply
    }

    /// Returns what a server does that does nothing special.
    pub(crate) fn plainly(&self, heard: &Heard<'_>) -> Reply {
        plain::reply(self, heard)
    }

    /// Returns what is done about what needs no answer.
    pub(crate) fn accepted(&self, head: &Head) -> Reply {
        self.scene
            .accepted(self, head)
            .unwrap_or(Reply::status(202))
    }

    /// Returns what is done about a request of HTTP that brings no message.
    pub(crate) fn page(&self, page: &Page<'_>) -> Reply {
        let special = self.scene.page(self, page);
        special.unwrap_or_else(|| plain::page(self, page))
    }

    /// Returns how often a method was asked for before.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.state().counts.get(method).copied().unwrap_or_default()
    }

    /// Says whether the client has declared a capability, for example `/sampling`.
    pub(crate) fn declared(&self, pointer: &str) -> bool {
        self.state().capabilities.pointer(pointer).is_some()
    }

    /// Says whether something is done for the first time; from then on it is not.
    pub(crate) fn first_time(&self, what: &'static str) -> bool {
        let done = &mut self.state().done;
        let first = !done.contains(&what);
        done.push(what);
        first
    }

    /// Keeps an answer for later.
    pub(crate) fn keep(&self, answer: Value) {
        self.state().kept = Some(answer);
    }

    /// Returns the answer that was kept.
    pub(crate) fn kept(&self) -> Option<Value> {
        self.state().kept.clone()
    }

    /// Takes down when something happened.
    pub(crate) fn note(&self, what: &'static str) {
        self.state().notes.push((what, Instant::now()));
    }

    /// Returns what happened when.
    pub(crate) fn notes(&self) -> Vec<(&'static str, Instant)> {
        self.state().notes.clone()
    }

    /// Remembers what the client says that it can do.
    fn learn(&self, heard: &Heard<'_>) {
        let params = &heard.message["params"];
        let declared = match heard.method {
            "initialize" => &params["capabilities"],
            _ => &params["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        };
        if declared.is_object() {
            self.state().capabilities = declared.clone();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
