//! Opens PostgreSQL databases.

use std::sync::Arc;

use turnbuckle_context::postgres::{PostgresError, PostgresMemoryStore, PostgresOptions};
use turnbuckle_text::error_chain;

use super::{Database, password};
use crate::{
    environment::Environment,
    error::{CliError, Result},
};

pub(super) fn open(url: &str, environment: &Environment) -> Result<Database> {
    let mut options = PostgresOptions::from_url(url)?;
    if !options.has_password() {
        let (host, port) = options.host();
        let wanted = password::Login {
            host: &host,
            port,
            database: options.database().unwrap_or_default(),
            user: options.user().unwrap_or(&environment.user),
        };
        if let Some(password) = password::find(&wanted, environment)? {
            options = options.password(password.expose());
        }
    }
    let store = PostgresMemoryStore::connect_blocking(options)?;
    Ok(Database {
        address: store.server().to_owned(),
        store: Arc::new(store),
    })
}

impl From<PostgresError> for CliError {
    fn from(error: PostgresError) -> Self {
        let text = Self::could_not_run(error_chain(&error));
        match error {
            PostgresError::Unauthorized { .. } => text
                .hint("put the password into the file of --database-file, PGPASSWORD or ~/.pgpass"),
            _ => text,
        }
    }
}
