//! The task of an instance: renews its lease, receives messages, and ends the tasks of instances that stopped.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep, sleep_until};
use turnbuckle_store::{
    ControlMessage, ControlSubscription, INSTANCE_LEASE, InstanceId, InstanceInbox,
    SubscriberLagged,
};

use super::lease::{InstanceLease, in_time};
use crate::{sync::lock, tasks};

/// Time between two renewals.
const RENEW_INTERVAL: Duration = INSTANCE_LEASE.checked_div(3).expect("3 is not 0");

/// Time between two attempts to reach a registry that failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two looks for instances that stopped. With the lease it is the time in which their tasks fail.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_secs(3);

impl InstanceLease {
    /// Runs the instance until the future is dropped.
    pub(super) async fn run(
        self: Arc<Self>,
        mut id: InstanceId,
        mut inbox: InstanceInbox,
        mut control: ControlSubscription,
    ) {
        let mut stopped = Vec::new();
        loop {
            tokio::select! {
                () = self.keep(&id) => {}
                never = self.receive(inbox, &mut control) => match never {},
                never = self.end_tasks_of_stopped(&mut stopped) => match never {},
            }
            tracing::warn!(%id, "the lease of this instance has expired; joining again");
            (id, inbox) = self.join_again().await;
            for user in self.users.all() {
                user.fail_requests_of_other_slots(id.slot);
            }
        }
    }

    /// Renews the lease until it has expired.
    async fn keep(&self, id: &InstanceId) {
        let mut next = Instant::now() + RENEW_INTERVAL;
        loop {
            sleep_until(next).await;
            let started = Instant::now();
            match in_time(self.store.instances.renew(id)).await {
                Ok(true) => {
                    self.hold_from(started);
                    next = started + RENEW_INTERVAL;
                }
                Ok(false) => {
                    self.held_until.store(0, Ordering::Release);
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot renew the lease of this instance");
                    next = Instant::now() + RETRY_INTERVAL;
                }
            }
        }
    }

    async fn join_again(&self) -> (InstanceId, InstanceInbox) {
        loop {
            match self.join().await {
                Ok(joined) => return joined,
                Err(error) => tracing::warn!(%error, "cannot join the instances of the store"),
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    /// Receives the messages to this instance and those to all instances.
    async fn receive(
        &self,
        mut inbox: InstanceInbox,
        control: &mut ControlSubscription,
    ) -> Infallible {
        loop {
            tokio::select! {
                message = inbox.next() => match message {
                    Ok(message) => {
                        for user in self.users.all() {
                            user.receive(message.clone());
                        }
                    }
                    Err(SubscriberLagged { missed }) => {
                        tracing::warn!(missed, "messages of other instances were lost");
                    }
                },
                message = control.next() => self.handle_control(message),
            }
        }
    }

    fn handle_control(&self, message: Result<ControlMessage, SubscriberLagged>) {
        let users = self.users.all();
        match message {
            Ok(ControlMessage::SessionEnded { session }) => {
                if lock(&self.ended_here).remove(&session) {
                    return;
                }
                for user in &users {
                    user.close(&session);
                }
                // The users share one server.
                if let Some(user) = users.first() {
                    user.end_session(session);
                }
            }
            Ok(ControlMessage::CallCancelled { session, request }) => {
                for user in users {
                    user.cancel_call(&session, &request);
                }
            }
            Ok(_) => {}
            Err(SubscriberLagged { missed }) => {
                tracing::warn!(missed, "messages about sessions were lost");
                lock(&self.ended_here).clear();
                for user in users {
                    user.check_sessions();
                }
            }
        }
    }

    /// Ends the tasks of instances with an expired lease. `stopped` has those that were reported and have tasks.
    async fn end_tasks_of_stopped(&self, stopped: &mut Vec<InstanceId>) -> Infallible {
        loop {
            sleep(EXPIRY_CHECK_INTERVAL).await;
            if !self.is_held() {
                continue;
            }
            match in_time(self.store.instances.take_expired()).await {
                Ok(expired) => stopped.extend(expired),
                Err(error) => tracing::warn!(%error, "cannot read which instances have stopped"),
            }
            while let Some(id) = stopped.last() {
                tracing::info!(%id, "an instance has stopped without leaving");
                if let Err(error) = tasks::end_tasks_of(&self.store, &self.tasks, id).await {
                    tracing::warn!(%error, %id, "cannot end the tasks of an instance that stopped");
                    break;
                }
                stopped.pop();
            }
        }
    }
}
