//! The suite of the bus notices stores that break its rules.

use std::{panic::resume_unwind, sync::Arc, thread};

use turnbuckle_store::{
    BoxFuture, BusSubscription, ChangeBus, ListDigest, Position, ServerChange, Store, StoreError,
    StoreLimits, conformance,
};

/// What a bus does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    None,
    LosesPublishedChanges,
    PublishesTwice,
    SubscriptionStartsLate,
    IgnoresDigests,
    PublishesEachListOnce,
    SharesOneDigestBetweenLists,
    PositionIsInTheFuture,
    AfterIgnoresTheLimit,
    AfterIncludesThePosition,
    AfterSkipsLostChanges,
    AfterKnowsEveryPosition,
}

const DEFECTS: [Defect; 11] = [
    Defect::LosesPublishedChanges,
    Defect::PublishesTwice,
    Defect::SubscriptionStartsLate,
    Defect::IgnoresDigests,
    Defect::PublishesEachListOnce,
    Defect::SharesOneDigestBetweenLists,
    Defect::PositionIsInTheFuture,
    Defect::AfterIgnoresTheLimit,
    Defect::AfterIncludesThePosition,
    Defect::AfterSkipsLostChanges,
    Defect::AfterKnowsEveryPosition,
];

struct BrokenBus {
    inner: Arc<dyn ChangeBus>,
    defect: Defect,
}

impl ChangeBus for BrokenBus {
    fn publish(&self, change: ServerChange) {
        let is_second = |change: &ServerChange| matches!(change, ServerChange::ResourceUpdated { uri } if uri.ends_with("/2"));
        match self.defect {
            Defect::LosesPublishedChanges if is_second(&change) => {}
            Defect::PublishesTwice => {
                self.inner.publish(change.clone());
                self.inner.publish(change);
            }
            _ => self.inner.publish(change),
        }
    }

    fn publish_list(&self, change: ServerChange, digest: ListDigest) {
        match self.defect {
            Defect::IgnoresDigests => self.inner.publish(change),
            Defect::PublishesEachListOnce => {
                self.inner.publish_list(change, ListDigest::new([0; 16]));
            }
            Defect::SharesOneDigestBetweenLists => {
                self.inner.publish_list(ServerChange::ToolsChanged, digest);
            }
            _ => self.inner.publish_list(change, digest),
        }
    }

    fn subscribe(&self) -> BusSubscription {
        let subscription = self.inner.subscribe();
        if self.defect == Defect::SubscriptionStartsLate {
            let (sender, receiver) = tokio::sync::broadcast::channel(16);
            let mut changes = subscription;
            tokio::spawn(async move {
                // Misses the first change.
                let _ = changes.next().await;
                while let Ok(change) = changes.next().await {
                    let _ = sender.send(change);
                }
            });
            return BusSubscription::new(receiver);
        }
        subscription
    }

    fn position(&self) -> Position {
        let position = self.inner.position();
        match self.defect {
            Defect::PositionIsInTheFuture => Position::new(position.number() + 1),
            _ => position,
        }
    }

    fn after(
        &self,
        position: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Option<Vec<(Position, ServerChange)>>, StoreError>> {
        Box::pin(async move {
            let (position, limit) = match self.defect {
                Defect::AfterIgnoresTheLimit => (position, usize::MAX),
                Defect::AfterIncludesThePosition => {
                    (Position::new(position.number().saturating_sub(1)), limit)
                }
                _ => (position, limit),
            };
            let after = self.inner.after(position, limit).await?;
            let is_known = position <= self.inner.position();
            Ok(match self.defect {
                Defect::AfterSkipsLostChanges if is_known => after.or(Some(Vec::new())),
                Defect::AfterKnowsEveryPosition if !is_known => after.or(Some(Vec::new())),
                _ => after,
            })
        })
    }
}

/// Runs the suite on a bus with a defect, in a thread of its own because it panics.
fn passes(defect: Defect) -> thread::Result<()> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without drivers starts");
        runtime.block_on(conformance::bus(async |limits: StoreLimits| {
            let mut store = Store::memory_with(limits);
            let inner = store.bus;
            store.bus = Arc::new(BrokenBus { inner, defect });
            store
        }));
    };
    thread::spawn(run).join()
}

#[test]
fn a_bus_without_defects_passes() {
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
