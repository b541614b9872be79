//! Logs to stderr: warnings and errors, and every request with `--verbose`.

use std::{
    fmt::{self, Write as _},
    time::SystemTime,
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::{
    context::CommandContext,
    output::{sanitize, style},
    ui::Ui,
};

/// Installs the subscriber.
pub(super) fn init(context: &CommandContext) {
    let max_level = if context.options.verbose {
        Level::DEBUG
    } else {
        Level::WARN
    };
    let subscriber = StderrSubscriber {
        max_level,
        ui: context.ui.clone(),
    };
    // An earlier subscriber stays installed.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

struct StderrSubscriber {
    max_level: Level,
    ui: Ui,
}

/// Prints one line per event. Spans are ignored, because their events have all the information.
impl Subscriber for StderrSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = metadata.target().starts_with("turnbuckle");
        metadata.is_event() && is_ours && *metadata.level() <= self.max_level
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(self.max_level.into())
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = EventLine::default();
        event.record(&mut line);
        let level = *event.metadata().level();
        let color = match level {
            Level::ERROR => style::ERROR,
            Level::WARN => style::WARNING,
            _ => style::DIM,
        };
        let time = humantime::format_rfc3339_seconds(SystemTime::now());
        let level = style::styled(color, &level.as_str().to_lowercase());
        let text = sanitize::line(&format!("{}{}", line.message, line.fields));
        self.ui.print(&format!("{time} {level}: {text}\n"));
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
struct EventLine {
    message: String,
    fields: String,
}

impl Visit for EventLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
