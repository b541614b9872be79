//! What the server logs, on stderr: warnings and errors, and with `--verbose` every request.

use std::fmt::{self, Write as _};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::context::Context;
use crate::output::{plain, style};
use crate::voice::Voice;

/// Shows from now on what is logged.
pub(super) fn begin(context: &Context) {
    let most = match context.options.verbose {
        true => Level::DEBUG,
        false => Level::WARN,
    };
    let log = Log {
        most,
        voice: context.voice.clone(),
    };
    // Whoever was first shall keep it.
    let _ = tracing::subscriber::set_global_default(log);
}

struct Log {
    most: Level,
    voice: Voice,
}

/// A line a log message. Spans say nothing that the messages in them do not.
impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = metadata.target().starts_with("turnbuckle");
        metadata.is_event() && is_ours && *metadata.level() <= self.most
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(self.most.into())
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = *event.metadata().level();
        let colour = match level {
            Level::ERROR => style::ERROR,
            Level::WARN => style::WARNING,
            _ => style::DIM,
        };
        let time = humantime::format_rfc3339_seconds(SystemTime::now());
        let level = style::paint(colour, &level.as_str().to_lowercase());
        let text = plain::line(&format!("{}{}", line.message, line.fields));
        self.voice.say(&format!("{time} {level}: {text}\n"));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
