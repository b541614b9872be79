//! Who may ask a server on HTTP: what the command line and the file say about it.

use std::path::PathBuf;

use serde::Deserialize;

use super::tokens::{self, Known};
use crate::environment::Environment;
use crate::failure::{Failure, Result};

/// The flags that say who may ask.
#[derive(Debug, clap::Args)]
pub(super) struct Flags {
    /// Let in who has a token of this authorization server, and keep the memory of each caller apart; needs --audience
    #[arg(long = "auth-issuer", value_name = "URL", conflicts_with = "stdio")]
    issuer: Option<String>,

    // No doc comments where rustdoc would look for links.
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "stdio",
        help = "Where clients reach this server, as tokens name it: https://memory.example.com/mcp"
    )]
    audience: Option<String>,

    /// Let in only callers whose tokens have this scope; can be given again
    #[arg(long = "require-scope", value_name = "SCOPE", conflicts_with = "stdio")]
    scopes: Vec<String>,

    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "stdio",
        help = "Let in who has a token of this file, a line for each: TOKEN [NAME [SCOPES]]"
    )]
    token_file: Option<PathBuf>,
}

/// What the file of settings says about it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Section {
    issuer: Option<String>,
    audience: Option<String>,
    #[serde(default)]
    require_scopes: Vec<String>,
    pub(super) token_file: Option<PathBuf>,
}

/// Who may ask.
#[allow(
    dead_code,
    reason = "a build without cryptography refuses before it reads all of it"
)]
#[derive(Debug)]
pub(super) struct Authorization {
    /// Whose tokens are good.
    pub(super) issuer: Option<String>,
    /// Where clients reach the server; where it listens, if nobody says.
    pub(super) audience: Option<String>,
    /// What everybody must be allowed to do.
    pub(super) scopes: Vec<String>,
    /// Tokens that are good because they are.
    pub(super) tokens: Vec<Known>,
}

impl Flags {
    /// Says whether any of them is given.
    pub(super) fn are_given(&self) -> bool {
        self.issuer.is_some()
            || self.audience.is_some()
            || !self.scopes.is_empty()
            || self.token_file.is_some()
    }
}

impl Authorization {
    /// Puts together what was said; nothing if nobody has to be known.
    pub(super) fn gather(
        flags: Flags,
        section: Option<Section>,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        let is_wanted = flags.are_given() || section.is_some();
        let section = section.unwrap_or_default();
        let file = flags.token_file.map(|file| environment.cwd.join(file));
        let authorization = Self {
            issuer: flags.issuer.or(section.issuer),
            audience: flags.audience.or(section.audience),
            scopes: match flags.scopes.is_empty() {
                true => section.require_scopes,
                false => flags.scopes,
            },
            tokens: match file.or(section.token_file) {
                Some(file) => tokens::read(&file)?,
                None => Vec::new(),
            },
        };
        if !is_wanted {
            return Ok(None);
        }
        authorization.check()?;
        Ok(Some(authorization))
    }

    fn check(&self) -> Result {
        if self.issuer.is_none() && self.tokens.is_empty() {
            return Err(
                Failure::not_asked("nobody could come in: whose tokens are good?")
                    .hint("say it with --auth-issuer URL or --token-file FILE"),
            );
        }
        let Some(issuer) = &self.issuer else {
            return Ok(());
        };
        if !is_safe(issuer) {
            return Err(Failure::not_asked(format!(
                "`{issuer}` is no issuer whose keys could be trusted: it must be an https URL"
            )));
        }
        if self.audience.is_none() {
            return Err(Failure::not_asked(
                "an issuer gives out tokens for many servers, and it is not said which of them are for this one",
            )
            .hint("--audience https://memory.example.com/mcp, where clients reach it"));
        }
        Ok(())
    }

    /// The name of the machine that clients use, if it is said.
    pub(super) fn host(&self) -> Option<&str> {
        let (_, place) = self.audience.as_deref()?.split_once("://")?;
        place.split(['/', '?', '#']).next()
    }
}

/// Nobody between us and the issuer can change what it says.
fn is_safe(url: &str) -> bool {
    let (scheme, place) = url.split_once("://").unwrap_or_default();
    let authority = place.split('/').next().unwrap_or_default();
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
    let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]") || authority == "[::1]";
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    match scheme {
        "https" => !authority.is_empty(),
        "http" => is_here && (is_port || authority == "[::1]"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorization(issuer: Option<&str>, audience: Option<&str>) -> Authorization {
        Authorization {
            issuer: issuer.map(str::to_owned),
            audience: audience.map(str::to_owned),
            scopes: Vec::new(),
            tokens: Vec::new(),
        }
    }

    #[test]
    fn an_issuer_is_safe_to_ask_and_tokens_are_for_somebody() {
        let audience = Some("https://memory.example/mcp");
        for issuer in [
            "https://auth.example",
            "https://auth.example/tenant",
            "http://localhost:9000",
            "http://127.0.0.1",
            "http://[::1]",
            "http://[::1]:9000/a",
        ] {
            assert!(
                authorization(Some(issuer), audience).check().is_ok(),
                "{issuer}"
            );
            assert!(authorization(Some(issuer), None).check().is_err());
        }
        for issuer in [
            "http://auth.example",
            "auth.example",
            "https://",
            "http://localhost:a@b",
        ] {
            assert!(
                authorization(Some(issuer), audience).check().is_err(),
                "{issuer}"
            );
        }
        assert!(authorization(None, audience).check().is_err());
    }

    #[test]
    fn the_name_that_clients_use_is_found_in_the_audience() {
        let host = |url| authorization(None, Some(url)).host().map(str::to_owned);
        assert_eq!(
            host("https://memory.example/mcp").unwrap(),
            "memory.example"
        );
        assert_eq!(
            host("https://memory.example:8443").unwrap(),
            "memory.example:8443"
        );
        assert_eq!(host("memory"), None);
    }
}
