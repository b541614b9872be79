//! A login without its tokens, for output.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::output::{sanitize, style, table::TextTable, wrap};

/// The public data of a login.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoginSummary {
    /// The key in the store.
    pub(crate) key: String,
    /// The URL of the server.
    pub(crate) server: String,
    /// The digest of the caller of a bridge that the login belongs to.
    pub(crate) user: Option<String>,
    /// The issuer of the tokens.
    pub(crate) issuer: String,
    /// The user, if a token has a subject.
    pub(crate) subject: Option<String>,
    /// A readable name of the user, if a token has one.
    pub(crate) name: Option<String>,
    /// The scopes of the tokens, if they are known.
    pub(crate) scopes: Option<Vec<String>>,
    /// The id of this client at the issuer.
    pub(crate) client_id: String,
    /// The expiry of the access token in seconds since 1970, if known.
    pub(crate) expires_at: Option<u64>,
    /// True if the token can be refreshed.
    pub(crate) renewable: bool,
    /// True if the token is bound to a key on this machine.
    pub(crate) key_bound: bool,
    /// True if the file of logins is encrypted.
    pub(crate) is_encrypted: bool,
}

impl LoginSummary {
    /// Returns the login as JSON.
    pub(crate) fn document(&self) -> Value {
        let mut document = json!({
            "server": sanitize::redact_query(&self.server),
            "issuer": self.issuer,
            "subject": self.subject,
            "name": self.name,
            "scopes": self.scopes,
            "clientId": self.client_id,
            "expires": self.expires_at.map(format_date),
            "renews": self.renewable,
            "bound": self.key_bound,
            "encrypted": self.is_encrypted,
        });
        if let Some(user) = &self.user {
            document["user"] = user.as_str().into();
        }
        document
    }

    /// Returns the server and the caller of a bridge, for people.
    pub(crate) fn label(&self) -> String {
        let server = sanitize::redact_query(&self.server);
        match &self.user {
            Some(user) => format!("{server} (caller {})", user.get(..8).unwrap_or(user)),
            None => server,
        }
    }

    /// Returns the login for people, with a row for each known value.
    pub(crate) fn render(&self, now: SystemTime, width: usize) -> String {
        let scopes = self.scopes.as_ref().map(|scopes| scopes.join(" "));
        let bound = self.key_bound.then_some("to a key on this machine");
        let rows = [
            ("server", Some(self.label())),
            ("issuer", Some(self.issuer.clone())),
            ("subject", self.user_text()),
            ("scopes", scopes),
            ("client", Some(self.client_id.clone())),
            ("expires", Some(self.expiry_text(now))),
            ("bound", bound.map(str::to_owned)),
            ("stored", Some(self.storage().to_owned())),
        ];
        let mut text = String::new();
        for (label, value) in rows {
            let value = value.filter(|value| !value.is_empty());
            let Some(value) = value else { continue };
            let lines = wrap::indented(&sanitize::line(&value), LABEL_WIDTH, width);
            let label = style::styled(style::NAME, &format!("{label:<LABEL_WIDTH$}"));
            text += &format!("{label}{}", &lines[LABEL_WIDTH..]);
        }
        text
    }

    /// Returns how the login is stored.
    pub(crate) fn storage(&self) -> &'static str {
        if self.is_encrypted {
            "encrypted with a key in the system keyring"
        } else {
            "in a file that only you can read"
        }
    }

    fn user_text(&self) -> Option<String> {
        match (&self.subject, &self.name) {
            (Some(subject), Some(name)) if subject != name => Some(format!("{subject} ({name})")),
            (subject, name) => subject.clone().or_else(|| name.clone()),
        }
    }

    fn expiry_text(&self, now: SystemTime) -> String {
        let renewed = if self.renewable {
            "; refreshed when needed"
        } else {
            ""
        };
        let Some(expires) = self.expires_at else {
            return format!("unknown{renewed}");
        };
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let left = match expires.checked_sub(now) {
            None | Some(0) if self.renewable => "expired; refreshed on next use".to_owned(),
            None | Some(0) => "expired; log in again".to_owned(),
            Some(left) => format!("in {}{renewed}", approximate(left)),
        };
        format!("{} ({left})", format_date(expires))
    }
}

const LABEL_WIDTH: usize = 9;

/// Returns logins for people, one per line.
pub(crate) fn table(summaries: &[LoginSummary], now: SystemTime, width: usize) -> String {
    let mut table = TextTable::new(&["server", "subject", "issuer", "expires", "scopes"]);
    for summary in summaries {
        let scopes = summary.scopes.as_deref().unwrap_or_default();
        let cells = [
            summary.label(),
            summary
                .name
                .clone()
                .or(summary.user_text())
                .unwrap_or_default(),
            summary.issuer.clone(),
            summary.short_expiry(now),
            scopes.join(" "),
        ];
        table.row(cells.map(|cell| sanitize::line(&cell)));
    }
    table.render(width)
}

impl LoginSummary {
    fn short_expiry(&self, now: SystemTime) -> String {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let left = self.expires_at.map(|expires| expires.saturating_sub(now));
        match (self.renewable, left) {
            (true, _) => "refreshed".to_owned(),
            (false, None) => String::new(),
            (false, Some(0)) => "expired".to_owned(),
            (false, Some(left)) => format!("in {}", approximate(left)),
        }
    }
}

/// Returns a duration in its largest unit.
fn approximate(seconds: u64) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let (size, unit) = *units
        .iter()
        .find(|(size, _)| seconds >= *size)
        .unwrap_or(&(1, "s"));
    format!("{} {unit}", seconds / size)
}

/// Formats a time; one beyond the calendar is shown as a number.
fn format_date(seconds: u64) -> String {
    // The last second of the year 9999.
    const MAX_SECONDS: u64 = 253_402_300_799;
    if seconds <= MAX_SECONDS {
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        humantime::format_rfc3339_seconds(time).to_string()
    } else {
        seconds.to_string()
    }
}

#[cfg(test)]
mod tests;
