//! Requests whose answers are kept.

use std::sync::MutexGuard;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use turnbuckle_protocol::Versioned;
use turnbuckle_protocol::json;
use turnbuckle_protocol::jsonrpc::code;
use turnbuckle_protocol::method::{self, Method};
use turnbuckle_protocol::types::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedParams, ReadResourceParams, ReadResourceResult,
};

use super::{Cache, Epoch, Kept, Key};
use crate::call::Options;
use crate::client::{Beside, Client, Reply, complete};
use crate::error::CallError;

/// Results that say how long they are fresh.
pub(crate) trait Hints: DeserializeOwned + Versioned {
    /// For how many milliseconds.
    fn ttl_ms(&self) -> Option<u64>;
}

macro_rules! hints {
    ($($result:ty),*) => {$(
        impl Hints for $result {
            fn ttl_ms(&self) -> Option<u64> {
                self.ttl_ms
            }
        }
    )*};
}

hints!(
    ListToolsResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult
);

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Server,
    Cache,
}

impl Client {
    /// Asks for one page of a list, or takes the one that was kept.
    pub(crate) async fn ask_for_page<R: Hints>(
        &self,
        method: &'static Method,
        cursor: Option<String>,
        options: &Options,
    ) -> Result<(R, Origin), CallError> {
        let key = Key::new(method.name, cursor.clone());
        if let Some(page) = self.kept(&key, options) {
            return Ok((page, Origin::Cache));
        }
        let epoch = self.cache().epoch();
        let mut params = PaginatedParams::new();
        params.cursor = cursor;
        let beside = Beside::default();
        let reply = self.ask_once(method, &params, &beside, options).await;
        let reply = reply.inspect_err(|error| {
            // A cursor that is refused was made for a list that is no more.
            if params.cursor.is_some() && is_refusal(error) {
                self.cache().forget_lists(&[method.name]);
            }
        })?;
        complete(method.name, &reply)?;
        let page = reply.read(method.name)?;
        self.keep(key, &page, &reply, epoch, options);
        Ok((page, Origin::Server))
    }

    /// Asks for a resource, or takes the answer that was kept.
    pub(crate) async fn ask_for_resource(
        &self,
        params: ReadResourceParams,
        options: &Options,
    ) -> Result<ReadResourceResult, CallError> {
        let method = &method::RESOURCES_READ;
        let uri = params.uri.clone();
        let key = Key::new(method.name, Some(uri.clone()));
        if let Some(contents) = self.kept(&key, options) {
            return Ok(contents);
        }
        let epoch = self.cache().epoch();
        let beside = Beside {
            name: Some(&uri),
            ..Beside::default()
        };
        let reply = self
            .ask_in_rounds(method, &params, &beside, options)
            .await?;
        complete(method.name, &reply)?;
        let contents = reply.read(method.name)?;
        // What was asked for in rounds depends on more than the address.
        if reply.rounds == 0 {
            self.keep(key, &contents, &reply, epoch, options);
        }
        Ok(contents)
    }

    fn kept<R: Hints>(&self, key: &Key, options: &Options) -> Option<R> {
        if options.fresh || !is_plain(options) {
            return None;
        }
        let kept = self.cache().get(key, Instant::now())?;
        let text = std::str::from_utf8(&kept.text).ok()?;
        let mut result: R = json::from_str(text).ok()?;
        result.raise(kept.rules.revision);
        Some(result)
    }

    fn keep(&self, key: Key, result: &impl Hints, reply: &Reply, epoch: Epoch, options: &Options) {
        let ttl_ms = result.ttl_ms().unwrap_or(0);
        if ttl_ms == 0 || !reply.rules.caches || !is_plain(options) {
            return;
        }
        let kept = Kept {
            // A copy: the buffer it came in may hold far more.
            text: Bytes::copy_from_slice(reply.result.as_str().as_bytes()),
            rules: reply.rules.clone(),
        };
        self.cache().put(key, kept, ttl_ms, epoch, Instant::now());
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.inner.hub.cache()
    }
}

/// Says whether nothing was added to the request that its result could depend on.
fn is_plain(options: &Options) -> bool {
    options.meta.is_empty()
}

fn is_refusal(error: &CallError) -> bool {
    error
        .rpc()
        .is_some_and(|error| error.code == code::INVALID_PARAMS)
}
