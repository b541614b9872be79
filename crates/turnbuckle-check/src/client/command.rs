//! A client that is a program: the words that start it, and where the server's place is among them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use turnbuckle_client::stdio::{Child, ProcessObserver};

use super::target::Carrier;

const URL: &str = "{url}";
const SERVER: &str = "{server}";

/// The words of a command line with a place for the server.
#[derive(Clone)]
pub(crate) struct Command {
    words: Vec<String>,
    play: Vec<String>,
    carrier: Carrier,
    pub(crate) observer: Option<Arc<dyn ProcessObserver>>,
}

/// Why words are no command for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadCommand {
    /// There is no program.
    #[error("the command has no program")]
    Empty,
    /// The client would not find the server.
    #[error(
        "the command says nowhere where the server is: `{{url}}` stands for its address, `{{server}}` for its command"
    )]
    NoServer,
    /// The client would get two servers.
    #[error(
        "the command has both `{{url}}` and `{{server}}`; a client is checked on one transport at a time"
    )]
    TwoServers,
}

impl Command {
    pub(crate) fn new(words: Vec<String>, play: Vec<String>) -> Result<Self, BadCommand> {
        if words.is_empty() {
            return Err(BadCommand::Empty);
        }
        let has = |place| words.iter().any(|word| word.contains(place));
        let carrier = match (has(URL), has(SERVER)) {
            (true, false) => Carrier::Http,
            (false, true) => Carrier::Lines,
            (false, false) => return Err(BadCommand::NoServer),
            (true, true) => return Err(BadCommand::TwoServers),
        };
        Ok(Self {
            words,
            play,
            carrier,
            observer: None,
        })
    }

    pub(crate) fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// Returns the name by which the user knows it.
    pub(crate) fn label(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }

    /// Prepares the program for a server at an address: a URL, or what the command that plays takes.
    pub(crate) fn child(&self, address: &str) -> Child {
        let words = self.filled(address);
        let (program, rest) = words
            .split_first()
            .expect("a command has a word, and each becomes at least one");
        // The command is the user's own, and may need any variable of theirs.
        let child = Child::new(program).args(rest).inherit_all_env();
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
            match word == SERVER {
                true => words.extend(server.iter().map(|&word| word.to_owned())),
                false => words.push(word.replace(URL, address).replace(SERVER, &line)),
            }
        }
        words
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Command").field(&self.words).finish()
    }
}

/// Writes a word so that a shell reads it as one.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_{}-".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(words: &[&str], address: &str) -> Vec<String> {
        let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let play = own(&["/opt/my tools/turnbuckle", "check", "--play"]);
        Command::new(own(words), play).unwrap().filled(address)
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
        let command = Command::new(words, Vec::new()).unwrap();

        let mut started = command.child("URL").start().unwrap();
        let mut said = String::new();
        started.output.read_to_string(&mut said).await.unwrap();

        assert_eq!(said, "seen URL\n");
    }

    #[test]
    fn a_command_names_the_server_once() {
        let new = |words: &[&str]| {
            let words = words.iter().map(|&word| word.to_owned()).collect();
            Command::new(words, Vec::new()).map(drop)
        };

        assert_eq!(new(&[]), Err(BadCommand::Empty));
        assert_eq!(new(&["client"]), Err(BadCommand::NoServer));
        assert_eq!(new(&["{url}", "{server}"]), Err(BadCommand::TwoServers));
    }
}
