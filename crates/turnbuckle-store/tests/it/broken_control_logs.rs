//! The suite of the control log notices logs that break its rules.

use std::{
    panic::resume_unwind,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use tokio::{sync::broadcast, time::sleep};
use turnbuckle_store::{
    BoxFuture, ControlLog, ControlMessage, ControlSubscription, Store, StoreError, StoreLimits,
    conformance,
};

/// What a control log does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    None,
    LosesEndsOfSessions,
    PublishesTwice,
    Reorders,
    PublishesAfterItResolves,
    LosesTheTypeOfIds,
    HasOneSubscriber,
    HidesLoss,
}

const DEFECTS: [Defect; 7] = [
    Defect::LosesEndsOfSessions,
    Defect::PublishesTwice,
    Defect::Reorders,
    Defect::PublishesAfterItResolves,
    Defect::LosesTheTypeOfIds,
    Defect::HasOneSubscriber,
    Defect::HidesLoss,
];

struct BrokenLog {
    inner: Arc<dyn ControlLog>,
    defect: Defect,
    delayed: Mutex<Option<ControlMessage>>,
    subscribers: Mutex<usize>,
}

impl ControlLog for BrokenLog {
    fn publish(&self, mut message: ControlMessage) -> BoxFuture<'_, Result<(), StoreError>> {
        match (self.defect, &mut message) {
            (Defect::LosesEndsOfSessions, ControlMessage::SessionEnded { .. }) => {
                return Box::pin(async { Ok(()) });
            }
            (Defect::LosesTheTypeOfIds, ControlMessage::CallCancelled { request, .. }) => {
                *request = request.raw().trim_matches('"').into();
            }
            _ => {}
        }
        Box::pin(async move {
            match self.defect {
                Defect::PublishesTwice => self.inner.publish(message.clone()).await?,
                Defect::Reorders => {
                    let delayed = self.delayed.lock().unwrap().take();
                    let Some(delayed) = delayed else {
                        *self.delayed.lock().unwrap() = Some(message);
                        return Ok(());
                    };
                    self.inner.publish(message).await?;
                    return self.inner.publish(delayed).await;
                }
                Defect::PublishesAfterItResolves => {
                    let inner = self.inner.clone();
                    tokio::spawn(async move {
                        sleep(Duration::from_millis(10)).await;
                        let _ = inner.publish(message).await;
                    });
                    return Ok(());
                }
                _ => {}
            }
            self.inner.publish(message).await
        })
    }

    fn subscribe(&self) -> ControlSubscription {
        let mut subscribers = self.subscribers.lock().unwrap();
        *subscribers += 1;
        match self.defect {
            Defect::HasOneSubscriber if *subscribers > 1 => {
                ControlSubscription::new(broadcast::Sender::new(1).subscribe())
            }
            Defect::HidesLoss => {
                let mut messages = self.inner.subscribe();
                let (sender, receiver) = broadcast::channel(1_000);
                tokio::spawn(async move {
                    loop {
                        if let Ok(message) = messages.next().await {
                            let _ = sender.send(message);
                        }
                    }
                });
                ControlSubscription::new(receiver)
            }
            _ => self.inner.subscribe(),
        }
    }
}

/// Runs the suite on a log with a defect, in a thread of its own because it panics.
fn passes(defect: Defect) -> thread::Result<()> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without drivers starts");
        runtime.block_on(conformance::control(async |limits: StoreLimits| {
            let mut store = Store::memory_with(limits);
            store.control = Arc::new(BrokenLog {
                inner: store.control,
                defect,
                delayed: Mutex::default(),
                subscribers: Mutex::default(),
            });
            store
        }));
    };
    thread::spawn(run).join()
}

#[test]
fn a_log_without_defects_passes() {
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
