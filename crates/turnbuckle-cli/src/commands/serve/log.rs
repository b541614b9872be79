//! Logs to stderr: warnings and errors, and every request with `--verbose`. `RUST_LOG` selects other lines.

use std::{fmt, io};

use tracing::{Subscriber, field::Field};
use tracing_subscriber::{
    EnvFilter,
    field::MakeExt as _,
    fmt::{
        FormatFields, MakeWriter,
        format::{Writer, debug_fn},
    },
};

use crate::{context::CommandContext, output::sanitize};

/// The filter without `--verbose`.
const DEFAULT_FILTER: &str = "turnbuckle=warn";

/// The filter with `--verbose`.
const VERBOSE_FILTER: &str = "turnbuckle=debug";

/// Installs the subscriber.
pub(super) fn init(context: &CommandContext) {
    let rust_log = context.environment.var("RUST_LOG");
    let filter = filter(rust_log, context.options.verbose).unwrap_or_else(|problem| {
        context.ui.print(&problem);
        default_filter(context.options.verbose)
    });
    let color = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let subscriber = subscriber(filter, color, io::stderr);
    // An earlier subscriber stays installed.
    let _ = tracing::subscriber::set_global_default(subscriber);
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
    fn colors_are_only_used_on_request() {
        let colored = logged(default_filter(false), true, log_at_each_level);
        let plain = logged(default_filter(false), false, log_at_each_level);

        assert!(colored.contains("\u{1b}[") && !plain.contains('\u{1b}'));
    }
}
