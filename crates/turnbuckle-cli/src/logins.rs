//! Logins to servers, stored in a file that only the user can read.
//!
//! [`log_in()`] creates a login, with the user at the terminal. All other commands use the stored one and refresh it.
//! Tokens are never printed. The feature `tls` is required.

mod summary;

#[cfg(feature = "tls")]
mod interactive;
#[cfg(feature = "keyring")]
mod keyring;
#[cfg(feature = "tls")]
mod log_in;
#[cfg(all(feature = "bridge", feature = "tls"))]
mod machine;
#[cfg(feature = "tls")]
mod stored_login;

use std::sync::Arc;

#[cfg(feature = "tls")]
pub(crate) use log_in::log_in;
#[cfg(all(feature = "bridge", feature = "tls"))]
pub(crate) use log_in::log_in_if_required;
#[cfg(all(feature = "bridge", feature = "tls"))]
pub(crate) use machine::{exchanging_http, machine_http, user_logins};
#[cfg(all(feature = "check", feature = "tls"))]
pub(crate) use stored_login::login_headers;
#[cfg(feature = "tls")]
pub(crate) use stored_login::{authorized_http, list, log_out, login_hint};
pub(crate) use summary::{LoginSummary, table};
use turnbuckle_auth::Secret;
use turnbuckle_client::http::HttpTarget;
#[cfg(all(feature = "check", not(feature = "tls")))]
pub(crate) use without_tls::login_headers;
#[cfg(not(feature = "tls"))]
pub(crate) use without_tls::{authorized_http, list, log_in, log_out, login_hint};
#[cfg(all(feature = "bridge", not(feature = "tls")))]
pub(crate) use without_tls::{exchanging_http, log_in_if_required, machine_http};

/// Returns the newest token of a caller.
pub(crate) type NewestToken = Box<dyn Fn() -> Option<Secret> + Send + Sync>;

/// Creates the HTTP client for a caller, from the key of the caller and its newest token.
#[allow(dead_code, reason = "used by the optional command `bridge`")]
pub(crate) type CallerHttp = Arc<dyn Fn(Arc<str>, NewestToken) -> HttpTarget + Send + Sync>;

/// A client that gets tokens for itself, without a user.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "used by the optional command `bridge`")]
pub(crate) struct MachineClient {
    /// The client id.
    pub(crate) id: String,
    /// Its secret, or else its key.
    pub(crate) secret: Option<Secret>,
    /// The private key as PEM.
    pub(crate) key: Option<Secret>,
    /// The authorization server, if the client id is valid only there.
    pub(crate) issuer: Option<String>,
    /// The scopes to request, separated by spaces.
    pub(crate) scope: Option<String>,
    /// The resource identifier of the server for a token exchange, if it is not its URL.
    pub(crate) resource: Option<String>,
    /// The name of the server at the authorization server, for a token exchange.
    pub(crate) audience: Option<String>,
}

/// Stub for builds without the feature `tls`.
#[cfg(not(feature = "tls"))]
mod without_tls {
    use turnbuckle_client::http::HttpTarget;

    use super::LoginSummary;
    use crate::{
        commands::LoginOptions,
        context::CommandContext,
        error::{CliError, Result},
        target::{CliTarget, config_files::HttpEntry, resolve},
    };

    /// Returns an HTTP client without a login.
    pub(crate) async fn authorized_http(
        _target: &CliTarget,
        http_entry: &HttpEntry,
        context: &CommandContext,
    ) -> Result<HttpTarget> {
        Ok(resolve::http_client(http_entry, context))
    }

    /// Returns no headers.
    #[allow(dead_code, reason = "used by the optional command `check`")]
    pub(crate) async fn login_headers(
        _http_entry: &HttpEntry,
        _context: &CommandContext,
    ) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// Returns a hint for a server that requires authorization.
    pub(crate) fn login_hint(_target: &CliTarget, has_credentials: bool) -> String {
        let hint = if has_credentials {
            "the credentials were rejected: they may have expired, or be for another server"
        } else {
            "send a token with --token-file FILE; this build cannot log in"
        };
        hint.to_owned()
    }

    /// Returns an error: this build cannot log in.
    pub(crate) async fn log_in(
        _target: &CliTarget,
        _http_entry: &HttpEntry,
        _options: &LoginOptions,
        _context: &CommandContext,
    ) -> Result<Option<LoginSummary>> {
        Err(unsupported())
    }

    /// Returns `false`: this build cannot log in.
    #[allow(dead_code, reason = "used by the optional command `bridge`")]
    pub(crate) async fn log_in_if_required(
        _target: &CliTarget,
        _http_entry: &HttpEntry,
        _context: &CommandContext,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Returns an error: this build cannot log in.
    #[allow(dead_code, reason = "used by the optional command `bridge`")]
    pub(crate) fn machine_http(
        _http_entry: &HttpEntry,
        _machine: &super::MachineClient,
        _context: &CommandContext,
    ) -> Result<HttpTarget> {
        Err(unsupported())
    }

    /// Returns an error: this build cannot log in.
    #[allow(dead_code, reason = "used by the optional command `bridge`")]
    pub(crate) fn exchanging_http(
        _http_entry: &HttpEntry,
        _machine: &super::MachineClient,
        _context: &CommandContext,
    ) -> Result<super::CallerHttp> {
        Err(unsupported())
    }

    /// Returns an error: this build cannot log in.
    pub(crate) async fn log_out(_url: &str, _context: &CommandContext) -> Result<bool> {
        Err(unsupported())
    }

    /// Returns an error: this build cannot log in.
    pub(crate) async fn list(_context: &CommandContext) -> Result<Vec<LoginSummary>> {
        Err(unsupported())
    }

    fn unsupported() -> CliError {
        CliError::could_not_run("this build cannot log in")
            .hint("build with the feature `tls`, or send a token with --token-file FILE")
    }
}

/// Stub for builds without the feature `keyring`. Tests use it in every build.
#[cfg(all(feature = "tls", any(test, not(feature = "keyring"))))]
mod without_keyring {
    use turnbuckle_auth::{
        AuthorizationError, AuthorizationStep,
        client::{EncryptionKey, Keyring},
    };

    /// Fails every operation with a hint how to build with keyring support.
    pub(super) struct SystemKeyring;

    impl SystemKeyring {
        /// Creates the stub.
        pub(super) fn new() -> Self {
            Self
        }
    }

    impl Keyring for SystemKeyring {
        fn load_key(&self) -> Result<Option<EncryptionKey>, AuthorizationError> {
            Err(unsupported())
        }

        fn store_key(&self, _key: &EncryptionKey) -> Result<(), AuthorizationError> {
            Err(unsupported())
        }
    }

    fn unsupported() -> AuthorizationError {
        let reason = "this build does not support the system keyring";
        AuthorizationError::new(AuthorizationStep::Store, reason).with_hint(
            "nothing was changed; build with keyring support: `cargo install --path crates/turnbuckle-cli --features keyring`",
        )
    }

    #[cfg(test)]
    mod tests {
        use std::fs;

        use turnbuckle_auth::client::{FileEncryption, FileStore};

        use super::*;

        #[tokio::test]
        async fn encryption_without_keyring_support_fails_and_changes_nothing() {
            let folder = tempfile::tempdir().unwrap();
            let store = FileStore::new(folder.path().join("logins")).keyring(SystemKeyring::new());

            let failure = store
                .set_encryption(FileEncryption::Encrypted)
                .await
                .unwrap_err();

            assert!(failure.reason().contains("this build"), "{failure}");
            assert!(failure.hint().unwrap().contains("--features keyring"));
            assert!(!store.path().exists());
        }

        #[tokio::test]
        async fn a_file_encrypted_by_another_build_is_not_read_or_changed() {
            let folder = tempfile::tempdir().unwrap();
            let store = FileStore::new(folder.path()).keyring(SystemKeyring::new());
            let encrypted = r#"{"version":2,"sealed":"c2VzYW1l"}"#;
            fs::write(store.path(), encrypted).unwrap();

            let failure = store.logins().await.map(drop).unwrap_err();

            assert!(failure.hint().unwrap().contains("--features keyring"));
            assert_eq!(fs::read_to_string(store.path()).unwrap(), encrypted);
        }
    }
}
