//! The suite of the event log notices stores that break its rules.

use std::{
    collections::{HashMap, HashSet},
    panic::resume_unwind,
    sync::{Arc, Mutex},
    thread,
};

use bytes::Bytes;
use turnbuckle_store::{
    BoxFuture, EventBatch, EventId, EventReplay, EventStore, InstanceId, SessionId, Store,
    StoreError, StoreLimits, StreamId, conformance,
};

/// What an event log does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    None,
    StoresRepeatedAppends,
    RefusesRepeatedAppends,
    LosesTheHead,
    KeepsAnsweredRequests,
    TakesEveryWriter,
    IgnoresTheFence,
    ClosesOrphansTwice,
    ClosesStreamsOfOthers,
    ClosesBelowTheClient,
    ReplaysInWrongOrder,
    ReplayIgnoresTheLimit,
    ReplayHidesTheRest,
    RefusesIdsBeyondTheLog,
    KnowsEveryIdOfFinishedStreams,
    IgnoresTheEnd,
    HidesLostNumbers,
    SharesStreamsBetweenSessions,
}

const DEFECTS: [Defect; 17] = [
    Defect::StoresRepeatedAppends,
    Defect::RefusesRepeatedAppends,
    Defect::LosesTheHead,
    Defect::KeepsAnsweredRequests,
    Defect::TakesEveryWriter,
    Defect::IgnoresTheFence,
    Defect::ClosesOrphansTwice,
    Defect::ClosesStreamsOfOthers,
    Defect::ClosesBelowTheClient,
    Defect::ReplaysInWrongOrder,
    Defect::ReplayIgnoresTheLimit,
    Defect::ReplayHidesTheRest,
    Defect::RefusesIdsBeyondTheLog,
    Defect::KnowsEveryIdOfFinishedStreams,
    Defect::IgnoresTheEnd,
    Defect::HidesLostNumbers,
    Defect::SharesStreamsBetweenSessions,
];

struct BrokenEventStore {
    inner: Arc<dyn EventStore>,
    defect: Defect,
    /// The number of the last event of each stream.
    last: Mutex<HashMap<(SessionId, StreamId), u64>>,
    orphans: Mutex<HashSet<(SessionId, StreamId)>>,
}

impl BrokenEventStore {
    /// Returns the number of the last event of a stream, and sets it if it grows.
    fn advance(&self, session: &SessionId, stream: &StreamId, to: u64) -> u64 {
        let mut last = self.last.lock().unwrap();
        let last = last.entry((*session, *stream)).or_default();
        let before = *last;
        *last = before.max(to);
        before
    }

    fn session(&self, session: &SessionId) -> SessionId {
        match self.defect {
            Defect::SharesStreamsBetweenSessions => "AAAAAAAAAAAAAAAAAAAAAAAA".parse().unwrap(),
            _ => *session,
        }
    }
}

impl EventStore for BrokenEventStore {
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        mut batch: EventBatch<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let session = self.session(session);
            let to = (batch.first + batch.events.len() as u64).saturating_sub(1);
            let before = self.advance(&session, stream, to);
            let is_repeated = !batch.events.is_empty() && to <= before;
            match self.defect {
                Defect::StoresRepeatedAppends if is_repeated => {
                    batch.first = before + 1;
                    self.advance(&session, stream, before + batch.events.len() as u64);
                }
                Defect::RefusesRepeatedAppends if is_repeated => {
                    return Err(StoreError::Gone { what: "stream" });
                }
                Defect::LosesTheHead => {
                    if let Some(head) = &mut batch.head {
                        head.requests.clear();
                    }
                }
                Defect::KeepsAnsweredRequests => batch.answered = &[],
                Defect::TakesEveryWriter => {
                    if let Some(head) = &mut batch.head {
                        head.writer.slot = turnbuckle_store::InstanceSlot::new(1).unwrap();
                        head.writer.nonce = u64::MAX - 1;
                    }
                }
                Defect::IgnoresTheEnd => batch.end = false,
                Defect::HidesLostNumbers => batch.first = batch.first.min(before + 1),
                _ => {}
            }
            let appended = self.inner.append(&session, stream, batch).await;
            let is_orphan = self.orphans.lock().unwrap().contains(&(session, *stream));
            if is_orphan && self.defect == Defect::IgnoresTheFence {
                return Ok(());
            }
            appended
        })
    }

    fn replay_after<'a>(
        &'a self,
        session: &'a SessionId,
        last: &'a EventId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<EventReplay>, StoreError>> {
        Box::pin(async move {
            let session = &self.session(session);
            let limit = match self.defect {
                Defect::ReplayIgnoresTheLimit => usize::MAX,
                _ => limit,
            };
            let Some(mut replay) = self.inner.replay_after(session, last, limit).await? else {
                if self.defect != Defect::KnowsEveryIdOfFinishedStreams || last.sequence == 0 {
                    return Ok(None);
                }
                let known = EventId {
                    sequence: 1,
                    ..*last
                };
                return self.inner.replay_after(session, &known, limit).await;
            };
            match self.defect {
                Defect::ReplaysInWrongOrder => replay.events.reverse(),
                Defect::ReplayHidesTheRest => replay.more = false,
                Defect::RefusesIdsBeyondTheLog if last.sequence > replay.last => return Ok(None),
                _ => {}
            }
            Ok(Some(replay))
        })
    }

    fn close_orphan<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        dead: &'a InstanceId,
        after: u64,
        events: &'a [Bytes],
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let session = self.session(session);
            let after = match self.defect {
                Defect::ClosesBelowTheClient => 0,
                _ => after,
            };
            let start = EventId {
                stream: *stream,
                sequence: 1,
            };
            let replay = self.inner.replay_after(&session, &start, 1).await?;
            let dead = match (&replay, self.defect) {
                (Some(replay), Defect::ClosesStreamsOfOthers) => replay.writer,
                _ => *dead,
            };
            let closed = self
                .inner
                .close_orphan(&session, stream, &dead, after, events)
                .await?;
            if closed {
                self.orphans.lock().unwrap().insert((session, *stream));
            }
            let is_known = replay.is_some();
            Ok(closed || (is_known && self.defect == Defect::ClosesOrphansTwice))
        })
    }

    fn remove_session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.remove_session(session)
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.sweep()
    }
}

/// Runs the suite on an event log with a defect, in a thread of its own because it panics.
fn passes(defect: Defect) -> thread::Result<()> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without drivers starts");
        runtime.block_on(conformance::events(async |limits: StoreLimits| {
            let mut store = Store::memory_with(limits);
            store.events = Arc::new(BrokenEventStore {
                inner: store.events,
                defect,
                last: Mutex::default(),
                orphans: Mutex::default(),
            });
            store
        }));
    };
    thread::spawn(run).join()
}

#[test]
fn an_event_log_without_defects_passes() {
    if let Err(panic) = passes(Defect::None) {
        resume_unwind(panic);
    }
}

#[test]
fn each_defect_is_noticed() {
    for defect in DEFECTS {
        assert!(passes(defect).is_err(), "{defect:?}");
    }
}
