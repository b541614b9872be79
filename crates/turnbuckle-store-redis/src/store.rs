//! Connects a store.

use std::{sync::Arc, time::Duration};

use redis::{ErrorKind, RedisError, ServerErrorKind};
use turnbuckle_store::{
    ChangeBus, ClaimStore, ControlLog, InstanceRegistry, RequestStateStore, SessionStore, Store,
    StoreError,
};

use crate::{
    RedisStoreSettings,
    bus::RedisBus,
    claims::RedisClaimStore,
    connection::{Connection, Timeouts, follow_primaries},
    control::RedisControlLog,
    error::RedisStoreError,
    events::RedisEventStore,
    instances::RedisInstanceRegistry,
    keys::{self, Keys},
    log::{BLOCK, LogChannels, LogReader, LogStart, Publisher, ReaderParts, TaskGuard, log_length},
    request_states::RedisRequestStateStore,
    sealing::Sealer,
    sessions::RedisSessionStore,
    shared::Shared,
    tasks::RedisTaskStore,
    tls,
    url::StoreUrl,
};

/// A connected store.
///
/// It has two connections: one for commands, one that waits for changes. Both are opened again when they break.
pub struct RedisStore {
    shared: Arc<Shared>,
    eviction_policy: Option<String>,
}

/// The text that is sealed to recognize the state keys.
const CHECK_TEXT: &[u8] = b"turnbuckle";

const OLDEST_VERSION: u32 = 7;

impl RedisStore {
    /// Connects to the Redis at `url` with the default settings; see [`RedisStoreSettings::new`] for the forms of the URL.
    ///
    /// # Errors
    ///
    /// If Redis cannot be reached, rejects the credentials or is too old, and if its data was sealed with other state keys.
    pub async fn connect<S: AsRef<[u8]>>(
        url: &str,
        state_keys: impl IntoIterator<Item = S>,
    ) -> Result<Self, RedisStoreError> {
        Self::connect_with(RedisStoreSettings::new(url, state_keys)?).await
    }

    /// Connects with the given settings.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_with(settings: RedisStoreSettings) -> Result<Self, RedisStoreError> {
        if settings.url.tls {
            tls::install()?;
        }
        let address = settings.url.to_string();
        let connection = connection(&settings, Duration::ZERO);
        let keys = Keys::new(&settings.prefix);
        connection
            .open()
            .await
            .map_err(|error| connect_error(&address, error))?;
        let eviction_policy = check_server(&connection, &address).await?;
        check_state_keys(&connection, &settings.sealer, &keys, &address).await?;
        let start = LogStart::load(&connection, &keys)
            .await
            .map_err(|error| command_error(&address, error))?;
        let shared = start_tasks(settings, connection, keys, start);
        Ok(Self {
            shared,
            eviction_policy,
        })
    }

    /// Returns the `maxmemory-policy` of Redis if it is not `noeviction`: Redis then removes sessions when its memory is full.
    ///
    /// `None` also if Redis does not tell its policy. A policy other than `noeviction` is logged when the store connects.
    pub fn eviction_policy(&self) -> Option<&str> {
        self.eviction_policy.as_deref()
    }

    /// Returns the store of a server, with all parts in this Redis.
    ///
    /// To have a part elsewhere, such as claims that must survive a failover, replace that field of the store.
    pub fn into_store(self) -> Store {
        let shared = || self.shared.clone();
        Store {
            sessions: self.sessions(),
            events: Arc::new(RedisEventStore::new(shared())),
            bus: self.bus(),
            control: self.control(),
            request_states: self.request_states(),
            claims: self.claims(),
            tasks: Arc::new(RedisTaskStore::new(shared())),
            instances: self.instances(),
        }
    }

    /// Returns sessions in this Redis.
    pub fn sessions(&self) -> Arc<dyn SessionStore> {
        Arc::new(RedisSessionStore::new(self.shared.clone()))
    }

    /// Returns request states in this Redis.
    pub fn request_states(&self) -> Arc<dyn RequestStateStore> {
        Arc::new(RedisRequestStateStore::new(self.shared.clone()))
    }

    /// Returns claims in this Redis.
    pub fn claims(&self) -> Arc<dyn ClaimStore> {
        Arc::new(RedisClaimStore::new(self.shared.clone()))
    }

    /// Returns the registry of instances in this Redis.
    pub fn instances(&self) -> Arc<dyn InstanceRegistry> {
        Arc::new(RedisInstanceRegistry::new(self.shared.clone()))
    }

    /// Returns the control log in this Redis.
    pub fn control(&self) -> Arc<dyn ControlLog> {
        Arc::new(RedisControlLog::new(self.shared.clone()))
    }

    /// Returns the bus in this Redis.
    pub fn bus(&self) -> Arc<dyn ChangeBus> {
        Arc::new(RedisBus::new(self.shared.clone()))
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore")
            .field("prefix", &self.shared.keys.prefix())
            .finish_non_exhaustive()
    }
}

/// Creates a connection for commands that take up to `wait` longer than others.
fn connection(settings: &RedisStoreSettings, wait: Duration) -> Arc<Connection> {
    let timeouts = Timeouts {
        connect: settings.connection_timeout,
        response: settings.response_timeout + wait,
    };
    Arc::new(Connection::new(StoreUrl::clone(&settings.url), timeouts))
}

fn start_tasks(
    settings: RedisStoreSettings,
    connection: Arc<Connection>,
    keys: Keys,
    start: LogStart,
) -> Arc<Shared> {
    let blocking = self::connection(&settings, BLOCK);
    let process = keys::random_name();
    let sealer = Arc::new(settings.sealer);
    let limits = settings.limits;
    let channels = Arc::new(LogChannels::new(&limits.bus, start.bus));
    let publisher = Arc::new(Publisher::new(
        connection.clone(),
        sealer.clone(),
        keys.clone(),
        &process,
        log_length(&limits.bus),
        limits.bus.repeat_window,
    ));
    let reader = ReaderParts {
        connection: blocking.clone(),
        keys: keys.clone(),
        sealer: sealer.clone(),
        channels: channels.clone(),
        process: process.clone(),
    };
    let tasks = vec![
        TaskGuard::spawn(publisher.clone().run()),
        TaskGuard::spawn(LogReader::new(reader, start).run()),
        TaskGuard::spawn(follow_primaries([connection.clone(), blocking])),
    ];
    Arc::new(Shared {
        connection,
        keys,
        sealer,
        limits,
        channels,
        publisher,
        process,
        _tasks: tasks,
    })
}

/// Checks the version of Redis and returns its eviction policy, if it has one.
async fn check_server(
    connection: &Connection,
    address: &str,
) -> Result<Option<String>, RedisStoreError> {
    let mut info = redis::cmd("INFO");
    info.arg("everything");
    let info: String = match connection.run(&info).await {
        Ok(info) => info,
        Err(error) => {
            // A user may lack the permission; then version and policy are not known.
            tracing::debug!(%error, "Redis does not tell its version");
            return Ok(None);
        }
    };
    let field = |name: &str| {
        let mut lines = info.lines().map(str::trim);
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    // Valkey reports as `redis_version` the version of Redis that it is compatible with.
    if let Some(version) = field("redis_version") {
        let major = version.split('.').next().and_then(|text| text.parse().ok());
        if major.is_some_and(|major: u32| major < OLDEST_VERSION) {
            return Err(RedisStoreError::TooOld {
                address: address.to_owned(),
                version: version.to_owned(),
            });
        }
    }
    let policy = field("maxmemory_policy").filter(|policy| *policy != "noeviction");
    if let Some(policy) = policy {
        tracing::warn!(
            policy,
            "Redis evicts keys when its memory is full; set `maxmemory-policy noeviction`"
        );
    }
    Ok(policy.map(str::to_owned))
}

/// Compares the state keys with those of the other instances, by a value that only they can have sealed.
async fn check_state_keys(
    connection: &Connection,
    sealer: &Sealer,
    keys: &Keys,
    address: &str,
) -> Result<(), RedisStoreError> {
    let key = keys.check();
    let sealed = sealer.seal(CHECK_TEXT, &key);
    let mut set = redis::cmd("SET");
    set.arg(&key).arg(&sealed).arg("NX").arg("GET");
    let stored: Option<Vec<u8>> = connection
        .run(&set)
        .await
        .map_err(|error| command_error(address, error))?;
    let Some(stored) = stored else {
        return Ok(());
    };
    match sealer.open_with(&stored, &key) {
        Ok((true, _)) => Ok(()),
        // Sealed again, so that the former key can be removed later.
        Ok((false, _)) => {
            let mut set = redis::cmd("SET");
            set.arg(&key).arg(&sealed);
            let stored = connection.run::<()>(&set).await;
            stored.map_err(|error| command_error(address, error))
        }
        Err(_) => Err(RedisStoreError::WrongStateKeys {
            prefix: keys.prefix().to_owned(),
        }),
    }
}

fn connect_error(address: &str, error: RedisError) -> RedisStoreError {
    let address = address.to_owned();
    let is_rejected = is_rejected(&error);
    let source = error.into();
    if is_rejected {
        RedisStoreError::Unauthorized { address, source }
    } else {
        RedisStoreError::Unreachable { address, source }
    }
}

/// Returns the error of the first commands. Without a password, Redis accepts connections and rejects commands.
fn command_error(address: &str, error: StoreError) -> RedisStoreError {
    let address = address.to_owned();
    let source: Box<dyn std::error::Error + Send + Sync> = match error {
        StoreError::Unavailable { source } => source,
        error => error.into(),
    };
    if source.downcast_ref().is_some_and(is_rejected) {
        RedisStoreError::Unauthorized { address, source }
    } else {
        RedisStoreError::Unreachable { address, source }
    }
}

fn is_rejected(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AuthenticationFailed | ErrorKind::Server(ServerErrorKind::NoPerm)
    ) || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"))
}
