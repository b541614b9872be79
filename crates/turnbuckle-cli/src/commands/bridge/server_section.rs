//! The section of a server in `bridge.toml`.

use std::{collections::BTreeMap, num::NonZeroU32, ops::Range, path::PathBuf, time::Duration};

use serde::{Deserialize, Deserializer, de::Error as _};
use toml::Spanned;
use turnbuckle_auth::Secret;
use turnbuckle_gateway::{HeaderName, is_forwardable_header};
use turnbuckle_text::url::HttpUrl;

use super::ShareOption;
use crate::{
    cli::{self, EraOption},
    target::config_files::{CommandEntry, HttpEntry, ServerEntry},
};

/// The settings of a server.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(in super::super) struct ServerSection {
    command: Option<Spanned<String>>,
    args: Option<Spanned<Vec<String>>>,
    env: Option<Spanned<BTreeMap<String, Secret>>>,
    url: Option<Spanned<String>>,
    headers: Option<Spanned<BTreeMap<String, Secret>>>,
    pub(in super::super) share: Option<ShareOption>,
    pub(in super::super) one_at_a_time: bool,
    pub(in super::super) required: bool,
    pub(in super::super) allow: Vec<String>,
    pub(in super::super) deny: Vec<String>,
    /// The scope that a caller needs, by pattern.
    pub(in super::super) scopes: BTreeMap<String, String>,
    pub(in super::super) auth: Option<Spanned<AuthSection>>,
    /// The headers of callers that the server gets.
    pub(in super::super) forward_headers: Vec<Spanned<String>>,
    #[serde(deserialize_with = "duration")]
    pub(in super::super) timeout: Option<Duration>,
    pub(in super::super) era: Option<EraOption>,
}

/// The settings for all servers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(in super::super) struct PolicySection {
    /// The tool lock.
    pub(in super::super) lock: Option<PathBuf>,
    pub(in super::super) rate: Option<RateSection>,
}

/// The requests of a caller to one server.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(in super::super) struct RateSection {
    pub(in super::super) calls: NonZeroU32,
    #[serde(deserialize_with = "required_duration")]
    pub(in super::super) per: Duration,
}

/// The reason that all callers cannot share a server with token exchange.
pub(in super::super) const SHARED_EXCHANGE: &str =
    "with `exchange`, callers cannot share a connection (`all`)";

/// The reason that all callers cannot share a server with logins of each caller.
pub(in super::super) const SHARED_LOGINS: &str =
    "with `per-user`, callers cannot share a connection (`all`)";

/// The client that the bridge is at the issuer of callers, to find out who is at a browser.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(in super::super) struct ConnectSection {
    pub(in super::super) client_id: String,
    pub(in super::super) client_secret_file: Option<PathBuf>,
}

/// How the bridge authenticates at a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(in super::super) struct AuthSection {
    pub(in super::super) kind: AuthKind,
    /// The file with the token.
    pub(in super::super) file: Option<PathBuf>,
    pub(in super::super) client_id: Option<String>,
    pub(in super::super) client_secret_file: Option<PathBuf>,
    /// The private key of the client, as PEM.
    pub(in super::super) client_key_file: Option<PathBuf>,
    /// The authorization server: that of the exchange, or the only one where the client id is valid.
    pub(in super::super) issuer: Option<String>,
    /// The resource identifier of the server, if it is not its URL.
    pub(in super::super) resource: Option<String>,
    /// The name of the server at the authorization server.
    pub(in super::super) audience: Option<String>,
    /// The scopes to request, separated by spaces.
    pub(in super::super) scope: Option<String>,
}

/// The source of the credentials for a server.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(in super::super) enum AuthKind {
    /// The login of `turnbuckle login`.
    Login,
    /// The client has access itself.
    ClientCredentials,
    /// A token in a file, which other programs may replace.
    TokenFile,
    /// A token for each caller, in exchange for the token of the caller.
    Exchange,
    /// A login of each caller, with an account of its own.
    PerUser,
}

/// A setting that cannot be used.
pub(super) struct SectionProblem {
    /// The place in the file; `None` is the name of the section.
    pub(super) span: Option<Range<usize>>,
    pub(super) reason: String,
}

impl SectionProblem {
    fn new(span: Range<usize>, reason: impl Into<String>) -> Self {
        Self {
            span: Some(span),
            reason: reason.into(),
        }
    }
}

impl ServerSection {
    /// Returns an error for settings that do not belong together.
    pub(super) fn check(&self) -> Result<(), SectionProblem> {
        let of_command = [
            ("args", self.args.as_ref().map(Spanned::span)),
            ("env", self.env.as_ref().map(Spanned::span)),
        ];
        let of_url = [("headers", self.headers.as_ref().map(Spanned::span))];
        if let (Some(_), Some(url)) = (&self.command, &self.url) {
            let reason = "a server has either `command` or `url`";
            return Err(SectionProblem::new(url.span(), reason));
        }
        for (needed, is_there, keys) in [
            ("command", self.command.is_some(), &of_command[..]),
            ("url", self.url.is_some(), &of_url[..]),
        ] {
            if let Some((key, Some(span))) = keys.iter().find(|(_, span)| span.is_some())
                && !is_there
            {
                let reason = format!("`{key}` needs `{needed}`");
                return Err(SectionProblem::new(span.clone(), reason));
            }
        }
        for name in &self.forward_headers {
            let header = name.get_ref().parse::<HeaderName>();
            if !header.is_ok_and(|header| is_forwardable_header(&header)) {
                let reason = format!("`{}` cannot be forwarded", name.get_ref());
                return Err(SectionProblem::new(name.span(), reason));
            }
        }
        if let (Some(_), Some(name)) = (&self.command, self.forward_headers.first()) {
            let reason = "a program gets no headers";
            return Err(SectionProblem::new(name.span(), reason));
        }
        let Some(auth) = &self.auth else {
            return Ok(());
        };
        if self.command.is_some() {
            let reason = "a program gets its credentials in `env`, not by `auth`";
            return Err(SectionProblem::new(auth.span(), reason));
        }
        let checked = auth.get_ref().check(self.share);
        checked.map_err(|reason| SectionProblem::new(auth.span(), reason))
    }

    /// Returns the names of `forward-headers`.
    pub(in super::super) fn forwarded(&self) -> impl Iterator<Item = HeaderName> {
        let names = self.forward_headers.iter();
        names.filter_map(|name| name.get_ref().parse().ok())
    }

    /// Returns the server that the section defines, if it does.
    pub(super) fn entry(&self) -> Option<ServerEntry> {
        if let Some(command) = &self.command {
            return Some(ServerEntry::Command(CommandEntry {
                program: command.get_ref().clone(),
                arguments: self
                    .args
                    .as_ref()
                    .map(|args| args.get_ref().clone())
                    .unwrap_or_default(),
                env: pairs(self.env.as_ref()),
                env_vars: Vec::new(),
                env_file: None,
                cwd: None,
                lookup: Default::default(),
            }));
        }
        let url = self.url.as_ref()?;
        let mut http_entry = HttpEntry::new(url.get_ref());
        http_entry.headers = pairs(self.headers.as_ref());
        Some(ServerEntry::Http(http_entry))
    }

    /// Returns the first key with secrets, and its place.
    pub(super) fn secrets(&self) -> Option<(&'static str, Range<usize>)> {
        let env = self.env.as_ref().map(|env| ("env", env.span()));
        env.or_else(|| Some(("headers", self.headers.as_ref()?.span())))
    }
}

impl AuthSection {
    /// Returns the files that it names, which have secrets.
    pub(in super::super) fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let files = [
            &mut self.file,
            &mut self.client_secret_file,
            &mut self.client_key_file,
        ];
        files.into_iter().flatten()
    }

    fn check(&self, share: Option<ShareOption>) -> Result<(), String> {
        self.check_keys()?;
        let has_client = matches!(self.kind, AuthKind::ClientCredentials | AuthKind::Exchange);
        if has_client && self.client_secret_file.is_some() == self.client_key_file.is_some() {
            return Err("either `client-secret-file` or `client-key-file` is needed".to_owned());
        }
        if self.kind == AuthKind::PerUser && matches!(share, Some(ShareOption::All)) {
            return Err(SHARED_LOGINS.to_owned());
        }
        if self.kind == AuthKind::PerUser && self.client_id.is_none() {
            let needing = [
                ("client-secret-file", self.client_secret_file.is_some()),
                ("issuer", self.issuer.is_some()),
            ];
            let key = needing.into_iter().find(|(_, is_given)| *is_given);
            return key.map_or(Ok(()), |(key, _)| Err(format!("`{key}` needs `client-id`")));
        }
        if self.kind != AuthKind::Exchange {
            return Ok(());
        }
        let issuer = HttpUrl::parse(self.issuer.as_deref().unwrap_or_default());
        if !issuer.is_ok_and(|issuer| issuer.is_https_or_loopback()) {
            return Err("`issuer` has to be an https URL".to_owned());
        }
        if matches!(share, Some(ShareOption::All)) {
            return Err(SHARED_EXCHANGE.to_owned());
        }
        Ok(())
    }

    /// Checks which keys are given.
    fn check_keys(&self) -> Result<(), String> {
        let given = [
            ("file", self.file.is_some()),
            ("client-id", self.client_id.is_some()),
            ("client-secret-file", self.client_secret_file.is_some()),
            ("client-key-file", self.client_key_file.is_some()),
            ("issuer", self.issuer.is_some()),
            ("resource", self.resource.is_some()),
            ("audience", self.audience.is_some()),
            ("scope", self.scope.is_some()),
        ];
        let (required, allowed): (&[&str], &[&str]) = match self.kind {
            AuthKind::Login => (&[], &[]),
            AuthKind::PerUser => (&[], &["client-id", "client-secret-file", "issuer", "scope"]),
            AuthKind::TokenFile => (&["file"], &[]),
            AuthKind::ClientCredentials => (
                &["client-id"],
                &["client-secret-file", "client-key-file", "issuer", "scope"],
            ),
            AuthKind::Exchange => (
                &["client-id", "issuer"],
                &[
                    "client-secret-file",
                    "client-key-file",
                    "scope",
                    "resource",
                    "audience",
                ],
            ),
        };
        for (key, is_given) in given {
            let is_required = required.contains(&key);
            if is_required && !is_given {
                return Err(format!("`{key}` is missing"));
            }
            if is_given && !is_required && !allowed.contains(&key) {
                return Err(format!("`{key}` does not belong to this kind"));
            }
        }
        Ok(())
    }
}

fn pairs(table: Option<&Spanned<BTreeMap<String, Secret>>>) -> Vec<(String, Secret)> {
    let table = table.into_iter().flat_map(toml::Spanned::get_ref);
    table
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    required_duration(from).map(Some)
}

fn required_duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    cli::parse_duration(&text).map_err(D::Error::custom)
}
