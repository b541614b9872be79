//! The state of Turnbuckle servers on Redis or Valkey, so that several instances serve one endpoint.
//!
//! [`RedisStore::connect`] opens a store, and [`RedisStore::into_store`] makes it the store of a server. Redis 7.0 or Valkey 7.2
//! is required, alone, with Sentinel or as a cluster. Its `maxmemory-policy` must be `noeviction`.
//!
//! Values are sealed with the state keys of the servers. A reader of Redis sees sizes and names of keys; a writer can remove values
//! but neither forge nor exchange them.
//!
//! A command fails after a second without a response, and after three failures in a row the next commands fail at once for a
//! quarter of a second. Then requests of sessions get status 503; requests of the modern era do not use the store.
//!
//! Limits count exactly, with one exception: on a cluster or over a failover, an entry can exist for a moment that is not counted.

mod bus;
mod claims;
mod connection;
mod control;
mod encoding;
mod error;
mod events;
mod index;
mod instances;
mod keys;
mod log;
mod request_states;
mod sealing;
mod session_index;
mod sessions;
mod settings;
mod shared;
mod store;
mod tasks;

use connection::{join, script, tls, url};
pub use error::{InvalidStoreKeys, RedisStoreError};
pub use settings::RedisStoreSettings;
pub use store::RedisStore;
use turnbuckle_store::StoreError;

fn check_size(what: &'static str, bytes: usize, limit: usize) -> Result<(), StoreError> {
    if bytes > limit {
        return Err(StoreError::TooLarge { what, limit });
    }
    Ok(())
}
