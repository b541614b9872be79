//! The store that several instances share, and the keys that seal its values.

use turnbuckle_server::Server;
use turnbuckle_store_redis::{RedisStore, RedisStoreError, RedisStoreSettings};

use super::{build_server::store_limits, config::ServeSettings};
use crate::error::{CliError, Result};

/// Gives the server the state keys and the store of the settings.
pub(super) async fn apply(mut server: Server, settings: &ServeSettings) -> Result<Server> {
    let Some(keys) = &settings.state_keys else {
        return Ok(server);
    };
    server = server
        .try_state_keys(keys.iter())
        .map_err(|error| CliError::could_not_run(format!("invalid state key: {error}")))?;
    if let Some(url) = &settings.store {
        let redis =
            RedisStoreSettings::new(url.expose(), keys.iter()).map_err(|error| failed(&error))?;
        let redis = redis.limits(store_limits(&settings.limits));
        let store = RedisStore::connect_with(redis).await;
        server = server.store(store.map_err(|error| failed(&error))?.into_store());
    }
    Ok(server)
}

fn failed(error: &RedisStoreError) -> CliError {
    let failed = CliError::could_not_run(turnbuckle_text::error_chain(error).to_string());
    match error {
        RedisStoreError::Unreachable { .. } => {
            failed.hint("check that Redis runs, and that --store has its address")
        }
        RedisStoreError::Unauthorized { .. } => {
            failed.hint("put `user:password@` in front of the host, in the configuration file")
        }
        RedisStoreError::WrongStateKeys { .. } => {
            failed.hint("use the state key file of the other instances")
        }
        _ => failed,
    }
}
