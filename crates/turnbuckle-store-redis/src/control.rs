//! The control log in Redis.

use std::sync::Arc;

use turnbuckle_store::{BoxFuture, ControlLog, ControlMessage, ControlSubscription, StoreError};

use crate::{
    encoding::encode_control,
    keys::LogKeys,
    log::{PUBLISH, log_length},
    shared::Shared,
};

/// A log of messages about single sessions: [`log`](crate::log) reads it.
pub(crate) struct RedisControlLog {
    shared: Arc<Shared>,
    log: LogKeys,
}

impl RedisControlLog {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let log = shared.keys.control();
        Self { shared, log }
    }

    async fn append(&self, message: ControlMessage) -> Result<(), StoreError> {
        let Some(plain) = encode_control(&message) else {
            return Ok(());
        };
        let sealed = self.shared.sealer.seal(&plain, &self.log.stream);
        let arguments = [
            // A message that is stored twice does no harm, so batches are not numbered.
            "".into(),
            log_length(&self.shared.limits.bus).into(),
            "".into(),
            0_usize.into(),
            (&sealed).into(),
            "".into(),
            "".into(),
        ];
        let keys = [&*self.log.stream, &*self.log.counter, &*self.log.counter];
        let connection = &self.shared.connection;
        connection.script(&PUBLISH, &keys, &arguments).await
    }
}

impl ControlLog for RedisControlLog {
    fn publish(&self, message: ControlMessage) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.append(message))
    }

    fn subscribe(&self) -> ControlSubscription {
        ControlSubscription::of_results(self.shared.channels.control.subscribe())
    }
}
