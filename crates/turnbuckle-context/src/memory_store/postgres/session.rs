//! Transactions: connections from the pool, limits on time, and repeated attempts.

use std::{pin::Pin, sync::Arc, time::Duration};

use deadpool_postgres::{Object, Pool};
use tokio::time::{sleep, timeout};
use tokio_postgres::{IsolationLevel, Transaction};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    error::{AttemptError, Retry},
    runtime::{ConnectionRuntime, Running},
};
use crate::{memory_store::MemoryStoreError, storage::work_limit::WorkLimit};

/// How often an operation is attempted.
const MAX_ATTEMPTS: u32 = 5;
/// The pause after the first conflict, and after the first lost connection. Each further one is twice as long.
const CONFLICT_PAUSE: Duration = Duration::from_millis(10);
const DISCONNECT_PAUSE: Duration = Duration::from_millis(100);
/// The time that a response needs beyond the limit of its statement.
const RESPONSE_TIME: Duration = Duration::from_secs(3);
/// How long an export may take, with the time that its receiver needs.
const MAX_EXPORT_TIME: Duration = Duration::from_secs(60 * 60);
/// How often a read checks whether its caller still waits.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Work in one transaction.
pub(super) type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T, AttemptError>> + Send + 't>>;

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransactionKind {
    /// It reads one snapshot.
    Read,
    /// It reads one snapshot, and may take long.
    Export,
    /// It writes, and a second time it changes nothing more.
    Write,
    /// It writes, and may not be repeated if the first outcome is unknown.
    WriteOnce,
}

/// The connections of a store.
pub(super) struct Session {
    pub(super) runtime: ConnectionRuntime,
    pub(super) connections: Arc<Connections>,
}

/// The pool of connections.
pub(super) struct Connections {
    pub(super) pool: Pool,
    pub(super) tls: MakeRustlsConnect,
    pub(super) statement_timeout: Duration,
}

impl Session {
    /// Reads in one transaction. It stops if the result is dropped, and when the work limit of this thread is exceeded.
    pub(super) fn read<T, F>(&self, work: F) -> Running<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t Transaction<'t>) -> Work<'t, T> + Send + Sync + 'static,
    {
        let (connections, limit) = (self.connections.clone(), WorkLimit::current());
        let running = self.runtime.spawn(async move {
            tokio::select! {
                outcome = connections.run(TransactionKind::Read, &work) => outcome,
                error = exceeded(limit) => Err(error),
            }
        });
        running.stop_on_drop()
    }

    /// Reads much in one transaction. It stops if the result is dropped.
    pub(super) fn export<T, F>(&self, work: F) -> Running<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t Transaction<'t>) -> Work<'t, T> + Send + Sync + 'static,
    {
        self.write(TransactionKind::Export, work).stop_on_drop()
    }

    /// Writes in one transaction. A started one runs to its end.
    pub(super) fn write<T, F>(&self, kind: TransactionKind, work: F) -> Running<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t Transaction<'t>) -> Work<'t, T> + Send + Sync + 'static,
    {
        let connections = self.connections.clone();
        self.runtime
            .spawn(async move { connections.run(kind, &work).await })
    }
}

/// Waits until a limit is exceeded.
async fn exceeded(limit: Option<Arc<WorkLimit>>) -> MemoryStoreError {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    loop {
        if let Err(error) = limit.check() {
            return error.into();
        }
        sleep(CHECK_INTERVAL).await;
    }
}

impl Connections {
    /// Runs a transaction, again after a conflict or a lost connection.
    async fn run<T, F>(&self, kind: TransactionKind, work: &F) -> Result<T, MemoryStoreError>
    where
        F: for<'t> Fn(&'t Transaction<'t>) -> Work<'t, T>,
    {
        let mut attempt = 0;
        loop {
            let error = match self.attempt(kind, work).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let pause = match error.retry() {
                Retry::AfterConflict => CONFLICT_PAUSE,
                Retry::AfterDisconnect => DISCONNECT_PAUSE,
                Retry::AfterUnknownOutcome if kind != TransactionKind::WriteOnce => {
                    DISCONNECT_PAUSE
                }
                _ => return Err(error.into_store_error(self.statement_timeout)),
            };
            attempt += 1;
            if attempt == MAX_ATTEMPTS {
                return Err(error.into_store_error(self.statement_timeout));
            }
            tracing::debug!(?error, attempt, "a transaction is repeated");
            sleep(pause * 2_u32.pow(attempt - 1)).await;
        }
    }

    async fn attempt<T, F>(&self, kind: TransactionKind, work: &F) -> Result<T, AttemptError>
    where
        F: for<'t> Fn(&'t Transaction<'t>) -> Work<'t, T>,
    {
        let connection = self.pool.get().await.map_err(AttemptError::Pool)?;
        let mut pooled = PooledConnection::new(connection, self.tls.clone());
        let limit = match kind {
            TransactionKind::Export => MAX_EXPORT_TIME,
            _ => self.statement_timeout + RESPONSE_TIME,
        };
        let run = transaction(pooled.client(), kind, self.statement_timeout, work);
        let outcome = timeout(limit, run)
            .await
            .unwrap_or(Err(AttemptError::TimedOut(limit)));
        if !outcome.as_ref().is_err_and(AttemptError::breaks_connection) {
            pooled.return_to_pool();
        }
        outcome
    }
}

async fn transaction<T, F>(
    client: &mut tokio_postgres::Client,
    kind: TransactionKind,
    statement_timeout: Duration,
    work: &F,
) -> Result<T, AttemptError>
where
    F: for<'t> Fn(&'t Transaction<'t>) -> Work<'t, T>,
{
    let builder = client.build_transaction();
    let builder = match kind {
        TransactionKind::Read | TransactionKind::Export => builder
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true),
        // Also if the user's default is another one.
        _ => builder
            .isolation_level(IsolationLevel::ReadCommitted)
            .read_only(false),
    };
    let transaction = builder.start().await?;
    // For this transaction only: behind a pooler, the next one can have another connection.
    let limit = statement_timeout.as_millis();
    let idle_limit = match kind {
        TransactionKind::Export => MAX_EXPORT_TIME.as_millis(),
        _ => limit,
    };
    transaction
        .batch_execute(&format!(
            "SET LOCAL statement_timeout = {limit}; SET LOCAL lock_timeout = {limit}; \
             SET LOCAL idle_in_transaction_session_timeout = {idle_limit}; SET LOCAL synchronous_commit = on"
        ))
        .await?;
    let done = work(&transaction).await?;
    transaction.commit().await.map_err(AttemptError::Commit)?;
    Ok(done)
}

/// A connection of the pool. It is closed on drop, with its running statement, unless it was returned.
struct PooledConnection {
    connection: Option<Object>,
    tls: MakeRustlsConnect,
}

impl PooledConnection {
    fn new(connection: Object, tls: MakeRustlsConnect) -> Self {
        Self {
            connection: Some(connection),
            tls,
        }
    }

    fn client(&mut self) -> &mut tokio_postgres::Client {
        self.connection
            .as_mut()
            .expect("it has a connection until it is returned")
    }

    fn return_to_pool(&mut self) {
        self.connection = None;
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let client = Object::take(connection);
        let (token, tls) = (client.cancel_token(), self.tls.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // The server may be gone, and ends the statement at its limit otherwise.
            runtime.spawn(timeout(RESPONSE_TIME, async move {
                let _ = token.cancel_query(tls).await;
            }));
        }
    }
}
