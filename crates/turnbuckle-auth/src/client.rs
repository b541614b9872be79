//! The OAuth client: from the first 401 to a working token.
//!
//! The steps are stateless: [`discovery`] finds the authorization server of an MCP server, [`registration`] registers
//! the client there, [`authorization`] sends the user to the login page, [`token`] requests tokens with each grant, and
//! [`device`] implements the device flow.
//!
//! [`OAuth`] runs them in order for an HTTP client and keeps the result in a [`TokenStore`]. It reaches the user
//! through a [`UserAgent`]; [`LoopbackUserAgent`] uses the browser of this machine.
//!
//! A server that calls other servers for its callers gets tokens for them with a [`TokenExchange`], or lets each of them
//! log in with [`UserLogins`].

pub mod authorization;
pub mod device;
pub mod discovery;
pub mod registration;
pub mod token;

mod callback_server;
mod file_store;
mod oauth;
mod oauth_error;
mod safe_url;
mod store;
#[cfg(test)]
mod tests;
mod token_exchange;
mod user_agent;
mod user_logins;

pub use oauth::{DpopMode, GrantType, OAuth, PendingLogin, Revocation};
pub use store::{
    EncryptionKey, FileEncryption, FileStore, Keyring, MemoryStore, StoreLock, StoredLogin,
    TokenStore,
};
pub use token_exchange::{CallerCredentials, TokenExchange};
pub use user_agent::{LoopbackUserAgent, UserAgent};
pub use user_logins::{UserCredentials, UserLogins, split_login_key};
