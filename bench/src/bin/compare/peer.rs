//! Who is measured: the limit, ours, and the servers that `bench/peers` has prepared.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde::{Deserialize, Serialize};
use turnbuckle_bench::{Failure, process::beside_this_program};

/// What somebody is in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// The least it could cost.
    Limit,
    /// Turnbuckle.
    Ours,
    /// Somebody else's.
    Peer,
}

/// What not every peer can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ability {
    /// Calls of 2026-07-28, without a session.
    Modern,
    /// Sessions of 2025-11-25.
    Legacy,
    /// `--tools N`.
    Tools,
    /// `--more`: the tool `steps`, which tells of progress.
    Steps,
    /// `--more`: the tool `announce`, and `subscriptions/listen`.
    Announce,
    /// `--more`: the tool `announce`, and GET streams of sessions.
    AnnounceInSessions,
}

/// Somebody who is measured.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) role: Role,
    http: Option<Vec<PathBuf>>,
    stdio: Option<Vec<PathBuf>>,
    client: Option<Vec<PathBuf>>,
    lacks: BTreeMap<Ability, String>,
    missing: Option<String>,
}

impl Peer {
    /// Returns the command of its HTTP server on a free port; `None`: it has none.
    pub(crate) fn http(&self, more: &[&str]) -> Option<Command> {
        let mut command = command(self.http.as_deref()?)?;
        command.args(["--listen", "127.0.0.1:0"]).args(more);
        Some(command)
    }

    /// Returns the command of its HTTP server with the tool `announce`; `None`: it has none.
    pub(crate) fn streams(&self) -> Option<Command> {
        match self.role {
            Role::Limit => {
                let bare = self.http.as_deref()?.first()?;
                let mut command = Command::new(bare);
                command.args(["streams", "--listen", "127.0.0.1:0"]);
                Some(command)
            }
            Role::Ours | Role::Peer => self.http(&["--more"]),
        }
    }

    /// Returns the command of its stdio server; `None`: it has none.
    pub(crate) fn stdio(&self, more: &[&str]) -> Option<Command> {
        let mut command = command(self.stdio.as_deref()?)?;
        command.args(more);
        Some(command)
    }

    /// Returns the program of its stdio server, if it is one file that the machine runs; a script has none.
    pub(crate) fn program(&self) -> Option<&Path> {
        match self.stdio.as_deref()? {
            [_, script, ..] if script.is_file() => None,
            [program, ..] => Some(program),
            [] => None,
        }
    }

    /// Returns the command of its client; `None`: it has none.
    pub(crate) fn client(&self, more: &[&str]) -> Option<Command> {
        let mut command = command(self.client.as_deref()?)?;
        command.args(more);
        Some(command)
    }

    /// Says why it cannot be measured where this is needed.
    pub(crate) fn lacks(&self, needs: &[Ability]) -> Option<&str> {
        let reasons = needs.iter().find_map(|ability| self.lacks.get(ability));
        self.missing.as_deref().or(reasons.map(String::as_str))
    }
}

fn command(words: &[PathBuf]) -> Option<Command> {
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments);
    Some(command)
}

/// Finds everybody; peers that were never prepared are simply not there, and that is said.
pub(crate) fn everybody() -> Result<Vec<Peer>, Failure> {
    let (bare, ours) = (
        beside_this_program("bare")?,
        beside_this_program("echo-server")?,
    );
    let own = |role, name: &str, http: Vec<PathBuf>, stdio: Vec<PathBuf>, client: &str| {
        Ok::<_, Failure>(Peer {
            name: name.to_owned(),
            role,
            http: Some(http),
            stdio: Some(stdio),
            client: beside_this_program(client).ok().map(|path| vec![path]),
            lacks: BTreeMap::new(),
            missing: None,
        })
    };
    let mut peers = vec![
        own(
            Role::Limit,
            "bare",
            vec![bare.clone(), "http".into()],
            vec![bare, "stdio".into()],
            "bare-client",
        )?,
        own(
            Role::Ours,
            "turnbuckle",
            vec![ours.clone()],
            vec![ours, "--stdio".into()],
            "echo-client",
        )?,
    ];
    peers.extend(prepared()?);
    Ok(peers)
}

/// What `bench/peers/prepare.py` has written.
fn prepared() -> Result<Vec<Peer>, Failure> {
    // compare is `target/release/compare`, and the peers are in `target/bench-peers`.
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).unwrap_or(Path::new("."));
    match std::fs::read_to_string(target.join("bench-peers/peers.json")) {
        Ok(text) => parse(&text),
        Err(_) => Ok(Vec::new()),
    }
}

fn parse(text: &str) -> Result<Vec<Peer>, Failure> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Entry {
        name: String,
        #[serde(default)]
        http: Option<Vec<PathBuf>>,
        #[serde(default)]
        stdio: Option<Vec<PathBuf>>,
        #[serde(default)]
        client: Option<Vec<PathBuf>>,
        #[serde(default)]
        lacks: BTreeMap<Ability, String>,
        #[serde(default)]
        missing: Option<String>,
    }
    let entries: Vec<Entry> =
        serde_json::from_str(text).map_err(|error| format!("peers.json: {error}"))?;
    let peer = |entry: Entry| Peer {
        name: entry.name,
        role: Role::Peer,
        http: entry.http,
        stdio: entry.stdio,
        client: entry.client,
        lacks: entry.lacks,
        missing: entry.missing,
    };
    Ok(entries.into_iter().map(peer).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_prepared() {
        let peers = parse(
            r#"[{"name":"a","http":["/a","x"],"lacks":{"steps":"no progress"}},{"name":"b","missing":"no node"}]"#,
        )
        .unwrap();

        let http = peers[0].http(&["--more"]).unwrap();
        let arguments: Vec<_> = http.get_args().collect();
        assert_eq!(arguments, ["x", "--listen", "127.0.0.1:0", "--more"]);
        assert!(peers[0].stdio(&[]).is_none());
        assert_eq!(peers[0].lacks(&[Ability::Steps]), Some("no progress"));
        assert_eq!(peers[0].lacks(&[Ability::Tools]), None);
        assert_eq!(peers[1].lacks(&[]), Some("no node"));
        assert!(parse("{").is_err());
    }
}
