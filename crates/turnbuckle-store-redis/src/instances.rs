//! The registry of instances in Redis.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use turnbuckle_store::{
    BoxFuture, INSTANCE_LEASE, InstanceId, InstanceInbox, InstanceMessage, InstanceRegistry,
    InstanceSlot, StoreError,
};

use crate::{
    connection::lock,
    encoding::encode_inbox_entry,
    index::millis,
    keys,
    log::parse_instance,
    script::{Argument, Script},
    shared::Shared,
};

static JOIN: Script = Script::new(include_str!("scripts/instance_join.lua"));
static RENEW: Script = Script::new(include_str!("scripts/instance_renew.lua"));
static LEAVE: Script = Script::new(include_str!("scripts/instance_leave.lua"));
static ALIVE: Script = Script::new(include_str!("scripts/instance_alive.lua"));
static TAKE_EXPIRED: Script = Script::new(include_str!("scripts/instance_take_expired.lua"));
static SEND: Script = Script::new(include_str!("scripts/instance_send.lua"));

/// The most messages of an inbox that its process has not read.
const INBOX_LENGTH: usize = 10_000;

/// The time for which Redis keeps the inbox of a process that has ended.
const INBOX_TTL: Duration = Duration::from_secs(10 * 60);

/// Leases with the clock of Redis. All instances of a process have one inbox, which the reader of the logs reads too.
pub(crate) struct RedisInstanceRegistry {
    shared: Arc<Shared>,
    keys: [String; 3],
    /// The name of a request for expired instances without a response. It is repeated, so that they are not lost.
    repeated: Mutex<Option<String>>,
}

impl RedisInstanceRegistry {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            keys: shared.keys.instances(),
            shared,
            repeated: Mutex::default(),
        }
    }

    fn keys(&self) -> [&str; 3] {
        self.keys.each_ref().map(String::as_str)
    }

    async fn run(&self, script: &Script, arguments: &[Argument<'_>]) -> Result<i64, StoreError> {
        let connection = &self.shared.connection;
        connection.script(script, &self.keys(), arguments).await
    }

    async fn join_now(&self) -> Result<InstanceId, StoreError> {
        let mut nonce = [0; 8];
        getrandom::fill(&mut nonce).map_err(StoreError::unavailable)?;
        let nonce = u64::from_ne_bytes(nonce);
        let (text, inbox) = (
            nonce_text(nonce),
            self.shared.keys.inbox(&self.shared.process),
        );
        let arguments = [
            (&text).into(),
            millis(INSTANCE_LEASE).into(),
            (&inbox).into(),
            usize::from(InstanceSlot::COUNT).into(),
        ];
        let slot = self.run(&JOIN, &arguments).await?;
        let slot = u16::try_from(slot).ok().and_then(InstanceSlot::new);
        let slot = slot.ok_or(StoreError::Full { what: "instance" })?;
        Ok(InstanceId { slot, nonce })
    }

    async fn renew_now(&self, id: &InstanceId) -> Result<bool, StoreError> {
        let (text, inbox) = (id.to_string(), self.shared.keys.inbox(&self.shared.process));
        let arguments = [
            (&text).into(),
            millis(INSTANCE_LEASE).into(),
            millis(INBOX_TTL).into(),
        ];
        let keys = [&*self.keys[0], &*inbox];
        let is_renewed: bool = self
            .shared
            .connection
            .script(&RENEW, &keys, &arguments)
            .await?;
        if !is_renewed {
            self.shared.channels.close_inbox(id);
        }
        Ok(is_renewed)
    }

    async fn leave_now(&self, id: &InstanceId) -> Result<(), StoreError> {
        self.shared.channels.close_inbox(id);
        let (slot, nonce) = (id.slot.number().to_string(), nonce_text(id.nonce));
        let arguments = [(&slot).into(), (&nonce).into()];
        self.run(&LEAVE, &arguments).await.map(drop)
    }

    async fn take_expired_now(&self) -> Result<Vec<InstanceId>, StoreError> {
        let request = lock(&self.repeated).take();
        let request = request.unwrap_or_else(keys::random_name);
        let result = self.shared.keys.expired_instances(&request);
        let [instances, slots, inboxes] = self.keys();
        let keys = [instances, slots, inboxes, &result];
        let taken = self.shared.connection.script(&TAKE_EXPIRED, &keys, &[]);
        let taken: Result<String, _> = taken.await;
        if taken.is_err() {
            *lock(&self.repeated) = Some(request);
        }
        Ok(taken?
            .split_ascii_whitespace()
            .filter_map(parse_instance)
            .collect())
    }

    async fn send_now(
        &self,
        slot: InstanceSlot,
        message: InstanceMessage,
    ) -> Result<bool, StoreError> {
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(StoreError::unavailable)?;
        let Some(plain) = encode_inbox_entry(u64::from_ne_bytes(number), &message) else {
            return Ok(false);
        };
        let name = self.shared.keys.messages_to(slot);
        let sealed = self.shared.sealer.seal(&plain, &name);
        let slot = slot.number().to_string();
        let arguments = [
            (&slot).into(),
            (&sealed).into(),
            INBOX_LENGTH.into(),
            millis(INBOX_TTL).into(),
        ];
        Ok(self.run(&SEND, &arguments).await? == 1)
    }
}

/// The nonce as the text form of an instance has it.
fn nonce_text(nonce: u64) -> String {
    format!("{nonce:016x}")
}

impl InstanceRegistry for RedisInstanceRegistry {
    fn join(&self) -> BoxFuture<'_, Result<InstanceId, StoreError>> {
        Box::pin(self.join_now())
    }

    fn renew<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.renew_now(id))
    }

    fn leave<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.leave_now(id))
    }

    fn is_alive<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let text = id.to_string();
            Ok(self.run(&ALIVE, &[(&text).into()]).await? == 1)
        })
    }

    fn take_expired(&self) -> BoxFuture<'_, Result<Vec<InstanceId>, StoreError>> {
        Box::pin(self.take_expired_now())
    }

    fn send(
        &self,
        slot: InstanceSlot,
        message: InstanceMessage,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.send_now(slot, message))
    }

    fn inbox(&self, id: &InstanceId) -> InstanceInbox {
        InstanceInbox::of_results(self.shared.channels.open_inbox(*id))
    }
}
