//! The measured programs: the limit, ours, and the servers that `bench/peers` has prepared.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use serde::{Deserialize, Serialize};
use turnbuckle_bench::{Failure, message::Era};

/// The role of a program in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// The lowest possible cost.
    Limit,
    /// Turnbuckle.
    Ours,
    /// Another library.
    Peer,
}

/// Something that not every peer can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ability {
    /// Calls of 2026-07-28, without a session.
    Modern,
    /// Sessions of 2025-11-25.
    Legacy,
    /// `--tools N`.
    Tools,
    /// `--more`: the tool `steps`, which reports progress.
    Steps,
    /// `--more`: the tool `announce`, and `subscriptions/listen`.
    Announce,
    /// `--more`: the tool `announce`, and GET streams of sessions.
    AnnounceInSessions,
}

impl Ability {
    /// The words of `bench/peers/peers.py` for it.
    fn words(self) -> &'static [&'static str] {
        match self {
            Ability::Modern => &["modern"],
            Ability::Legacy => &["legacy"],
            Ability::Tools => &["list"],
            Ability::Steps => &["steps"],
            Ability::Announce => &["modern", "announce"],
            Ability::AnnounceInSessions => &["legacy", "announce"],
        }
    }
}

/// A measured program.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) role: Role,
    http: Option<Vec<PathBuf>>,
    stdio: Option<Vec<PathBuf>>,
    client: Option<Vec<PathBuf>>,
    gateway: Option<Vec<PathBuf>>,
    /// The word `URL` stands for the server.
    stdio_gateway: Option<Vec<PathBuf>>,
    /// Reasons, by the words of the case: `http legacy steps`.
    lacks: BTreeMap<String, String>,
    missing: Option<String>,
}

impl Peer {
    /// Returns the command of its HTTP server on a free port, if it has one.
    pub(crate) fn http(&self, more: &[&str]) -> Option<Command> {
        let mut command = command(self.http.as_deref()?)?;
        command.args(["--listen", "127.0.0.1:0"]).args(more);
        Some(command)
    }

    /// Returns the command of its HTTP server with the tool `announce`, if it has one.
    pub(crate) fn streams(&self) -> Option<Command> {
        match self.role {
            Role::Limit => {
                let (_http, bare) = self.http.as_deref()?.split_last()?;
                let mut command = command(bare)?;
                command.args(["streams", "--listen", "127.0.0.1:0"]);
                Some(command)
            }
            Role::Ours | Role::Peer => self.http(&["--more"]),
        }
    }

    /// Returns the command of its stdio server, if it has one.
    pub(crate) fn stdio(&self, more: &[&str]) -> Option<Command> {
        let mut command = command(self.stdio.as_deref()?)?;
        command.args(more);
        Some(command)
    }

    /// Returns the program of its stdio server, if it is one executable file; a script is not.
    pub(crate) fn program(&self) -> Option<&Path> {
        match self.stdio.as_deref()? {
            [_, arguments @ ..] if arguments.iter().any(|argument| argument.is_file()) => None,
            [program, ..] => Some(program),
            [] => None,
        }
    }

    /// Returns the command of its client, if it has one.
    pub(crate) fn client(&self, more: &[&str]) -> Option<Command> {
        let mut command = command(self.client.as_deref()?)?;
        command.args(more);
        Some(command)
    }

    /// Returns the command of its gateway, if it has one: in front of a server over HTTP, or of a `bare stdio` that it starts.
    pub(crate) fn gateway(&self, upstream: Option<SocketAddr>, era: Era) -> Option<Command> {
        let mut command = command(self.gateway.as_deref()?)?;
        command.args(["--listen", "127.0.0.1:0"]);
        match upstream {
            // Those of peers are measured in front of a child process only.
            Some(_) if self.role == Role::Peer => return None,
            Some(upstream) => {
                command.args(["--upstream", &upstream.to_string()]);
            }
            None => {}
        }
        if era == Era::Legacy && self.role != Role::Peer {
            command.arg("--legacy");
        }
        Some(command)
    }

    /// Returns the command of its gateway on stdio in front of the server at a URL, if it has one; ours is another binary.
    pub(crate) fn stdio_gateway(&self, url: &str) -> Option<Command> {
        let words = self.stdio_gateway.as_deref()?.iter();
        let words = words.map(|word| match word.to_str() {
            Some("URL") => PathBuf::from(url),
            _ => word.clone(),
        });
        command(&words.collect::<Vec<_>>())
    }

    /// Returns whether it is of the kind that this group measures: a client, or a server.
    pub(crate) fn takes_part_in(&self, group: &str) -> bool {
        match group {
            "client" => self.client.is_some(),
            "gateway" => self.gateway.is_some(),
            "stdio gateway" => self.role == Role::Ours || self.stdio_gateway.is_some(),
            _ => self.http.is_some() || self.stdio.is_some() || self.missing.is_some(),
        }
    }

    /// Returns why it cannot be measured in this group, if it lacks one of `needs`.
    pub(crate) fn lacks(&self, group: &str, needs: &[Ability]) -> Option<&str> {
        let place = match group {
            "stdio" | "start" => "stdio",
            _ => "http",
        };
        let applies = |what: &String| {
            let mut words = what.split(' ');
            words.all(|word| word == place || needs.iter().any(|need| need.words().contains(&word)))
        };
        let reason = self.lacks.iter().find(|(what, _)| applies(what));
        let reason = reason.map(|(_, reason)| reason);
        self.missing.as_ref().or(reason).map(String::as_str)
    }
}

fn command(words: &[PathBuf]) -> Option<Command> {
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments);
    Some(command)
}

/// Finds all programs; peers that were not prepared are left out with a note.
pub(crate) fn all() -> Result<Vec<Peer>, Failure> {
    let binary = std::env::current_exe()?;
    let words = |words: &[&str]| {
        let words = words.iter().map(PathBuf::from);
        Some(std::iter::once(binary.clone()).chain(words).collect())
    };
    let own =
        |role, name: &str, http: &[&str], stdio: &[&str], [client, gateway]: [&str; 2]| Peer {
            name: name.to_owned(),
            role,
            http: words(http),
            stdio: words(stdio),
            client: words(&[client]),
            gateway: words(&gateway.split(' ').collect::<Vec<_>>()),
            stdio_gateway: None,
            lacks: BTreeMap::new(),
            missing: None,
        };
    let mut peers = vec![
        own(
            Role::Limit,
            "bare",
            &["bare", "http"],
            &["bare", "stdio"],
            ["bare-client", "bare-bridge"],
        ),
        own(
            Role::Ours,
            "turnbuckle",
            &["echo-server"],
            &["echo-server", "--stdio"],
            ["echo-client", "bridge-server --share"],
        ),
    ];
    peers.extend(prepared()?);
    Ok(peers)
}

/// The file that `bench/peers/prepare.py` writes.
fn prepared() -> Result<Vec<Peer>, Failure> {
    // This binary is in `target/dist`, and the peers are in `target/bench-peers`.
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
        #[serde(default)]
        http: Option<Vec<PathBuf>>,
        #[serde(default)]
        stdio: Option<Vec<PathBuf>>,
        #[serde(default)]
        client: Option<Vec<PathBuf>>,
        #[serde(default)]
        gateway: Option<Vec<PathBuf>>,
        #[serde(default)]
        stdio_gateway: Option<Vec<PathBuf>>,
        #[serde(default)]
        lacks: BTreeMap<String, String>,
        #[serde(default)]
        missing: Option<String>,
    }
    // Maps of JSON keep their order, and so do the tables.
    let entries: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text).map_err(|error| format!("peers.json: {error}"))?;
    let peer = |(name, entry)| {
        let entry: Entry = serde_json::from_value(entry)
            .map_err(|error| format!("peers.json: {name}: {error}"))?;
        Ok(Peer {
            name,
            role: Role::Peer,
            http: entry.http,
            stdio: entry.stdio,
            client: entry.client,
            gateway: entry.gateway,
            stdio_gateway: entry.stdio_gateway,
            lacks: entry.lacks,
            missing: entry.missing,
        })
    };
    entries.into_iter().map(peer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_and_ours_are_programs_of_this_binary() {
        let peers = all().unwrap();
        let arguments = |command: Option<Command>| {
            let command = command.unwrap();
            assert_eq!(command.get_program(), std::env::current_exe().unwrap());
            let arguments = command.get_args().map(|word| word.to_string_lossy());
            arguments.collect::<Vec<_>>().join(" ")
        };

        let [limit, ours] = &peers[..2] else {
            panic!("{peers:?}")
        };

        let listen = "--listen 127.0.0.1:0";
        assert_eq!(arguments(limit.http(&[])), format!("bare http {listen}"));
        assert_eq!(arguments(limit.streams()), format!("bare streams {listen}"));
        assert_eq!(arguments(limit.stdio(&[])), "bare stdio");
        assert_eq!(arguments(limit.client(&["--url"])), "bare-client --url");
        assert_eq!(
            arguments(ours.streams()),
            format!("echo-server {listen} --more")
        );
        assert_eq!(arguments(ours.stdio(&[])), "echo-server --stdio");
        assert_eq!(arguments(ours.client(&[])), "echo-client");
    }

    #[test]
    fn reads_the_prepared_peers() {
        let text = r#"{"z":{"http":["/a","x"],"lacks":{"http legacy steps":"no progress"}},"b":{"missing":"no node"},"c":{"client":["/c"]},"d":{"gateway":["/d"]},"e":{"stdio_gateway":["/e","URL","x"]}}"#;
        let peers = parse(text).unwrap();

        let http = peers[0].http(&["--more"]).unwrap();
        let arguments: Vec<_> = http.get_args().collect();
        assert_eq!(arguments, ["x", "--listen", "127.0.0.1:0", "--more"]);
        assert!(peers[0].stdio(&[]).is_none());
        let legacy = [Ability::Legacy, Ability::Steps];
        assert_eq!(peers[0].lacks("HTTP", &legacy), Some("no progress"));
        assert_eq!(peers[0].lacks("HTTP", &[Ability::Legacy]), None);
        assert_eq!(peers[0].lacks("stdio", &legacy), None);
        assert_eq!(peers[1].lacks("HTTP", &[]), Some("no node"));
        assert!(peers[2].takes_part_in("client") && !peers[2].takes_part_in("HTTP"));
        assert!(!peers[0].takes_part_in("client"));
        assert!(peers[3].takes_part_in("gateway") && !peers[3].takes_part_in("HTTP"));
        let upstream = SocketAddr::from(([127, 0, 0, 1], 1));
        assert!(peers[3].gateway(Some(upstream), Era::Legacy).is_none());
        let gateway = peers[3].gateway(None, Era::Legacy).unwrap();
        assert_eq!(
            gateway.get_args().collect::<Vec<_>>(),
            ["--listen", "127.0.0.1:0"]
        );
        assert!(
            peers[4].takes_part_in("stdio gateway") && !peers[3].takes_part_in("stdio gateway")
        );
        let gateway = peers[4].stdio_gateway("http://a").unwrap();
        assert_eq!(gateway.get_args().collect::<Vec<_>>(), ["http://a", "x"]);
        assert!(parse("{").is_err());
    }
}
