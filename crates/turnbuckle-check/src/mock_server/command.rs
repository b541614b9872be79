//! A client that is a program, and the process that connects a stdio client to the mock server.

use std::{fmt, io, sync::Arc};

use tokio::{
    io::{AsyncWriteExt, copy, stdin, stdout},
    net::TcpStream,
};
use turnbuckle_client::stdio::{ProcessObserver, ServerCommand};
use turnbuckle_text::shell;

use super::target::TransportKind;

const URL: &str = "{url}";
const SERVER: &str = "{server}";

/// A command line with a placeholder for the server.
#[derive(Clone)]
pub(crate) struct ClientCommand {
    words: Vec<String>,
    bridge: Vec<String>,
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
    pub(crate) fn new(words: Vec<String>, bridge: Vec<String>) -> Result<Self, ClientCommandError> {
        if words.is_empty() {
            return Err(ClientCommandError::Empty);
        }
        let has = |placeholder| words.iter().any(|word| word.contains(placeholder));
        let transport_kind = match (has(URL), has(SERVER)) {
            (true, false) => TransportKind::Http,
            (false, true) => TransportKind::Ndjson,
            (false, false) => return Err(ClientCommandError::MissingPlaceholder),
            (true, true) => return Err(ClientCommandError::BothPlaceholders),
        };
        Ok(Self {
            words,
            bridge,
            transport_kind,
            observer: None,
        })
    }

    pub(crate) fn transport_kind(&self) -> TransportKind {
        self.transport_kind
    }

    /// Returns the display name.
    pub(crate) fn label(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| shell::quote(word)).collect();
        words.join(" ")
    }

    /// Returns the process to start for a server at a URL, or at the address for the bridge
    /// command.
    pub(crate) fn child(&self, address: &str) -> ServerCommand {
        let words = self.expand(address);
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

    fn expand(&self, address: &str) -> Vec<String> {
        let server: Vec<_> = self.bridge.iter().map(String::as_str).collect();
        let server = [&server[..], &[address]].concat();
        let line: Vec<_> = server.iter().map(|word| shell::quote(word)).collect();
        let line = line.join(" ");
        let mut words = Vec::new();
        for word in &self.words {
            if word == SERVER {
                words.extend(server.iter().map(|&word| word.to_owned()));
            } else {
                words.push(word.replace(URL, address).replace(SERVER, &line));
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
    let input_task = async move {
        let copied = copy(&mut stdin(), &mut to_checker).await;
        // Forward the end of the input to the checker.
        let _ = to_checker.shutdown().await;
        copied
    };
    let input_task = tokio::spawn(input_task);
    let mut out = stdout();
    copy(&mut from_checker, &mut out).await?;
    out.flush().await?;
    // A read of standard input cannot be cancelled, and its data is not needed.
    input_task.abort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(words: &[&str], address: &str) -> Vec<String> {
        let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let bridge = own(&["/opt/my tools/turnbuckle", "check", "--play"]);
        ClientCommand::new(own(words), bridge)
            .unwrap()
            .expand(address)
    }

    #[test]
    fn url_placeholder_is_replaced() {
        let words = expand(&["client", "--at={url}"], "http://127.0.0.1:1/mcp");

        assert_eq!(words, ["client", "--at=http://127.0.0.1:1/mcp"]);
    }

    #[test]
    fn server_placeholder_expands_to_several_words() {
        let words = expand(&["client", "--", "{server}"], "127.0.0.1:1");

        assert_eq!(
            words[2..],
            ["/opt/my tools/turnbuckle", "check", "--play", "127.0.0.1:1"]
        );
    }

    #[test]
    fn server_command_within_a_word_is_quoted() {
        let words = expand(&["sh", "-c", "client \"{server}\""], "127.0.0.1:1");

        assert_eq!(
            words[2],
            "client \"'/opt/my tools/turnbuckle' check --play 127.0.0.1:1\""
        );
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn client_command_inherits_all_environment_variables() {
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
    fn command_needs_exactly_one_placeholder() {
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
