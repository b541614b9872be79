//! A login as people see it: everything but the tokens.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::output::table::Table;
use crate::output::{plain, style, wrap};

/// As whom the user is known to a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// The URL of the server.
    pub(crate) server: String,
    /// Who gave the tokens.
    pub(crate) issuer: String,
    /// The user, if a token says so.
    pub(crate) subject: Option<String>,
    /// What people call the user, if a token says so.
    pub(crate) name: Option<String>,
    /// What the tokens are good for; nothing if nobody said.
    pub(crate) scopes: Option<Vec<String>>,
    /// As what we are known to the issuer.
    pub(crate) client: String,
    /// When the token ends, in seconds since 1970, if that is known.
    pub(crate) expires: Option<u64>,
    /// Whether a new one can be had without the user.
    pub(crate) renews: bool,
    /// Whether the token is bound to a key of this machine.
    pub(crate) bound: bool,
    /// Whether it is kept under a seal.
    pub(crate) sealed: bool,
}

impl Account {
    /// Returns a login for programs.
    pub(crate) fn document(&self) -> Value {
        json!({
            "server": plain::without_query(&self.server),
            "issuer": self.issuer,
            "subject": self.subject,
            "name": self.name,
            "scopes": self.scopes,
            "clientId": self.client,
            "expires": self.expires.map(date),
            "renews": self.renews,
            "bound": self.bound,
            "sealed": self.sealed,
        })
    }

    /// Returns a login for people, a row for each thing that is known.
    pub(crate) fn shown(&self, now: SystemTime, width: usize) -> String {
        let scopes = self.scopes.as_ref().map(|scopes| scopes.join(" "));
        let bound = self.bound.then_some("to a key of this machine");
        let rows = [
            ("server", Some(plain::without_query(&self.server))),
            ("issuer", Some(self.issuer.clone())),
            ("subject", self.who()),
            ("scopes", scopes),
            ("client", Some(self.client.clone())),
            ("expires", Some(self.ends(now))),
            ("bound", bound.map(str::to_owned)),
            ("kept", Some(self.kept().to_owned())),
        ];
        let mut text = String::new();
        for (label, value) in rows {
            let value = value.filter(|value| !value.is_empty());
            let Some(value) = value else { continue };
            let lines = wrap::indented(&plain::line(&value), LABEL, width);
            let label = style::paint(style::NAME, &format!("{label:<LABEL$}"));
            text += &format!("{label}{}", &lines[LABEL..]);
        }
        text
    }

    /// Says how it is kept.
    pub(crate) fn kept(&self) -> &'static str {
        match self.sealed {
            true => "sealed with a key in the keyring of the system",
            false => "in a file that only you can read",
        }
    }

    fn who(&self) -> Option<String> {
        match (&self.subject, &self.name) {
            (Some(subject), Some(name)) if subject != name => Some(format!("{subject} ({name})")),
            (subject, name) => subject.clone().or_else(|| name.clone()),
        }
    }

    fn ends(&self, now: SystemTime) -> String {
        let renewed = match self.renews {
            true => "; renewed when needed",
            false => "",
        };
        let Some(expires) = self.expires else {
            return format!("nobody said when{renewed}");
        };
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let left = match expires.checked_sub(now) {
            None | Some(0) if self.renews => "over; renewed when it is used".to_owned(),
            None | Some(0) => "over; log in again".to_owned(),
            Some(left) => format!("in {}{renewed}", rough(left)),
        };
        format!("{} ({left})", date(expires))
    }
}

const LABEL: usize = 9;

/// Returns logins for people, a line each.
pub(crate) fn table(accounts: &[Account], now: SystemTime, width: usize) -> String {
    let mut table = Table::new(&["server", "subject", "issuer", "expires", "scopes"]);
    for account in accounts {
        let scopes = account.scopes.as_deref().unwrap_or_default();
        let cells = [
            plain::without_query(&account.server),
            account.name.clone().or(account.who()).unwrap_or_default(),
            account.issuer.clone(),
            account.briefly(now),
            scopes.join(" "),
        ];
        table.row(cells.map(|cell| plain::line(&cell)));
    }
    table.render(width)
}

impl Account {
    fn briefly(&self, now: SystemTime) -> String {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let left = self.expires.map(|expires| expires.saturating_sub(now));
        match (self.renews, left) {
            (true, _) => "renewed".to_owned(),
            (false, None) => String::new(),
            (false, Some(0)) => "over".to_owned(),
            (false, Some(left)) => format!("in {}", rough(left)),
        }
    }
}

/// The largest unit is enough for people.
fn rough(seconds: u64) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let (size, unit) = *units
        .iter()
        .find(|(size, _)| seconds >= *size)
        .unwrap_or(&(1, "s"));
    format!("{} {unit}", seconds / size)
}

/// A time that no calendar has is shown as its number.
fn date(seconds: u64) -> String {
    // The last second of the year 9999.
    const LAST: u64 = 253_402_300_799;
    match seconds <= LAST {
        true => {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            humantime::format_rfc3339_seconds(time).to_string()
        }
        false => seconds.to_string(),
    }
}

#[cfg(test)]
mod tests;
