//! A subscriber that records spans.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
    thread::ThreadId,
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_core::span::Current;

/// A recorded span.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedSpan {
    pub(crate) name: &'static str,
    pub(crate) fields: BTreeMap<&'static str, String>,
    pub(crate) events: Vec<String>,
    pub(crate) threads: Vec<ThreadId>,
    pub(crate) closed: bool,
    metadata: Option<&'static Metadata<'static>>,
}

impl RecordedSpan {
    /// The value of a field, or an empty string.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// Records the spans of this thread while its guard is alive.
#[derive(Clone, Default)]
pub(crate) struct SpanRecorder(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    spans: Vec<RecordedSpan>,
    entered: Vec<(ThreadId, u64)>,
}

impl SpanRecorder {
    pub(crate) fn listen() -> (Self, tracing::subscriber::DefaultGuard) {
        let recorder = Self::default();
        let guard = tracing::subscriber::set_default(recorder.clone());
        (recorder, guard)
    }

    /// The spans of requests so far, in the order in which they were opened.
    pub(crate) fn requests(&self) -> Vec<RecordedSpan> {
        let spans = self.0.lock().unwrap().spans.clone();
        spans
            .into_iter()
            .filter(|seen| seen.name == "mcp.request")
            .collect()
    }

    /// The only request so far.
    pub(crate) fn request(&self) -> RecordedSpan {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }
}

impl Subscriber for SpanRecorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("turnbuckle") || metadata.target().starts_with("it")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut seen = RecordedSpan {
            name: span.metadata().name(),
            metadata: Some(span.metadata()),
            ..RecordedSpan::default()
        };
        span.record(&mut Fields(&mut seen.fields));
        let mut state = self.0.lock().unwrap();
        state.spans.push(seen);
        Id::from_u64(state.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut state = self.0.lock().unwrap();
        let seen = &mut state.spans[span.into_u64() as usize - 1];
        values.record(&mut Fields(&mut seen.fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        let thread = std::thread::current().id();
        let mut state = self.0.lock().unwrap();
        let inside = state.entered.iter().rev().find(|(on, _)| *on == thread);
        if let Some((_, span)) = inside.copied() {
            let message = fields.remove("message").unwrap_or_default();
            state.spans[span as usize - 1].events.push(message);
        }
    }

    fn enter(&self, span: &Id) {
        let thread = std::thread::current().id();
        let mut state = self.0.lock().unwrap();
        state.entered.push((thread, span.into_u64()));
        state.spans[span.into_u64() as usize - 1]
            .threads
            .push(thread);
    }

    fn exit(&self, span: &Id) {
        let exited = (std::thread::current().id(), span.into_u64());
        let mut state = self.0.lock().unwrap();
        if let Some(at) = state.entered.iter().rposition(|entry| *entry == exited) {
            state.entered.remove(at);
        }
    }

    fn current_span(&self) -> Current {
        let thread = std::thread::current().id();
        let state = self.0.lock().unwrap();
        let inside = state.entered.iter().rev().find(|(on, _)| *on == thread);
        match inside {
            Some((_, span)) => {
                let metadata = state.spans[*span as usize - 1].metadata.unwrap();
                Current::new(Id::from_u64(*span), metadata)
            }
            None => Current::none(),
        }
    }

    fn try_close(&self, span: Id) -> bool {
        self.0.lock().unwrap().spans[span.into_u64() as usize - 1].closed = true;
        true
    }
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}
