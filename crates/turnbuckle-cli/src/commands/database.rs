//! The database of the context server: where its URL and password come from.

#[cfg(feature = "postgres")]
mod password;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(not(feature = "postgres"))]
#[path = "database/without_postgres.rs"]
mod postgres;

use std::{path::PathBuf, sync::Arc};

use serde::{Deserialize, Deserializer};
use turnbuckle_context::MemoryStore;
use turnbuckle_text::Secret;

use crate::{
    context::CommandContext,
    environment::Environment,
    error::{CliError, Result},
};

/// The options for a database.
#[derive(Debug, Default, clap::Args)]
pub(super) struct DatabaseFlags {
    /// Store memory in PostgreSQL: postgres://USER@HOST/NAME
    ///
    /// Several servers can use one database; indexes of repositories stay in the data directory. Other users of this
    /// machine can see the arguments of a program: put the password into --database-file, PGPASSWORD or the file of
    /// PGPASSFILE (~/.pgpass).
    #[arg(long, global = true, value_name = "URL", value_parser = parse_url, conflicts_with = "database_file")]
    database: Option<DatabaseUrl>,

    /// Read the URL of the database from this file
    #[arg(long, global = true, value_name = "FILE")]
    database_file: Option<PathBuf>,
}

/// The URL of a database, which can contain a password.
#[derive(Clone, Debug)]
pub(super) struct DatabaseUrl(Secret);

impl<'de> Deserialize<'de> for DatabaseUrl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(from).map(|url| Self(Secret::new(url)))
    }
}

fn parse_url(url: &str) -> std::result::Result<DatabaseUrl, String> {
    Ok(DatabaseUrl(Secret::new(url)))
}

/// An open database.
pub(super) struct Database {
    pub(super) store: Arc<dyn MemoryStore>,
    /// The address, without the password.
    pub(super) address: String,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Database").field(&self.address).finish()
    }
}

impl DatabaseFlags {
    /// Returns the URL of the options, or else that of the settings; `None` if memory is in the data directory.
    pub(super) fn url(
        self,
        url: Option<DatabaseUrl>,
        file: Option<PathBuf>,
        environment: &Environment,
    ) -> Result<Option<DatabaseUrl>> {
        let here = |file: PathBuf| environment.cwd.join(file);
        let (url, file) = match (self.database, self.database_file.map(here)) {
            (None, None) => (url, file),
            named => named,
        };
        match (url, file) {
            (Some(_), Some(_)) => Err(CliError::could_not_run(
                "the configuration has both database and database-file",
            )
            .hint("remove one of them")),
            (url, None) => Ok(url),
            (None, Some(file)) => {
                let text = std::fs::read_to_string(&file).map_err(|error| {
                    CliError::could_not_run(format!("cannot read {}: {error}", file.display()))
                })?;
                Ok(Some(DatabaseUrl(Secret::new(text.trim()))))
            }
        }
    }
}

impl DatabaseUrl {
    /// Connects, and creates or updates the tables.
    pub(super) fn open(&self, context: &CommandContext) -> Result<Database> {
        postgres::open(self.0.expose(), &context.environment)
    }
}
