//! Logs to stderr or a file: warnings and errors, and every request with `--verbose`. `RUST_LOG` selects other lines.

use std::{
    fmt,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use tracing::{Subscriber, field::Field};
use tracing_subscriber::{
    EnvFilter,
    field::MakeExt as _,
    fmt::{
        FormatFields, MakeWriter,
        format::{Writer, debug_fn},
    },
};
use turnbuckle_server::middleware::{Operation, OperationOutcome, Timing};

use crate::{
    context::CommandContext,
    error::{CliError, Result as CliResult},
    output::sanitize,
};

/// The filter without `--verbose`.
const DEFAULT_FILTER: &str = "turnbuckle=warn";

/// The filter with `--verbose`.
const VERBOSE_FILTER: &str = "turnbuckle=debug";

/// Installs the subscriber. With a file, the lines go there instead of stderr.
pub(crate) fn init(file: Option<&Path>, context: &CommandContext) -> CliResult {
    let rust_log = context.environment.var("RUST_LOG");
    let filter = filter(rust_log, context.options.verbose).unwrap_or_else(|problem| {
        context.ui.print(&problem);
        default_filter(context.options.verbose)
    });
    // An earlier subscriber stays installed.
    let _ = match file {
        Some(path) => {
            let file = RotatedFile::open(path, MAX_FILE_BYTES).map_err(|error| {
                CliError::could_not_run(format!("cannot write the log {}: {error}", path.display()))
            })?;
            let subscriber = subscriber(filter, false, Mutex::new(file));
            tracing::subscriber::set_global_default(subscriber)
        }
        None => {
            let color = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
            tracing::subscriber::set_global_default(subscriber(filter, color, io::stderr))
        }
    };
    Ok(())
}

/// Logs each operation with its caller, outcome and duration.
pub(crate) fn operations() -> Timing {
    Timing::new(log_operation)
}

fn log_operation(operation: &Operation, outcome: OperationOutcome, elapsed: Duration) {
    let client = operation.client().map_or_else(String::new, |client| {
        format!("{} {}", client.name, client.version)
    });
    let user = operation.principal().map(|principal| &*principal.subject);
    let (method, target) = (operation.method(), operation.registered_name());
    // Without the span of the request, which repeats the same in many fields.
    tracing::debug!(
        target: "turnbuckle::serve", parent: None,
        client, user, method, target, %outcome, ?elapsed, "operation finished"
    );
}

/// The size at which a log file is renamed.
const MAX_FILE_BYTES: u64 = 10 * 1024 * 1024;

/// The number of renamed log files that are kept: `FILE.1` is the newest.
const MAX_OLD_FILES: u32 = 5;

/// A log file that is renamed when it is full.
///
/// `tracing-appender` renames by time only, so a busy server could fill the disk; `file-rotate` needs chrono and flate2.
#[derive(Debug)]
struct RotatedFile {
    path: PathBuf,
    file: File,
    size: u64,
    max_bytes: u64,
}

impl RotatedFile {
    fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let file = open_log(path)?;
        Ok(Self {
            path: path.to_owned(),
            size: file.metadata()?.len(),
            file,
            max_bytes,
        })
    }

    fn old_path(&self, number: u32) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        name.into()
    }

    /// Renames the file and the older ones; the oldest is replaced.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..MAX_OLD_FILES).rev() {
            // It may not exist yet.
            let _ = fs::rename(self.old_path(number), self.old_path(number + 1));
        }
        fs::rename(&self.path, self.old_path(1))?;
        self.file = open_log(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

impl io::Write for RotatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_full = self.size.saturating_add(bytes.len() as u64) > self.max_bytes;
        if is_full && self.size > 0 && self.rotate().is_err() {
            // For example, the folder is not writable. It is tried again after as many bytes.
            self.size = 0;
        }
        let written = self.file.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens a log file, which only the user may read: it has names of clients and users.
fn open_log(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    make_private(options.create(true).append(true)).open(path)
}

#[cfg(unix)]
fn make_private(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600)
}

/// Does nothing: the permissions of the folder apply.
#[cfg(not(unix))]
fn make_private(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    options
}

/// Returns the filter of `RUST_LOG`, or the default one; or a warning, if `RUST_LOG` is invalid.
fn filter(rust_log: Option<&str>, verbose: bool) -> Result<EnvFilter, String> {
    let Some(rust_log) = rust_log else {
        return Ok(default_filter(verbose));
    };
    EnvFilter::try_new(rust_log).map_err(|error| {
        let error = sanitize::line(&error.to_string());
        format!("warning: RUST_LOG is ignored: {error}\n")
    })
}

fn default_filter(verbose: bool) -> EnvFilter {
    EnvFilter::new(if verbose {
        VERBOSE_FILTER
    } else {
        DEFAULT_FILTER
    })
}

fn subscriber<W>(filter: EnvFilter, color: bool, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(color)
        .with_writer(writer)
        // Otherwise a closed stderr is reported to stderr, and panics.
        .log_internal_errors(false)
        .fmt_fields(sanitized_fields())
        .finish()
}

/// Formats the message and the fields. Both can contain text of peers.
fn sanitized_fields() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    debug_fn(
        |writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug| {
            let value = sanitize::line(&format!("{value:?}"));
            match field.name() {
                "message" => write!(writer, "{value}"),
                name => write!(writer, "{name}={value}"),
            }
        },
    )
    .delimited(" ")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Returns the lines of a log without their times.
    fn logged(filter: EnvFilter, color: bool, log: impl FnOnce()) -> String {
        let buffer = Arc::new(Mutex::new(Vec::new()));
        let writer = SharedBuffer(Arc::clone(&buffer));
        let subscriber = subscriber(filter, color, move || writer.clone());
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(buffer.lock().unwrap().clone()).unwrap();
        let without_time = |line: &str| line.split_once(' ').unwrap().1.trim().to_owned() + "\n";
        text.lines().map(without_time).collect()
    }

    #[derive(Clone)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn log_at_each_level() {
        tracing::warn!(target: "turnbuckle_server::http", "warned");
        tracing::debug!(target: "turnbuckle_server::http", status = 404, "debugged");
        tracing::warn!(target: "hyper", "of another crate");
    }

    #[test]
    fn warnings_of_our_crates_are_logged_by_default() {
        let text = logged(default_filter(false), false, log_at_each_level);
        insta::assert_snapshot!(text, @"WARN turnbuckle_server::http: warned");
    }

    #[test]
    fn verbose_adds_debug_events_of_our_crates() {
        let text = logged(default_filter(true), false, log_at_each_level);
        insta::assert_snapshot!(text, @r"
        WARN turnbuckle_server::http: warned
        DEBUG turnbuckle_server::http: debugged status=404
        ");
    }

    #[test]
    fn rust_log_replaces_the_default_filter() {
        let text = logged(
            filter(Some("hyper"), true).unwrap(),
            false,
            log_at_each_level,
        );
        insta::assert_snapshot!(text, @"WARN hyper: of another crate");
    }

    #[test]
    fn an_invalid_rust_log_is_a_warning() {
        let warning = filter(Some("a=\u{1b}[2J"), false).unwrap_err();
        insta::assert_snapshot!(warning, @r#"warning: RUST_LOG is ignored: error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5"#);
    }

    #[test]
    fn text_of_peers_is_escaped_in_messages_fields_and_spans() {
        let hostile = "a\u{1b}[2J\nWARN forged\u{202e}\u{9b}";
        let text = logged(default_filter(true), false, || {
            let span = tracing::info_span!(target: "turnbuckle", "request", method = %hostile);
            let _entered = span.enter();
            tracing::warn!(target: "turnbuckle", error = %hostile, name = hostile, "{hostile}");
        });
        insta::assert_snapshot!(text, @r#"WARN request{method=a\u{1b}[2J\nWARN forged\u{202e}\u{9b}}: turnbuckle: a\u{1b}[2J\nWARN forged\u{202e}\u{9b} error=a\u{1b}[2J\nWARN forged\u{202e}\u{9b} name="a\u{1b}[2J\nWARN forged\u{202e}\u{9b}""#);
    }

    #[test]
    fn a_full_log_file_is_renamed_and_a_bounded_number_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.log");
        let mut log = RotatedFile::open(&path, 10).unwrap();

        for number in 0..20 {
            io::Write::write_all(&mut log, format!("line {number:02}\n").as_bytes()).unwrap();
        }

        let mut files: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        let texts: Vec<_> = files
            .iter()
            .map(|file| fs::read_to_string(file).unwrap())
            .collect();
        assert_eq!(
            texts,
            [
                "line 19\n",
                "line 18\n",
                "line 17\n",
                "line 16\n",
                "line 15\n",
                "line 14\n"
            ]
        );
        assert_eq!(files[0], path);
    }

    #[test]
    fn a_log_file_is_continued_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.log");
        for text in ["one\n", "two\n", "three\n"] {
            let mut log = RotatedFile::open(&path, 8).unwrap();
            io::Write::write_all(&mut log, text.as_bytes()).unwrap();
        }

        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        let old = folder.path().join("serve.log.1");
        assert_eq!(fs::read_to_string(old).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_log_that_cannot_be_renamed_is_still_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.log");
        for number in 1..=MAX_OLD_FILES {
            // A folder with a file in it cannot be replaced.
            let blocking = folder.path().join(format!("serve.log.{number}/file"));
            fs::create_dir(blocking.parent().unwrap()).unwrap();
            fs::write(blocking, "").unwrap();
        }
        let mut log = RotatedFile::open(&path, 4).unwrap();

        for text in ["one\n", "two\n"] {
            io::Write::write_all(&mut log, text.as_bytes()).unwrap();
        }

        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn colors_are_only_used_on_request() {
        let colored = logged(default_filter(false), true, log_at_each_level);
        let plain = logged(default_filter(false), false, log_at_each_level);

        assert!(colored.contains("\u{1b}[") && !plain.contains('\u{1b}'));
    }
}
