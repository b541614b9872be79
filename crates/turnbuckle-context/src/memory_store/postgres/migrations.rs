//! The tables, and their changes from version to version.

use std::time::Duration;

use tokio_postgres::{Client, Transaction, types::Type};

use super::PostgresError;

/// The changes in their order; the version of the tables is the number of applied ones.
///
/// A released file does not change. Processes of the version before still run during an update, so a change may only add.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001_memory.sql")];
/// The key of the advisory lock under which one process at a time changes the tables.
const LOCK: i64 = 0x7475_726e_6275_636b;
/// How long a process waits while another one changes the tables.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// Creates the tables, or changes them to the newest version.
pub(super) async fn migrate(client: &mut Client, server: &str) -> Result<(), PostgresError> {
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    let failed = |error| PostgresError::new(server.to_owned(), error);
    // Without a lock first: a user who may not create tables can use existing ones.
    let transaction = client.transaction().await.map_err(failed)?;
    let mut version = version(&transaction).await.map_err(failed)?;
    if version < known {
        version = apply(&transaction).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)?;
    if version > known {
        return Err(PostgresError::NewerVersion {
            server: server.to_owned(),
            found: version,
            known,
        });
    }
    Ok(())
}

/// Applies the missing changes and returns the version.
async fn apply(transaction: &Transaction<'_>) -> Result<i32, tokio_postgres::Error> {
    let lock = format!(
        "SET LOCAL lock_timeout = {}; SELECT pg_advisory_xact_lock({LOCK})",
        LOCK_TIMEOUT.as_millis()
    );
    transaction.batch_execute(&lock).await?;
    let mut version = version(transaction).await?;
    let missing = MIGRATIONS
        .iter()
        .skip(usize::try_from(version).unwrap_or_default());
    for migration in missing {
        if version == 0 {
            create_schema(transaction).await?;
        }
        transaction.batch_execute(migration).await?;
        version += 1;
        let insert = "INSERT INTO turnbuckle.migration (version) VALUES ($1)";
        transaction
            .execute_typed(insert, &[(&version, Type::INT4)])
            .await?;
    }
    Ok(version)
}

/// Creates the schema, unless an administrator has created it.
async fn create_schema(transaction: &Transaction<'_>) -> Result<(), tokio_postgres::Error> {
    let exists =
        "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'turnbuckle')";
    let exists: bool = transaction.query_typed_one(exists, &[]).await?.try_get(0)?;
    if !exists {
        transaction
            .batch_execute("CREATE SCHEMA turnbuckle")
            .await?;
    }
    let create = "CREATE TABLE turnbuckle.migration \
                  (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())";
    transaction.batch_execute(create).await
}

/// Returns the version of the tables; 0 without tables.
async fn version(transaction: &Transaction<'_>) -> Result<i32, tokio_postgres::Error> {
    // Not `to_regclass`, which remembers within a transaction that a table does not exist.
    let exists = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c \
                  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                  WHERE n.nspname = 'turnbuckle' AND c.relname = 'migration')";
    let exists: bool = transaction.query_typed_one(exists, &[]).await?.try_get(0)?;
    if !exists {
        return Ok(0);
    }
    let version = "SELECT coalesce(max(version), 0) FROM turnbuckle.migration";
    transaction.query_typed_one(version, &[]).await?.try_get(0)
}
