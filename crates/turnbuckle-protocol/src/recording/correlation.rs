//! Finds which messages of a recording belong together.

use std::borrow::Cow;

use super::{
    EntryKind, MessageEntry, MessageSide, RecordedEntry,
    candidates::{CandidateTable, RequestRecord},
};
use crate::{
    RequestId,
    jsonrpc::{
        Incoming, Message, Notification, Params, RawObject, Request, Response, parse, string_value,
    },
    meta::keys,
    method,
};

/// The place of a message: its entry, and its position in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct MessageRef {
    /// The number of the entry.
    pub seq: u64,
    /// The position in a batch; 0 for a single message.
    pub index: u32,
}

/// A message belongs to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EntryLink {
    /// The later message.
    pub from: MessageRef,
    /// The earlier message.
    pub to: MessageRef,
    /// The relation.
    pub kind: LinkKind,
}

/// How a message belongs to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkKind {
    /// It is the response to a request.
    Response,
    /// It reports progress of a request.
    Progress,
    /// It cancels a request.
    Cancellation,
    /// It continues a request with the state that its result returned.
    Round,
    /// It concerns the task that a request created.
    Task,
    /// It is a notification that a request subscribed to.
    Subscription,
}

/// Returns the links between the messages of some entries.
pub fn correlate<'e>(entries: impl IntoIterator<Item = &'e RecordedEntry>) -> Vec<EntryLink> {
    let mut correlator = Correlator::default();
    let entries = entries.into_iter();
    entries.flat_map(|entry| correlator.push(entry)).collect()
}

/// Links messages to earlier ones, entry by entry.
///
/// Memory is limited: requests are forgotten after 100,000 later ones.
#[derive(Debug, Default)]
pub struct Correlator {
    requests: CandidateTable<(MessageSide, RequestId)>,
    progress: CandidateTable<(MessageSide, RequestId)>,
    states: CandidateTable<String>,
    tasks: CandidateTable<String>,
    subscriptions: CandidateTable<SubscriptionKey>,
}

/// What a notification has in common with the request that subscribed to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SubscriptionKey {
    /// The id of a `subscriptions/listen` request.
    Listen(RequestId),
    /// The URI of a `resources/subscribe` request.
    Uri(String),
}

/// The message that is being linked.
#[derive(Clone, Copy)]
pub(super) struct MessagePlace {
    place: MessageRef,
    from: MessageSide,
    pub(super) conn: u64,
    pub(super) exchange: Option<u64>,
}

impl MessagePlace {
    fn link(self, to: Option<MessageRef>, kind: LinkKind, links: &mut Vec<EntryLink>) {
        let from = self.place;
        links.extend(to.map(|to| EntryLink { from, to, kind }));
    }

    fn record(self, creates_tasks: bool) -> RequestRecord {
        RequestRecord {
            place: self.place,
            conn: self.conn,
            exchange: self.exchange,
            is_answered: false,
            creates_tasks,
        }
    }
}

impl Correlator {
    /// Adds the next entry, and returns the links from its messages to earlier ones.
    pub fn push(&mut self, entry: &RecordedEntry) -> Vec<EntryLink> {
        let mut links = Vec::new();
        if let EntryKind::Message(message) = &entry.kind {
            self.add_message(entry, message, &mut links);
        }
        links
    }

    fn add_message(
        &mut self,
        entry: &RecordedEntry,
        message: &MessageEntry,
        links: &mut Vec<EntryLink>,
    ) {
        let at = |index| MessagePlace {
            place: MessageRef {
                seq: entry.seq,
                index,
            },
            from: message.from,
            conn: entry.conn,
            exchange: message.exchange,
        };
        match parse(message.message.as_str().as_bytes()) {
            Ok(Incoming::One(message)) => self.add(at(0), &message, links),
            Ok(Incoming::Batch(messages)) => {
                for (index, message) in (0..).zip(messages) {
                    if let Ok(message) = message {
                        self.add(at(index), &message, links);
                    }
                }
            }
            Err(malformed) if malformed.is_response() => {
                if let Some(id) = malformed.id {
                    self.take_request(at(0), id, links);
                }
            }
            Err(_) => {}
        }
    }

    fn add(&mut self, at: MessagePlace, message: &Message<'_>, links: &mut Vec<EntryLink>) {
        match message {
            Message::Request(request) => self.add_request(at, request, links),
            Message::Notification(notification) => self.add_notification(at, notification, links),
            Message::Response(response) => self.add_response(at, response, links),
            Message::ErrorWithoutId(_) => {}
        }
    }

    fn add_request(&mut self, at: MessagePlace, request: &Request<'_>, links: &mut Vec<EntryLink>) {
        let params = &request.params;
        if let Some(state) = params.get("requestState").map(key_text) {
            at.link(self.states.find(&state, at), LinkKind::Round, links);
        }
        self.link_task(at, params, links);

        let is_task_method = request.method.starts_with("tasks/");
        let record = at.record(!is_task_method);
        let id = request.id.clone();
        if let Some(token) = meta_member(params, keys::PROGRESS_TOKEN) {
            self.progress.insert((at.from, token), record);
        }
        if request.method == method::SUBSCRIPTIONS_LISTEN.name {
            let key = SubscriptionKey::Listen(id.clone());
            self.subscriptions.insert(key, record);
        }
        if request.method == method::RESOURCES_SUBSCRIBE.name
            && let Some(uri) = params.get("uri")
        {
            let key = SubscriptionKey::Uri(key_text(uri));
            self.subscriptions.insert(key, record);
        }
        self.requests.insert((at.from, id), record);
    }

    fn add_notification(
        &mut self,
        at: MessagePlace,
        notification: &Notification<'_>,
        links: &mut Vec<EntryLink>,
    ) {
        let params = &notification.params;
        let id_of = |name| RequestId::from_json(params.get(name)?).ok();
        if notification.method == method::PROGRESS.name {
            if let Some(token) = id_of("progressToken") {
                let found = self.progress.find(&(at.from.other(), token), at);
                at.link(found, LinkKind::Progress, links);
            }
        } else if notification.method == method::CANCELLED.name
            && let Some(id) = id_of("requestId")
        {
            let found = self.requests.find(&(at.from, id), at);
            at.link(found, LinkKind::Cancellation, links);
        }
        self.link_task(at, params, links);
        let key = match meta_member(params, keys::SUBSCRIPTION_ID) {
            Some(id) => Some(SubscriptionKey::Listen(id)),
            None if notification.method == method::RESOURCES_UPDATED.name => {
                let uri = params.get("uri").map(key_text);
                uri.map(SubscriptionKey::Uri)
            }
            None => None,
        };
        if let Some(key) = key {
            let found = self.subscriptions.find(&key, at);
            at.link(found, LinkKind::Subscription, links);
        }
    }

    fn add_response(
        &mut self,
        at: MessagePlace,
        response: &Response<'_>,
        links: &mut Vec<EntryLink>,
    ) {
        let Some(request) = self.take_request(at, response.id.clone(), links) else {
            return;
        };
        let Ok(result) = response.outcome else { return };
        let Ok(result) = RawObject::parse(result) else {
            return;
        };
        if let Some(state) = result.get("requestState") {
            self.states.insert(key_text(state), request);
        }
        if request.creates_tasks
            && let Some(task) = created_task(&result)
        {
            self.tasks.insert(task, request);
        }
    }

    /// Links a response to its request, which gets no other response.
    fn take_request(
        &mut self,
        at: MessagePlace,
        id: RequestId,
        links: &mut Vec<EntryLink>,
    ) -> Option<RequestRecord> {
        let request = self.requests.take_unanswered(&(at.from.other(), id), at)?;
        at.link(Some(request.place), LinkKind::Response, links);
        Some(request)
    }

    fn link_task(&self, at: MessagePlace, params: &Params<'_>, links: &mut Vec<EntryLink>) {
        let related = || {
            let meta = params.meta_object().ok()??;
            let task = RawObject::parse(meta.get(keys::RELATED_TASK)?).ok()?;
            task.get("taskId").map(key_text)
        };
        let Some(task) = params.get("taskId").map(key_text).or_else(related) else {
            return;
        };
        at.link(self.tasks.find(&task, at), LinkKind::Task, links);
    }
}

/// Returns the id of the task that a result contains: in `task` up to 2025-11-25, in the result itself later.
fn created_task(result: &RawObject<'_>) -> Option<String> {
    if let Some(task) = result.get("task") {
        let task = RawObject::parse(task).ok()?;
        return task.get("taskId").map(key_text);
    }
    result.get("taskId").map(key_text)
}

/// Returns a member of `_meta` that is an id.
fn meta_member(params: &Params<'_>, name: &str) -> Option<RequestId> {
    let meta = params.meta_object().ok()??;
    RequestId::from_json(meta.get(name)?).ok()
}

/// Returns the text of a string. Another value, such as the place of a redacted one, is compared as JSON.
fn key_text(json: &str) -> String {
    string_value(json)
        .unwrap_or(Cow::Borrowed(json))
        .into_owned()
}
