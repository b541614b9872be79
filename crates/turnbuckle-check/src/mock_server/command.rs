//! A client that is a program, and the process that connects a stdio client to the mock server.

use std::{borrow::Cow, fmt, io, sync::Arc};

use tokio::{
    io::{AsyncWriteExt, copy, stdin, stdout},
    net::TcpStream,
};
use turnbuckle_client::stdio::{ProcessObserver, ServerCommand};

use super::target::TransportKind;

const URL: &str = "{url}";
const SERVER: &str = "{server}";

/// A command line with a placeholder for the server.
#[derive(Clone)]
pub(crate) struct ClientCommand {
    words: Vec<String>,
    play: Vec<String>,
    transport_kind: TransportKind,
    pub(crate) observer: Option<Arc<dyn ProcessObserver>>,
}

/// A command line cannot be used to launch a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientCommandError {
    /// The command is empty.
    #[error("the command is empty")]
    Empty,
    /// The command lacks a placeholder for the server.
    #[error(
        "the command lacks a placeholder: `{{url}}` for the URL of the server or `{{server}}` for its command"
    )]
    MissingPlaceholder,
    /// The command has both placeholders.
    #[error(
        "the command has both `{{url}}` and `{{server}}`: a client is checked on one transport at a time"
    )]
    BothPlaceholders,
}

impl ClientCommand {
    pub(crate) fn new(words: Vec<String>, play: Vec<String>) -> Result<Self, ClientCommandError> {
        if words.is_empty() {
            return Err(ClientCommandError::Empty);
        }
        let has = |place| words.iter().any(|word| word.contains(place));
        let transport_kind = match (has(URL), has(SERVER)) {
            (true, false) => TransportKind::Http,
            (false, true) => TransportKind::Ndjson,
            (false, false) => return Err(ClientCommandError::MissingPlaceholder),
            (true, true) => return Err(ClientCommandError::BothPlaceholders),
        };
        Ok(Self {
            words,
            play,
            transport_kind,
            observer: None,
        })
    }

    pub(crate) fn transport_kind(&self) -> TransportKind {
        self.transport_kind
    }

    /// Returns the display name.
    pub(crate) fn label(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }

    /// Returns the process to start for a server at a URL, or at the address for the bridge
    /// command.
    pub(crate) fn child(&self, address: &str) -> ServerCommand {
        let words = self.filled(address);
        let (program, rest) = words
            .split_first()
            .expect("the command is not empty and every word expands to at least one");
        // The user's own command may need any environment variable.
        let child = ServerCommand::new(program).args(rest).inherit_all_env();
        match &self.observer {
            Some(observer) => child.observer(Arc::clone(observer)),
            None => child,
        }
    }

    fn filled(&self, address: &str) -> Vec<String> {
        let server: Vec<_> = self.play.iter().map(String::as_str).collect();
        let server = [&server[..], &[address]].concat();
        let line: Vec<_> = server.iter().map(|word| quoted(word)).collect();
        let line = line.join(" ");
        let mut words = Vec::new();
        for word in &self.words {
            if word == SERVER {
                words.extend(server.iter().map(|&word| word.to_owned()))
            } else {
                words.push(word.replace(URL, address).replace(SERVER, &line))
            }
        }
        words
    }
}

impl fmt::Debug for ClientCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Command").field(&self.words).finish()
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_{}-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''")).into()
    }
}

/// Copies standard input to an address and the response to standard output, until either side ends.
///
/// # Errors
///
/// If the connection fails.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O enabled.
pub async fn stdio_bridge(address: &str) -> io::Result<()> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut from_checker, mut to_checker) = stream.into_split();
    let there = async move {
        let copied = copy(&mut stdin(), &mut to_checker).await;
        // Forward the end of the input to the checker.
        let _ = to_checker.shutdown().await;
        copied
    };
    let there = tokio::spawn(there);
    let mut out = stdout();
    copy(&mut from_checker, &mut out).await?;
    out.flush().await?;
    // A read of standard input cannot be cancelled, and its data is not needed.
    there.abort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(words: &[&str], address: &str) -> Vec<String> {
        let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let play = own(&["/opt/my tools/turnbuckle", "check", "--play"]);
        ClientCommand::new(own(words), play)
            .unwrap()
            .filled(address)
    }

    #[test]
    fn the_address_stands_where_the_url_is_wanted() {
        let words = filled(&["client", "--at={url}"], "http://127.0.0.1:1/mcp");

        assert_eq!(words, ["client", "--at=http://127.0.0.1:1/mcp"]);
    }

    #[test]
    fn a_server_of_its_own_is_several_words() {
        let words = filled(&["client", "--", "{server}"], "127.0.0.1:1");

        assert_eq!(
            words[2..],
            ["/opt/my tools/turnbuckle", "check", "--play", "127.0.0.1:1"]
        );
    }

    #[test]
    fn a_server_within_a_word_is_quoted_for_a_shell() {
        let words = filled(&["sh", "-c", "client \"{server}\""], "127.0.0.1:1");

        assert_eq!(
            words[2],
            "client \"'/opt/my tools/turnbuckle' check --play 127.0.0.1:1\""
        );
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_users_command_sees_all_variables() {
        use tokio::io::AsyncReadExt as _;
        let words = ["sh", "-c", "echo ${CARGO_MANIFEST_DIR:+seen} {url}"];
        let words = words.map(str::to_owned).to_vec();
        let command = ClientCommand::new(words, Vec::new()).unwrap();

        let mut started = command.child("URL").start().unwrap();
        let mut message = String::new();
        started.output.read_to_string(&mut message).await.unwrap();

        assert_eq!(message, "seen URL\n");
    }

    #[test]
    fn a_command_names_the_server_once() {
        let new = |words: &[&str]| {
            let words = words.iter().map(|&word| word.to_owned()).collect();
            ClientCommand::new(words, Vec::new()).map(drop)
        };

        assert_eq!(new(&[]), Err(ClientCommandError::Empty));
        assert_eq!(
            new(&["client"]),
            Err(ClientCommandError::MissingPlaceholder)
        );
        assert_eq!(
            new(&["{url}", "{server}"]),
            Err(ClientCommandError::BothPlaceholders)
        );
    }
}
