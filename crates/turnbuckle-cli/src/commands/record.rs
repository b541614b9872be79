//! `turnbuckle record`.

use std::path::{Path, PathBuf};

use regex::Regex;
use turnbuckle_protocol::recording::{RecordingLimits, RecordingWriter, RedactionRules};
use turnbuckle_text::url::HttpUrl;

use crate::{
    context::CommandContext,
    error::{CliError, Result, warning},
    listener::ListenAddress,
    recorder::{
        HostCheck, HttpRelay, ProgramExit, RecordingFile, RecordingSink, bind, relay_program,
    },
};

/// The default port of the relay.
const DEFAULT_PORT: u16 = 8322;

/// Record the messages between a client and a server
///
/// Put `turnbuckle record --` before the command of a server in the configuration of a client: the program runs as before,
/// and every message, its time and the stderr of the program are written to a file. Bytes, signals and the exit code are
/// passed on unchanged.
///
/// For a server on HTTP, the command listens, and passes requests on to URL. The client uses the printed address.
///
/// Credentials in headers, and parameters of URLs that contain tokens, are never written. Arguments and results of tools
/// are: hide secrets in them with --redact. Only you can read the file.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle record [OPTIONS] -- <COMMAND>...\n       turnbuckle record [OPTIONS] <URL>"
)]
pub(crate) struct RecordCommand {
    /// Relay to the server at this URL
    #[arg(value_name = "URL", conflicts_with = "command")]
    url: Option<String>,

    /// Write to this file, or to a new one in this directory
    ///
    /// By default, a file in the current directory that is named after the server and the time. If the file exists, a number
    /// is added to the name.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Hide this key, /pointer or re:PATTERN; repeatable
    ///
    /// A key hides members of messages and headers with this name; a JSON pointer such as /params/arguments/pin one value of
    /// each message; a regular expression every text that it matches.
    #[arg(long, value_name = "RULE")]
    redact: Vec<String>,

    /// Listen on this address [default: 127.0.0.1:8322]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address, conflicts_with = "command")]
    listen: Option<ListenAddress>,

    /// Accept requests for this host name or address; repeatable
    #[arg(long = "allow-host", value_name = "HOST", conflicts_with = "command")]
    hosts: Vec<String>,

    /// Allow other machines to connect
    #[arg(long, conflicts_with = "command")]
    dangerously_allow_unauthenticated: bool,

    /// Start this program as the server, instead of URL
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn parse_listen_address(text: &str) -> std::result::Result<ListenAddress, String> {
    ListenAddress::parse(text, DEFAULT_PORT)
}

impl RecordCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let rules = redaction_rules(&self.redact)?;
        let writer = RecordingWriter::new(rules, RecordingLimits::default());
        match (&self.url, self.command.first()) {
            (Some(url), _) => self.relay_http(url, writer, context).await,
            (None, Some(program)) => self.relay_stdio(program, writer, context).await,
            (None, None) => Err(CliError::could_not_run("no server to record")
                .hint("give a URL, or a program after `--`")),
        }
    }

    async fn relay_stdio(
        &self,
        program: &str,
        writer: RecordingWriter,
        context: &CommandContext,
    ) -> Result {
        let name = Path::new(program).file_stem().unwrap_or_default();
        let name = name.to_string_lossy();
        let file = RecordingFile::create(self.output.as_deref(), &name, "stdio", context)?;
        let sink = RecordingSink::start(file.file, file.header, writer)?;
        let exit = relay_program(&self.command, &sink, context).await;
        report_failure(&sink, &file.path, context);
        match exit? {
            ProgramExit::Code(0) => Ok(()),
            ProgramExit::Code(code) => Err(CliError::program_exited(code)),
            ProgramExit::Signal(signal) => Err(end_by_signal(signal)),
        }
    }

    async fn relay_http(
        &self,
        url: &str,
        writer: RecordingWriter,
        context: &CommandContext,
    ) -> Result {
        let parsed = HttpUrl::parse(url);
        let parsed = parsed.map_err(|error| CliError::could_not_run(format!("{url}: {error}")))?;
        let loopback = ListenAddress::loopback(DEFAULT_PORT);
        let address = self.listen.as_ref().unwrap_or(&loopback);
        let ListenAddress::Tcp(address) = address else {
            return Err(CliError::could_not_run(
                "a relay cannot listen on a Unix socket",
            ));
        };
        let is_open = self.dangerously_allow_unauthenticated;
        if !address.ip().is_loopback() && !is_open {
            return Err(CliError::could_not_run(format!(
                "{address} can be reached by other machines"
            ))
            .hint("use 127.0.0.1, or `--dangerously-allow-unauthenticated`"));
        }
        let listener = bind(*address).await?;
        let bound = listener.local_addr()?;
        let hosts = HostCheck::new(bound, &self.hosts)
            .map_err(|error| CliError::could_not_run(format!("`--allow-host`: {error}")))?;
        let name = parsed.authority.host.to_string();
        let file = RecordingFile::create(self.output.as_deref(), &name, "http", context)?;
        let sink = RecordingSink::start(file.file, file.header, writer)?;
        let relay = HttpRelay::new(url, hosts, sink.clone())?;
        let path = format!("{}{}", parsed.path, parsed.query);
        context.ui.print(&format!(
            "relaying http://{bound}{path} to {}\nrecording to {}\n",
            parsed.origin,
            file.path.display()
        ));
        let done = relay.serve(listener).await;
        report_failure(&sink, &file.path, context);
        done
    }
}

/// Reads the rules of the command line.
fn redaction_rules(texts: &[String]) -> Result<RedactionRules> {
    let mut rules = RedactionRules::new();
    for text in texts {
        rules = if let Some(pattern) = text.strip_prefix("re:") {
            let pattern = Regex::new(pattern)
                .map_err(|error| CliError::could_not_run(format!("`--redact {text}`: {error}")))?;
            rules.pattern(move |text| pattern.is_match(text))
        } else if text.starts_with('/') {
            rules
                .pointer(text)
                .map_err(|error| CliError::could_not_run(format!("`--redact {text}`: {error}")))?
        } else {
            rules.key(text)
        };
    }
    Ok(rules)
}

/// Waits for the recording to be written. A failure does not change the outcome of the relay.
fn report_failure(sink: &RecordingSink, path: &Path, context: &CommandContext) {
    if let Err(error) = sink.finish() {
        let message = format!("{} is incomplete: {error}", path.display());
        context.ui.print(&warning(&message));
    }
}

/// Ends this process by the signal that ended the program. Returns only if that fails.
#[cfg(unix)]
fn end_by_signal(signal: i32) -> CliError {
    crate::supervisor::end_by_signal(signal);
    // As shells report it.
    CliError::program_exited(128 + signal)
}

#[cfg(not(unix))]
fn end_by_signal(signal: i32) -> CliError {
    CliError::program_exited(128 + signal)
}
