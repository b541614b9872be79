//! Which database to use, and how.

use std::{fmt, str::FromStr as _, time::Duration};

use tokio_postgres::config::{Config, Host};

use super::PostgresError;

/// The address of a database and the limits of its use.
#[derive(Clone)]
#[must_use]
pub struct PostgresOptions {
    pub(super) config: Config,
    pub(super) max_connections: usize,
    pub(super) pool_wait: Duration,
    pub(super) statement_timeout: Duration,
}

impl PostgresOptions {
    /// Parses a URL: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=require`.
    ///
    /// The parameters are those of libpq that `tokio-postgres` knows, several hosts among them. With `sslmode=require`, and
    /// with `sslmode=prefer`, the default, if the server offers TLS, the certificate of the server is verified.
    pub fn from_url(url: &str) -> Result<Self, PostgresError> {
        let is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
        // The reason of the parser can contain parts of a password with special characters.
        let config = Config::from_str(url).ok().filter(|_| is_url);
        let mut config = config.ok_or(PostgresError::InvalidUrl)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(PostgresError::InvalidUrl);
        }
        if config.get_application_name().is_none() {
            config.application_name("turnbuckle");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        config.keepalives_idle(Duration::from_secs(30));
        Ok(Self {
            config,
            max_connections: 8,
            pool_wait: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
        })
    }

    /// Sets the password.
    pub fn password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// Limits the number of connections; 8 by default.
    pub fn max_connections(mut self, max: usize) -> Self {
        self.max_connections = max.max(1);
        self
    }

    /// Limits how long an operation waits for a connection; 5 seconds by default.
    pub fn pool_wait(mut self, limit: Duration) -> Self {
        self.pool_wait = limit;
        self
    }

    /// Limits how long a statement may take; 30 seconds by default.
    pub fn statement_timeout(mut self, limit: Duration) -> Self {
        self.statement_timeout = limit;
        self
    }

    /// Returns whether the URL has a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Returns the user, if the URL names one.
    pub fn user(&self) -> Option<&str> {
        self.config.get_user()
    }

    /// Returns the name of the database, which is that of the user if the URL names none.
    pub fn database(&self) -> Option<&str> {
        self.config.get_dbname().or(self.user())
    }

    /// Returns the first host and its port. A folder with a Unix socket is a host that starts with `/`.
    pub fn host(&self) -> (String, u16) {
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let host = match (
            self.config.get_hosts().first(),
            self.config.get_hostaddrs().first(),
        ) {
            (Some(Host::Tcp(name)), _) => name.clone(),
            (Some(other), _) => socket_folder(other),
            (None, Some(address)) => address.to_string(),
            (None, None) => String::new(),
        };
        (host, port)
    }
}

#[cfg(unix)]
fn socket_folder(host: &Host) -> String {
    match host {
        Host::Unix(path) => path.to_string_lossy().into_owned(),
        Host::Tcp(name) => name.clone(),
    }
}

#[cfg(not(unix))]
fn socket_folder(Host::Tcp(name): &Host) -> String {
    name.clone()
}

/// Formats the address without the password.
impl fmt::Display for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = self.host();
        f.write_str("postgres://")?;
        if let Some(user) = self.user() {
            write!(f, "{user}@")?;
        }
        if host.contains(':') {
            write!(f, "[{host}]:{port}")?;
        } else {
            write!(f, "{host}:{port}")?;
        }
        write!(f, "/{}", self.database().unwrap_or_default())
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresOptions")
            .field(&self.to_string())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_the_password() {
        for (url, shown) in [
            (
                "postgres://ada:s3cret@db.example/memory",
                "postgres://ada@db.example:5432/memory",
            ),
            (
                "postgresql://ada:s3cret@[::1]:6432",
                "postgres://ada@[::1]:6432/ada",
            ),
            (
                "postgres:///memory?host=/run/postgresql&user=ada&password=s3cret",
                "postgres://ada@/run/postgresql:5432/memory",
            ),
        ] {
            let options = PostgresOptions::from_url(url).unwrap();
            assert_eq!(options.to_string(), shown);
            assert!(options.has_password());
            assert!(!format!("{options:?}").contains("s3cret"));
        }
    }

    #[test]
    fn an_invalid_url_is_an_error_without_its_password() {
        for url in [
            "mysql://ada:s3cret@db/memory",
            "host=db password=s3cret",
            "postgres://ada:s3cret@db:port/memory",
            "postgres://ada:s3cret@db/memory?s3cret=x",
            "postgres:///memory",
        ] {
            let error = PostgresOptions::from_url(url).unwrap_err();
            assert!(matches!(error, PostgresError::InvalidUrl), "{url}");
            let text = turnbuckle_text::error_chain(&error);
            assert!(
                !text.contains("cret") && text.contains("postgres://"),
                "{text}"
            );
        }
    }
}
