//! Authentication of callers on HTTP: an issuer of tokens, or a file of static tokens.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use turnbuckle_auth::Secret;
use turnbuckle_protocol::Principal;
use turnbuckle_text::url::HttpUrl;
pub(crate) use verification::require_auth;

use crate::{
    environment::Environment,
    error::{CliError, Result},
};

/// The options for authentication.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct AuthFlags {
    /// Accept tokens of this issuer; needs --audience
    #[arg(long = "auth-issuer", value_name = "URL", conflicts_with = "stdio")]
    issuer: Option<String>,

    // Not doc comments, because rustdoc would parse links in them.
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "stdio",
        help = "Require this token audience, the URL of this server"
    )]
    audience: Option<String>,

    /// Require this scope in every token; repeatable
    #[arg(long = "require-scope", value_name = "SCOPE", conflicts_with = "stdio")]
    scopes: Vec<String>,

    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "stdio",
        help = "Accept tokens in this file: TOKEN [NAME [SCOPES]]"
    )]
    token_file: Option<PathBuf>,
}

/// The table `[authorization]` of the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct AuthSection {
    issuer: Option<String>,
    audience: Option<String>,
    #[serde(default)]
    require_scopes: Vec<String>,
    pub(crate) token_file: Option<PathBuf>,
}

/// The authentication of callers.
#[allow(
    dead_code,
    reason = "builds without the feature `tls` do not read all fields"
)]
#[derive(Debug)]
pub(crate) struct CallerAuth {
    /// The issuer of accepted tokens.
    pub(crate) issuer: Option<String>,
    /// The URL that clients use; by default the listen address.
    pub(crate) audience: Option<String>,
    /// The scopes that every token needs.
    pub(crate) scopes: Vec<String>,
    /// The tokens of the token file.
    pub(crate) tokens: Vec<StaticToken>,
    /// Whether tokens of the issuer may be exchanged for tokens for other servers.
    pub(crate) allows_token_exchange: bool,
}

impl AuthFlags {
    /// Returns whether any option is given.
    pub(crate) fn any_given(&self) -> bool {
        self.issuer.is_some()
            || self.audience.is_some()
            || !self.scopes.is_empty()
            || self.token_file.is_some()
    }
}

impl CallerAuth {
    /// Combines options and configuration; `None` if callers are not authenticated.
    pub(crate) fn resolve(
        flags: AuthFlags,
        section: Option<AuthSection>,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        let is_configured = flags.any_given() || section.is_some();
        let section = section.unwrap_or_default();
        let file = flags.token_file.map(|file| environment.cwd.join(file));
        let authorization = Self {
            issuer: flags.issuer.or(section.issuer),
            audience: flags.audience.or(section.audience),
            scopes: if flags.scopes.is_empty() {
                section.require_scopes
            } else {
                flags.scopes
            },
            tokens: match file.or(section.token_file) {
                Some(file) => read_token_file(&file)?,
                None => Vec::new(),
            },
            allows_token_exchange: false,
        };
        if !is_configured {
            return Ok(None);
        }
        authorization.check()?;
        Ok(Some(authorization))
    }

    fn check(&self) -> Result {
        if self.issuer.is_none() && self.tokens.is_empty() {
            return Err(CliError::could_not_run("no token would be accepted")
                .hint("use --auth-issuer URL or --token-file FILE"));
        }
        let Some(issuer) = &self.issuer else {
            return Ok(());
        };
        let is_trusted = HttpUrl::parse(issuer).is_ok_and(|issuer| issuer.is_https_or_loopback());
        if !is_trusted {
            return Err(CliError::could_not_run(format!(
                "invalid issuer `{issuer}`: expected an https URL"
            )));
        }
        if self.audience.is_none() {
            return Err(CliError::could_not_run(
                "--auth-issuer needs --audience: the issuer may also issue tokens for other servers",
            )
            .hint("for example --audience https://memory.example.com/mcp, the URL that clients use"));
        }
        Ok(())
    }

    /// Returns the URL that clients use: the audience, or that of the listen address.
    pub(crate) fn resource(&self, authority: &str) -> String {
        let local = || format!("http://{authority}/mcp");
        self.audience.clone().unwrap_or_else(local)
    }

    /// Returns the host of the audience, if it is set.
    pub(crate) fn host(&self) -> Option<String> {
        let audience = HttpUrl::parse(self.audience.as_deref()?).ok()?;
        Some(audience.authority.to_string())
    }
}

#[cfg(feature = "tls")]
mod verification {
    use std::sync::Arc;

    use turnbuckle_auth::{
        Scopes,
        server::{ResourceServer, TrustedIssuer},
    };
    use turnbuckle_client::http::HttpFetcher;
    use turnbuckle_server::http::Http;

    use super::CallerAuth;
    use crate::error::{CliError, Result};

    /// Requires authentication for all requests to the server at the URL `resource`. Tokens for `audience` are accepted, too.
    pub(crate) fn require_auth(
        http: Http,
        authorization: &CallerAuth,
        resource: &str,
        audience: Option<&str>,
    ) -> Result<Http> {
        let resource_server = ResourceServer::new(resource, Arc::new(HttpFetcher::trusted()));
        let resource_server =
            resource_server.map_err(|error| CliError::could_not_run(error.to_string()))?;
        let mut resource_server = resource_server
            .name("Turnbuckle")
            .allow_token_exchange(authorization.allows_token_exchange)
            .require_scopes(parse_scopes(&authorization.scopes)?);
        if let Some(issuer) = &authorization.issuer {
            resource_server = resource_server
                .issuer(TrustedIssuer::jwt(issuer))
                .republish_issuer_metadata();
        }
        if let Some(audience) = audience {
            resource_server = resource_server.audience(audience);
        }
        for token in &authorization.tokens {
            resource_server =
                resource_server.static_token(token.token.clone(), token.principal.clone());
        }
        Ok(http.authenticator(resource_server))
    }

    fn parse_scopes(words: &[String]) -> Result<Scopes> {
        let words = words.join(" ");
        words
            .parse()
            .map_err(|_| CliError::could_not_run(format!("invalid scopes `{words}`")))
    }
}

/// Stub for builds without token verification.
#[cfg(not(feature = "tls"))]
mod verification {
    use turnbuckle_server::http::Http;

    use super::CallerAuth;
    use crate::error::{CliError, Result};

    /// Returns an error: this build cannot verify tokens.
    pub(crate) fn require_auth(_: Http, _: &CallerAuth, _: &str, _: Option<&str>) -> Result<Http> {
        Err(CliError::could_not_run(
            "this build cannot verify tokens: it was built without the feature `tls`",
        ))
    }
}

/// The issuer of principals in the token file.
const TOKEN_FILE_ISSUER: &str = "token-file";

/// The subject of a token without a name.
const DEFAULT_SUBJECT: &str = "user";

/// The maximum size of the token file.
const MAX_TOKEN_FILE_BYTES: u64 = 1024 * 1024;

/// The minimum length of a token; 16 random characters cannot be guessed.
const MIN_TOKEN_CHARS: usize = 16;

/// A token and its principal.
#[allow(dead_code, reason = "builds without the feature `tls` do not read it")]
#[derive(Debug)]
pub(crate) struct StaticToken {
    pub(crate) token: Secret,
    pub(crate) principal: Principal,
}

/// Reads the token file, if it is private.
fn read_token_file(path: &Path) -> Result<Vec<StaticToken>> {
    let file = File::open(path).map_err(|error| read_error(path, &error))?;
    let metadata = file.metadata().map_err(|error| read_error(path, &error))?;
    check_private(path, &metadata)?;
    let mut text = String::new();
    file.take(MAX_TOKEN_FILE_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| read_error(path, &error))?;
    let tokens = parse_tokens(&text).map_err(|problem| {
        CliError::could_not_run(format!("{}: {problem}", path.display()))
            .hint("a line is `TOKEN [NAME [SCOPE …]]`; `openssl rand -hex 32` creates a token")
    })?;
    if tokens.is_empty() {
        return Err(CliError::could_not_run(format!(
            "no token in {}",
            path.display()
        )));
    }
    Ok(tokens)
}

/// Returns an error if other users can read the file.
#[cfg(unix)]
fn check_private(path: &Path, metadata: &fs::Metadata) -> Result {
    use std::os::unix::fs::PermissionsExt as _;

    let others = metadata.permissions().mode() & 0o077;
    if others == 0 || !metadata.is_file() {
        return Ok(());
    }
    let path = path.display();
    Err(
        CliError::could_not_run(format!("other users can read the tokens in {path}"))
            .hint(format!("run `chmod 600 {path}`")),
    )
}

#[cfg(not(unix))]
fn check_private(_path: &Path, _about: &fs::Metadata) -> Result {
    Ok(())
}

/// Parses the lines. Errors do not quote tokens.
fn parse_tokens(text: &str) -> std::result::Result<Vec<StaticToken>, String> {
    let mut tokens: Vec<StaticToken> = Vec::new();
    for (line, words) in (1..).zip(text.lines()) {
        let mut words = words.split_whitespace();
        let Some(token) = words.next().filter(|word| !word.starts_with('#')) else {
            continue;
        };
        if token.len() < MIN_TOKEN_CHARS {
            return Err(format!(
                "the token in line {line} is too short: it needs at least {MIN_TOKEN_CHARS} characters"
            ));
        }
        if !token.bytes().all(is_token_byte) {
            return Err(format!("the token in line {line} has invalid characters"));
        }
        let mut principal =
            Principal::new(TOKEN_FILE_ISSUER, words.next().unwrap_or(DEFAULT_SUBJECT));
        principal.scopes = words.map(str::to_owned).collect();
        if tokens.iter().any(|other| other.token.expose() == token) {
            return Err(format!("the token in line {line} is a duplicate"));
        }
        tokens.push(StaticToken {
            token: Secret::new(token),
            principal,
        });
    }
    Ok(tokens)
}

/// Returns whether a byte is allowed in a token: RFC 6750, section 2.1.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

fn read_error(path: &Path, error: &io::Error) -> CliError {
    CliError::could_not_run(format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorization(issuer: Option<&str>, audience: Option<&str>) -> CallerAuth {
        CallerAuth {
            issuer: issuer.map(str::to_owned),
            audience: audience.map(str::to_owned),
            scopes: Vec::new(),
            tokens: Vec::new(),
            allows_token_exchange: false,
        }
    }

    #[test]
    fn an_issuer_needs_a_trusted_url_and_an_audience() {
        let audience = Some("https://memory.example/mcp");
        for issuer in [
            "https://auth.example",
            "https://auth.example/tenant",
            "http://localhost:9000",
            "http://127.0.0.1",
            "http://127.0.0.2:9000",
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
    fn the_host_is_taken_from_the_audience() {
        let host = |url| authorization(None, Some(url)).host();
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

    #[test]
    fn a_line_is_a_token_with_optional_name_and_scopes() {
        let text = "# agents\n\n0123456789abcdef\n0123456789abcdeg ada\n  0123456789abcdeh bo read write\n";

        let tokens = parse_tokens(text).unwrap();

        let named = tokens.iter().map(|tokens| &*tokens.principal.subject);
        assert_eq!(Vec::from_iter(named), ["user", "ada", "bo"]);
        assert_eq!(tokens[2].token.expose(), "0123456789abcdeh");
        assert_eq!(tokens[2].principal.scopes.len(), 2);
        assert!(!format!("{tokens:?}").contains("0123456789"));
    }

    #[test]
    fn invalid_tokens_are_reported_by_line_only() {
        for (text, problem) in [
            ("secret ada", "line 1 is too short"),
            ("\n0123456789abcdef,ada", "line 2 has invalid characters"),
            (
                "0123456789abcdef\n0123456789abcdef bo",
                "line 2 is a duplicate",
            ),
        ] {
            let message = parse_tokens(text).unwrap_err();
            assert!(message.contains(problem), "{message}");
            assert!(
                !message.contains("secret") && !message.contains("0123"),
                "{message}"
            );
        }
    }
}
