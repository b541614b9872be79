//! The suite of the sessions notices stores that break its rules.

use std::{
    panic::resume_unwind,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use turnbuckle_store::{
    BoxFuture, RequiredSpace, SessionId, SessionInUse, SessionRecord, SessionStore, SessionUpdate,
    Store, StoreError, StoreLimits, conformance,
};

/// What a session store does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    None,
    LoadRestartsTheIdleTimeout,
    RequestsAreSaidToTouch,
    TouchChangesNothing,
    TouchReportsEverySession,
    TouchReportsNoSession,
    TouchSkipsUnknownSessions,
    TouchHandlesOnlyTheFirst,
    TouchIntervalIsTheIdleTimeout,
    VersionStays,
    VersionRisesInTheResultOnly,
    VersionCountsUpdatesOfAllSessions,
    UpdatesAreLost,
    TurnsAreLost,
    RemoveReportsUnknownSessions,
    SweepReportsTwice,
    SweepReportsNothing,
}

const DEFECTS: [Defect; 16] = [
    Defect::LoadRestartsTheIdleTimeout,
    Defect::RequestsAreSaidToTouch,
    Defect::TouchChangesNothing,
    Defect::TouchReportsEverySession,
    Defect::TouchReportsNoSession,
    Defect::TouchSkipsUnknownSessions,
    Defect::TouchHandlesOnlyTheFirst,
    Defect::TouchIntervalIsTheIdleTimeout,
    Defect::VersionStays,
    Defect::VersionRisesInTheResultOnly,
    Defect::VersionCountsUpdatesOfAllSessions,
    Defect::UpdatesAreLost,
    Defect::TurnsAreLost,
    Defect::RemoveReportsUnknownSessions,
    Defect::SweepReportsTwice,
    Defect::SweepReportsNothing,
];

struct BrokenSessions {
    inner: Arc<dyn SessionStore>,
    limits: StoreLimits,
    defect: Defect,
    /// The sessions of the last sweep, for a defect that reports them again.
    swept: Mutex<Vec<SessionId>>,
    updates: Mutex<u32>,
}

type LoadedRecord = Result<Option<Arc<SessionRecord>>, StoreError>;

impl BrokenSessions {
    /// Changes the version of a record.
    fn with_version(found: Option<Arc<SessionRecord>>, version: u32) -> Option<Arc<SessionRecord>> {
        let mut record = SessionRecord::clone(&*found?);
        record.version = version;
        Some(Arc::new(record))
    }

    /// Breaks the version of a record that is read.
    fn read(&self, found: Option<Arc<SessionRecord>>) -> Option<Arc<SessionRecord>> {
        match self.defect {
            Defect::VersionStays | Defect::VersionRisesInTheResultOnly => {
                Self::with_version(found, 0)
            }
            Defect::VersionCountsUpdatesOfAllSessions => {
                Self::with_version(found, *self.updates.lock().expect("not poisoned"))
            }
            Defect::TurnsAreLost => found.map(|record| {
                let mut record = SessionRecord::clone(&record);
                record.stream_turns = Default::default();
                Arc::new(record)
            }),
            _ => found,
        }
    }
}

impl SessionStore for BrokenSessions {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<SessionId, StoreError>> {
        self.inner.create(record)
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, LoadedRecord> {
        Box::pin(async move {
            if self.defect == Defect::LoadRestartsTheIdleTimeout {
                self.inner.touch(&[*id]).await?;
            }
            Ok(self.read(self.inner.load(id).await?))
        })
    }

    fn load_for_request<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionInUse>, StoreError>> {
        Box::pin(async move {
            Ok(self.load(id).await?.map(|record| SessionInUse {
                record,
                is_touched: self.defect == Defect::RequestsAreSaidToTouch,
            }))
        })
    }

    fn touch<'a>(&'a self, ids: &'a [SessionId]) -> BoxFuture<'a, Result<Vec<bool>, StoreError>> {
        Box::pin(async move {
            if self.defect == Defect::TouchChangesNothing {
                let mut found = Vec::new();
                for id in ids {
                    found.push(self.inner.load(id).await?.is_some());
                }
                return Ok(found);
            }
            let touched = match self.defect {
                Defect::TouchHandlesOnlyTheFirst => &ids[..ids.len().min(1)],
                _ => ids,
            };
            let mut found = self.inner.touch(touched).await?;
            found.resize(ids.len(), true);
            match self.defect {
                Defect::TouchReportsEverySession => found.fill(true),
                Defect::TouchReportsNoSession => found.fill(false),
                Defect::TouchSkipsUnknownSessions => found.retain(|exists| *exists),
                _ => {}
            }
            Ok(found)
        })
    }

    fn touch_interval(&self) -> Duration {
        match self.defect {
            Defect::TouchIntervalIsTheIdleTimeout => self.limits.sessions.idle,
            _ => self.inner.touch_interval(),
        }
    }

    fn update<'a>(
        &'a self,
        id: &'a SessionId,
        update: SessionUpdate,
    ) -> BoxFuture<'a, LoadedRecord> {
        Box::pin(async move {
            if self.defect == Defect::UpdatesAreLost && matches!(update, SessionUpdate::LogLevel(_))
            {
                return self.inner.load(id).await;
            }
            let updated = self.inner.update(id, update).await?;
            *self.updates.lock().expect("not poisoned") += 1;
            Ok(match self.defect {
                Defect::VersionRisesInTheResultOnly => updated,
                _ => self.read(updated),
            })
        })
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let removed = self.inner.remove(id).await?;
            Ok(removed || self.defect == Defect::RemoveReportsUnknownSessions)
        })
    }

    fn evict<'a>(
        &'a self,
        needed: RequiredSpace<'a>,
        in_use: &'a (dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> BoxFuture<'a, Result<Option<SessionId>, StoreError>> {
        self.inner.evict(needed, in_use)
    }

    fn len(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.inner.len()
    }

    fn sweep(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move {
            let swept = self.inner.sweep().await?;
            let mut last = self.swept.lock().expect("not poisoned");
            let again = std::mem::replace(&mut *last, swept.clone());
            Ok(match self.defect {
                Defect::SweepReportsNothing => Vec::new(),
                Defect::SweepReportsTwice => [swept, again].concat(),
                _ => swept,
            })
        })
    }
}

/// Runs the suite on a store with a defect, in a thread of its own because it panics.
fn passes(defect: Defect) -> thread::Result<()> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without drivers starts");
        runtime.block_on(conformance::sessions(async |limits: StoreLimits| {
            let mut store = Store::memory_with(limits.clone());
            let inner = store.sessions;
            store.sessions = Arc::new(BrokenSessions {
                inner,
                limits,
                defect,
                swept: Mutex::default(),
                updates: Mutex::default(),
            });
            store
        }));
    };
    thread::spawn(run).join()
}

/// Its requests do not touch, as those of a store with a cache.
#[test]
fn a_session_store_without_defects_passes() {
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
