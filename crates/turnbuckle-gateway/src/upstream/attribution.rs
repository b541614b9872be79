//! Which running call a message of a server belongs to.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, Weak},
};

use turnbuckle_client::relay::{RelayCallId, ServerRequest};
use turnbuckle_protocol::jsonrpc::RawObject;

use crate::{calls::running::RunningCall, lock, tasks::ids::related_task};

/// The calls that run on a connection.
pub(crate) struct CallRegistry {
    calls: Mutex<BTreeMap<RelayCallId, Arc<RunningCall>>>,
    /// The call that opened the connection: servers send requests as soon as they are initialized.
    opener: Mutex<Option<Arc<RunningCall>>>,
    /// The calls that run as tasks of the server, by task id.
    tasks: Mutex<HashMap<String, Weak<RunningCall>>>,
    /// The calls that wait for the completion of URL elicitations, by elicitation id.
    elicitations: Mutex<HashMap<String, Weak<RunningCall>>>,
}

/// The call that a client request of a server belongs to.
pub(crate) enum Attribution {
    Call(Arc<RunningCall>),
    /// No call is running.
    OutsideOfCalls,
    /// Calls of several clients are running.
    Unknown,
}

/// Keeps a call registered until it is dropped.
pub(crate) struct RunningCallGuard<'a> {
    registry: &'a CallRegistry,
    id: RelayCallId,
}

/// Keeps a call known as the one that opened the connection, until it is dropped.
pub(crate) struct OpenerGuard<'a> {
    registry: &'a CallRegistry,
    call: &'a Arc<RunningCall>,
}

/// Keeps URL elicitations of a call known until it is dropped.
pub(crate) struct ElicitationGuard<'a> {
    registry: &'a CallRegistry,
    call: &'a RunningCall,
    ids: &'a [String],
}

impl CallRegistry {
    pub(crate) fn new(opener: Option<Arc<RunningCall>>) -> Self {
        Self {
            calls: Mutex::default(),
            opener: Mutex::new(opener),
            tasks: Mutex::default(),
            elicitations: Mutex::default(),
        }
    }

    pub(crate) fn register(
        &self,
        id: RelayCallId,
        call: &Arc<RunningCall>,
    ) -> RunningCallGuard<'_> {
        lock(&self.calls).insert(id, Arc::clone(call));
        RunningCallGuard { registry: self, id }
    }

    /// A call continues as a task of the server, as long as `call` is kept.
    pub(crate) fn register_task(&self, task: String, call: &Arc<RunningCall>) {
        let mut tasks = lock(&self.tasks);
        tasks.retain(|_, call| call.strong_count() > 0);
        tasks.insert(task, Arc::downgrade(call));
    }

    pub(crate) fn opener_guard<'a>(&'a self, call: &'a Arc<RunningCall>) -> OpenerGuard<'a> {
        OpenerGuard {
            registry: self,
            call,
        }
    }

    /// A call waits for the completion of URL elicitations.
    pub(crate) fn expect_elicitations<'a>(
        &'a self,
        ids: &'a [String],
        call: &'a Arc<RunningCall>,
    ) -> ElicitationGuard<'a> {
        call.completed.expect(ids.iter().cloned());
        let calls = ids.iter().map(|id| (id.clone(), Arc::downgrade(call)));
        lock(&self.elicitations).extend(calls);
        ElicitationGuard {
            registry: self,
            call,
            ids,
        }
    }

    /// A server has reported the completion of a URL elicitation.
    pub(crate) fn elicitation_completed(&self, id: &str) {
        let call = lock(&self.elicitations).get(id).and_then(Weak::upgrade);
        if let Some(call) = call {
            call.completed.complete(id);
        }
    }

    /// Returns whether no call is running.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.calls).is_empty()
    }

    pub(crate) fn get(&self, id: RelayCallId) -> Option<Arc<RunningCall>> {
        lock(&self.calls).get(&id).cloned()
    }

    /// Returns the call that a client request belongs to.
    ///
    /// The call with the stream on which it came; else the call of its related task; else the only running call; else, if
    /// all running calls are those of one caller, the oldest that declared what the request needs and is not suspended;
    /// else, if none is running, the call that opened the connection.
    pub(crate) fn call_of_request(&self, request: &ServerRequest) -> Attribution {
        let of_stream = request.call.and_then(|id| self.get(id));
        if let Some(call) = of_stream.or_else(|| self.call_of_task(&request.params)) {
            return Attribution::Call(call);
        }
        let calls = lock(&self.calls);
        let call = match calls.len() {
            0 => lock(&self.opener).clone(),
            1 => calls.values().next().cloned(),
            _ if is_one_caller(&calls) => oldest_with_capability(&calls, request),
            _ => return Attribution::Unknown,
        };
        call.map_or(Attribution::OutsideOfCalls, Attribution::Call)
    }

    /// Returns the call that waits for the result of the related task, or else the one that became it.
    fn call_of_task(&self, params: &str) -> Option<Arc<RunningCall>> {
        let task = related_task(params)?;
        let calls = lock(&self.calls);
        let waiting = calls.values().find(|call| call.is_about_task(&task));
        waiting
            .cloned()
            .or_else(|| lock(&self.tasks).get(&task)?.upgrade())
    }

    /// Passes the status of a task on to the calls that wait for its result. Returns whether there is one.
    pub(crate) fn task_status(&self, params: &str) -> bool {
        let id = RawObject::parse(params).ok();
        let id = id.and_then(|object| object.string("taskId").ok()?.map(String::from));
        let Some(id) = id else {
            return false;
        };
        let calls = lock(&self.calls);
        let about_task = calls.values().filter(|call| call.is_about_task(&id));
        about_task.map(|call| call.task_status(params)).count() > 0
    }

    /// Returns the call that a notification without progress token belongs to. `stream` is the call with the stream on
    /// which it came.
    pub(crate) fn call_of_notification(&self, stream: Option<RelayCallId>) -> Attribution {
        let calls = lock(&self.calls);
        let call = match stream {
            Some(id) => {
                return calls
                    .get(&id)
                    .cloned()
                    .map_or(Attribution::Unknown, Attribution::Call);
            }
            None if calls.is_empty() => return Attribution::OutsideOfCalls,
            None if calls.len() == 1 || is_one_caller(&calls) => calls.values().next().cloned(),
            None => None,
        };
        call.map_or(Attribution::Unknown, Attribution::Call)
    }
}

/// Returns the call of a client that most likely caused a client request.
fn oldest_with_capability(
    calls: &BTreeMap<RelayCallId, Arc<RunningCall>>,
    request: &ServerRequest,
) -> Option<Arc<RunningCall>> {
    let declared =
        |call: &&Arc<RunningCall>| call.has_declared(&request.method, &request.params).is_ok();
    let mut candidates = calls.values().filter(declared);
    // A suspended call already waits for input, so a new request is more likely of another one.
    let attached = candidates.clone().find(|call| call.is_attached());
    let call = attached.or_else(|| candidates.next());
    // Without a candidate, the oldest call rejects the request for the right reason.
    call.or_else(|| calls.values().next()).cloned()
}

/// Returns whether all calls are those of one known caller.
fn is_one_caller(calls: &BTreeMap<RelayCallId, Arc<RunningCall>>) -> bool {
    let mut callers = calls.values().map(|call| &call.caller);
    let Some(first) = callers.next() else {
        return false;
    };
    first.is_some() && callers.all(|caller| caller == first)
}

impl Drop for RunningCallGuard<'_> {
    fn drop(&mut self) {
        lock(&self.registry.calls).remove(&self.id);
    }
}

impl Drop for OpenerGuard<'_> {
    fn drop(&mut self) {
        lock(&self.registry.opener).take_if(|opener| Arc::ptr_eq(opener, self.call));
    }
}

impl Drop for ElicitationGuard<'_> {
    fn drop(&mut self) {
        let mut elicitations = lock(&self.registry.elicitations);
        for id in self.ids {
            elicitations.remove(id);
        }
        drop(elicitations);
        self.call.completed.clear();
    }
}
