//! A connection to Redis that follows its primary.

pub(crate) mod join;
pub(crate) mod script;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(not(feature = "tls"))]
#[path = "connection/without_tls.rs"]
pub(crate) mod tls;
pub(crate) mod url;

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue,
    IntoConnectionInfo, RedisConnectionInfo, RedisError, RedisResult, ServerErrorKind, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
};
use script::{Argument, Script};
use tokio::time::{Instant, timeout};
use turnbuckle_store::StoreError;
use url::{StoreUrl, UrlKind};

/// After this many failures in a row, commands fail at once for [`FAIL_FAST`].
const FAILURES: u32 = 3;
const FAIL_FAST: Duration = Duration::from_millis(250);

/// The time limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) connect: Duration,
    pub(crate) response: Duration,
}

/// One multiplexed connection. It is opened on first use, and again after it broke or the primary moved.
///
/// A command that timed out may be executed later, and a command on a connection that broke is sent again. So every command that
/// writes must have the same effect if it is executed twice.
pub(crate) struct Connection {
    url: StoreUrl,
    timeouts: Timeouts,
    current: Mutex<Option<Established>>,
    /// Held by the caller that connects.
    connecting: tokio::sync::Mutex<()>,
    failures: Mutex<Failures>,
    /// Counts the connections that were opened.
    opened: AtomicU64,
}

#[derive(Clone)]
struct Established {
    number: u64,
    /// The address of the primary, if sentinels told it.
    primary: Option<(String, u16)>,
    channel: Channel,
}

#[derive(Clone)]
enum Channel {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// The failures since the last success.
#[derive(Default)]
struct Failures {
    in_a_row: u32,
    fail_until: Option<Instant>,
}

/// Redis did not answer for a while, so this command was not sent.
#[derive(Debug, thiserror::Error)]
#[error("Redis did not answer the last {FAILURES} commands")]
struct FailedFast;

impl Connection {
    pub(crate) fn new(url: StoreUrl, timeouts: Timeouts) -> Self {
        Self {
            url,
            timeouts,
            current: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            failures: Mutex::default(),
            opened: AtomicU64::new(0),
        }
    }

    /// Sends a command and converts its result.
    pub(crate) async fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let value = self.execute(command).await.map_err(store_error)?;
        convert(value)
    }

    /// Runs a script. All keys must be in one hash slot.
    pub(crate) async fn script<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[&str],
        arguments: &[Argument<'_>],
    ) -> Result<T, StoreError> {
        let known = script.command("EVALSHA", script.hash(), keys, arguments);
        let result = match self.execute(&known).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let new = script.command("EVAL", script.code(), keys, arguments);
                self.execute(&new).await
            }
            result => result,
        };
        convert(result.map_err(store_error)?)
    }

    /// Returns the number of the connection that commands use; another number means that the connection broke in between.
    pub(crate) fn number(&self) -> Option<u64> {
        lock(&self.current).as_ref().map(|current| current.number)
    }

    /// Opens the connection.
    pub(crate) async fn open(&self) -> RedisResult<()> {
        self.established().await.map(drop)
    }

    /// Asks the sentinels for the primary, and leaves the connection if it is another one.
    pub(crate) async fn follow_primary(&self) {
        let UrlKind::Sentinel { group } = &self.url.kind else {
            return;
        };
        let Ok(primary) = self.find_primary(group).await else {
            return;
        };
        let mut current = lock(&self.current);
        let moved = |current: &mut Established| current.primary.as_ref() != Some(&primary);
        if current.take_if(moved).is_some() {
            tracing::info!(
                host = primary.0,
                port = primary.1,
                "the Redis primary has moved"
            );
        }
    }

    async fn execute(&self, command: &Cmd) -> RedisResult<Value> {
        self.check_circuit()?;
        // Connecting and sending again take part of the same time.
        let result = timeout(self.timeouts.response, self.send(command)).await;
        let result = result.unwrap_or_else(|_| {
            self.leave(self.number());
            Err(io::Error::from(io::ErrorKind::TimedOut).into())
        });
        self.count(&result);
        result
    }

    /// Sends a command, and once more if the connection had broken before.
    async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        let first = self.established().await?;
        let number = first.number;
        match first.channel.send(command).await {
            Err(error) if is_broken(&error) => {
                self.leave(Some(number));
                if error.is_timeout() {
                    return Err(error);
                }
            }
            result => return result,
        }
        let second = self.established().await?;
        let number = second.number;
        let result = second.channel.send(command).await;
        if result.as_ref().is_err_and(is_broken) {
            self.leave(Some(number));
        }
        result
    }

    async fn established(&self) -> RedisResult<Established> {
        let current = || lock(&self.current).clone();
        if let Some(current) = current() {
            return Ok(current);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(current) = current() {
            return Ok(current);
        }
        let (primary, channel) = self.connect().await?;
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let established = Established {
            number,
            primary,
            channel,
        };
        *lock(&self.current) = Some(established.clone());
        Ok(established)
    }

    /// Makes the next command open another connection, unless that has happened.
    fn leave(&self, number: Option<u64>) {
        let is_same = |current: &mut Established| Some(current.number) == number;
        drop(lock(&self.current).take_if(is_same));
    }

    async fn connect(&self) -> RedisResult<(Option<(String, u16)>, Channel)> {
        match &self.url.kind {
            UrlKind::Single => {
                let (host, port) = &self.url.hosts[0];
                let connection = self.connect_to(host, *port, self.settings()).await?;
                Ok((None, Channel::Single(connection)))
            }
            UrlKind::Sentinel { group } => {
                let (host, port) = self.find_primary(group).await?;
                let connection = self.connect_to(&host, port, self.settings()).await?;
                Ok((Some((host, port)), Channel::Single(connection)))
            }
            UrlKind::Cluster => {
                let connection = self.connect_cluster().await?;
                Ok((None, Channel::Cluster(connection)))
            }
        }
    }

    async fn connect_to(
        &self,
        host: &str,
        port: u16,
        settings: RedisConnectionInfo,
    ) -> RedisResult<MultiplexedConnection> {
        let address = self.address(host, port);
        let info = address.into_connection_info()?.set_redis_settings(settings);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeouts.connect))
            .set_response_timeout(Some(self.timeouts.response));
        Client::open(info)?
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }

    async fn connect_cluster(&self) -> RedisResult<ClusterConnection> {
        let nodes = self.url.hosts.iter().map(|(host, port)| {
            let address = self.address(host, *port).into_connection_info();
            address.map(|info| info.set_redis_settings(self.settings()))
        });
        let nodes: Vec<_> = nodes.collect::<Result<_, _>>()?;
        let client = ClusterClient::builder(nodes)
            .connection_timeout(self.timeouts.connect)
            .response_timeout(self.timeouts.response)
            .retries(2)
            .build()?;
        client.get_async_connection().await
    }

    /// Asks one sentinel after the other for the address of the primary.
    async fn find_primary(&self, group: &str) -> RedisResult<(String, u16)> {
        let mut last = RedisError::from((
            ErrorKind::MasterNameNotFoundBySentinel,
            "no sentinel knows a primary with this name",
        ));
        for (host, port) in &self.url.hosts {
            match self.ask_sentinel(host, *port, group).await {
                Ok(Some(primary)) => return Ok(primary),
                Ok(None) => {}
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn ask_sentinel(
        &self,
        host: &str,
        port: u16,
        group: &str,
    ) -> RedisResult<Option<(String, u16)>> {
        // A sentinel that hangs must leave time for the others.
        let share = u32::try_from(self.url.hosts.len() + 1).unwrap_or(u32::MAX);
        let limit = self.timeouts.connect / share;
        let ask = async {
            let settings = RedisConnectionInfo::default();
            let mut sentinel = self.connect_to(host, port, settings).await?;
            let mut command = redis::cmd("SENTINEL");
            command.arg("GET-MASTER-ADDR-BY-NAME").arg(group);
            command.query_async(&mut sentinel).await
        };
        timeout(limit, ask)
            .await
            .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }

    fn address(&self, host: &str, port: u16) -> ConnectionAddr {
        let host = host.to_owned();
        if self.url.tls {
            ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            }
        } else {
            ConnectionAddr::Tcp(host, port)
        }
    }

    fn settings(&self) -> RedisConnectionInfo {
        let mut settings = RedisConnectionInfo::default().set_db(self.url.database);
        if let Some(user) = &self.url.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.url.password {
            settings = settings.set_password(password);
        }
        settings
    }

    fn check_circuit(&self) -> RedisResult<()> {
        let until = lock(&self.failures).fail_until;
        if until.is_some_and(|until| Instant::now() < until) {
            return Err(io::Error::new(io::ErrorKind::NotConnected, FailedFast).into());
        }
        Ok(())
    }

    fn count(&self, result: &RedisResult<Value>) {
        let mut failures = lock(&self.failures);
        if result.as_ref().is_err_and(is_broken) {
            failures.in_a_row = failures.in_a_row.saturating_add(1);
            if failures.in_a_row >= FAILURES {
                failures.fail_until = Some(Instant::now() + FAIL_FAST);
            }
        } else {
            *failures = Failures::default();
        }
    }
}

impl Channel {
    async fn send(self, command: &Cmd) -> RedisResult<Value> {
        let value = match self {
            Self::Single(mut connection) => connection.req_packed_command(command).await,
            Self::Cluster(mut connection) => connection.req_packed_command(command).await,
        };
        value?.extract_error()
    }
}

/// Returns whether another connection may help: after an I/O error or a timeout, and if the server is no longer the primary.
fn is_broken(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        || matches!(
            error.kind(),
            ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
                | ErrorKind::ClusterConnectionNotFound
                | ErrorKind::MasterNameNotFoundBySentinel
        )
}

fn store_error(error: RedisError) -> StoreError {
    if error.code() == Some("OOM") {
        return StoreError::Full { what: "entry" };
    }
    StoreError::unavailable(error)
}

fn convert<T: FromRedisValue>(value: Value) -> Result<T, StoreError> {
    redis::from_redis_value(value).map_err(StoreError::unavailable)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks panics halfway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the sentinels at intervals whether the primaries of these connections have moved.
pub(crate) async fn follow_primaries(connections: [Arc<Connection>; 2]) {
    const INTERVAL: Duration = Duration::from_secs(5);
    loop {
        tokio::time::sleep(INTERVAL).await;
        for connection in &connections {
            connection.follow_primary().await;
        }
    }
}
