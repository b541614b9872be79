//! What is remembered of the tools that a server listed.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;
use turnbuckle_protocol::codec::headers::{BadMark, Mark, marks};
use turnbuckle_protocol::types::{CallToolResult, TaskSupport, Tool, ToolAnnotations};

use super::checked::{Promise, Validators};
use super::definitions::{Changed, Definitions};
use super::digest::ToolDigest;

/// So many tools are remembered, those that were listed last.
const TOOLS: usize = 10_000;
/// What is remembered of them takes no more than this, in bytes.
const BYTES: usize = 32 << 20;

/// The tools of a server, as far as they have something to remember: marked arguments, a promise about their
/// output, how they have to be called, whether a call may be sent twice.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    known: RwLock<Known>,
    definitions: Definitions,
    validators: Validators,
    /// How often the tools may have changed.
    changes: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    by_name: HashMap<String, (u64, Arc<KnownTool>)>,
    /// The names by the turns in which they were listed, oldest first.
    order: BTreeMap<u64, String>,
    turn: u64,
    bytes: usize,
}

/// What is remembered of one tool.
#[derive(Debug)]
pub(super) struct KnownTool {
    pub(super) marks: Vec<Mark>,
    pub(super) promise: Option<Promise>,
    /// It is called as a task or not at all (2025-11-25).
    pub(super) only_as_task: bool,
    /// It says that a call changes nothing, or nothing more when it comes twice.
    pub(super) repeatable: bool,
}

/// What a list of tools is good for, which depends on revision and transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uses {
    /// Marked arguments are repeated in headers.
    pub(crate) mirrors: bool,
    /// Output schemas are promises.
    pub(crate) promises: bool,
    /// A call may have to be sent again.
    pub(crate) reissues: bool,
}

/// A tool that cannot be used, and why.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) tool: String,
    pub(crate) error: BadMark,
}

impl KnownTools {
    /// Remembers the tools of a page, and leaves out those that cannot be used.
    pub(crate) fn learn(&self, tools: &mut Vec<Tool>, uses: Uses) -> Vec<Unusable> {
        let mut unusable = Vec::new();
        tools.retain(|tool| match KnownTool::of(tool, uses) {
            Ok(known) => {
                self.remember(&tool.name, known);
                true
            }
            Err(error) => {
                self.remember(&tool.name, None);
                let tool = tool.name.clone();
                unusable.push(Unusable { tool, error });
                false
            }
        });
        unusable
    }

    /// Says which tools of a page are not as they were listed before. `changes` is what was noted down before it was
    /// asked for.
    pub(super) fn changed(&self, tools: &[Tool], changes: u64) -> Vec<Changed> {
        let learned = tools.iter();
        let learned = learned.filter_map(|tool| self.definitions.learn(tool, changes));
        learned.collect()
    }

    /// Returns the digest of a tool that was listed, unless it may have changed since.
    pub(super) fn digest(&self, name: &str) -> Option<ToolDigest> {
        self.definitions.digest(name, self.changes())
    }

    /// Leaves out what cannot be used, of a page that was learned before.
    pub(crate) fn sort_out(tools: &mut Vec<Tool>, uses: Uses) {
        tools.retain(|tool| !uses.mirrors || marks_of(tool).is_ok());
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<KnownTool>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.by_name.get(name).map(|(_, tool)| Arc::clone(tool))
    }

    /// Says whether a call of a tool may be sent twice, as far as the tool was listed and has not changed since.
    pub(crate) fn is_repeatable(&self, name: &str) -> bool {
        self.get(name).is_some_and(|tool| tool.repeatable)
    }

    /// Returns what to note down before tools are listed, see [`void_promises`](Self::void_promises).
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Forgets what the tools promised: they may have changed. What they want in headers is tried first.
    pub(crate) fn void_promises(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.void_promises();
    }

    /// Says what is wrong with the output of a tool that made a promise about it.
    pub(super) fn broken_promise(&self, name: &str, result: &CallToolResult) -> Option<String> {
        let tool = self.get(name)?;
        tool.promise.as_ref()?;
        // What a tool says about its failure is bound to no schema.
        if result.failed() {
            return None;
        }
        self.validators.broken_promise(&tool, result)
    }

    fn remember(&self, name: &str, tool: Option<KnownTool>) {
        // Most tools of most servers: nothing is known, and there is nothing to know.
        if tool.is_none() && self.get(name).is_none() {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.forget(name);
        if let Some(tool) = tool {
            known.insert(name.to_owned(), tool);
        }
    }
}

impl Known {
    fn insert(&mut self, name: String, tool: KnownTool) {
        self.bytes += size(&name, &tool);
        self.turn += 1;
        self.order.insert(self.turn, name.clone());
        self.by_name.insert(name, (self.turn, Arc::new(tool)));
        while self.by_name.len() > TOOLS || self.bytes > BYTES {
            let Some((_, oldest)) = self.order.pop_first() else {
                return;
            };
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, name: &str) {
        if let Some((turn, tool)) = self.by_name.remove(name) {
            self.bytes -= size(name, &tool);
            self.order.remove(&turn);
        }
    }

    fn void_promises(&mut self) {
        for (_, tool) in self.by_name.values_mut() {
            if tool.promise.is_some() || tool.repeatable {
                let marks = tool.marks.clone();
                *tool = Arc::new(KnownTool {
                    marks,
                    promise: None,
                    only_as_task: tool.only_as_task,
                    repeatable: false,
                });
            }
        }
        self.by_name
            .retain(|_, (_, tool)| !tool.marks.is_empty() || tool.only_as_task);
        self.order.retain(|_, name| self.by_name.contains_key(name));
        let sizes = self.by_name.iter();
        self.bytes = sizes.map(|(name, (_, tool))| size(name, tool)).sum();
    }
}

impl KnownTool {
    /// Takes what is worth remembering of a tool, if anything is.
    fn of(tool: &Tool, uses: Uses) -> Result<Option<Self>, BadMark> {
        let marks = match uses.mirrors {
            true => marks_of(tool)?,
            false => Vec::new(),
        };
        let schema = tool.output_schema.as_ref().filter(|_| uses.promises);
        let promise = schema.and_then(Promise::new);
        let execution = tool.execution.as_ref();
        let support = execution.and_then(|execution| execution.task_support);
        let only_as_task = support == Some(TaskSupport::Required);
        let repeatable = uses.reissues && tool.annotations.as_ref().is_some_and(is_repeatable);
        let something = !marks.is_empty() || promise.is_some() || only_as_task || repeatable;
        Ok(something.then_some(Self {
            marks,
            promise,
            only_as_task,
            repeatable,
        }))
    }

    fn size(&self) -> usize {
        let path = |mark: &Mark| mark.path.iter().map(String::len).sum::<usize>();
        let marks = self.marks.iter().map(|mark| mark.header.len() + path(mark));
        let promise = self.promise.as_ref().map_or(0, Promise::size);
        marks.sum::<usize>() + promise
    }
}

/// What a tool takes, with its name twice.
fn size(name: &str, tool: &KnownTool) -> usize {
    2 * name.len() + tool.size()
}

fn is_repeatable(annotations: &ToolAnnotations) -> bool {
    annotations.read_only_hint == Some(true) || annotations.idempotent_hint == Some(true)
}

fn marks_of(tool: &Tool) -> Result<Vec<Mark>, BadMark> {
    marks(&Value::Object(tool.input_schema.clone()))
}

#[cfg(test)]
mod tests;
