//! Output to stderr while a command runs: progress, log messages, traffic, prompts.

use std::{
    fmt,
    io::Write as _,
    sync::{Arc, Mutex, MutexGuard},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use turnbuckle_client::{MessageDirection, TracedMessage};
use turnbuckle_protocol::types::{LogLevel, LoggingMessageParams};

use crate::{
    lock,
    output::{sanitize, style},
};

/// Prints to stderr. Cheap to clone; all clones share the progress bar.
#[derive(Clone, Default)]
pub(crate) struct Ui {
    bar: Arc<Mutex<Option<ProgressBar>>>,
}

/// The resolution of a progress bar.
const BAR_STEPS: u64 = 1000;

impl Ui {
    /// Prints text. Errors are ignored, because stderr may be closed.
    pub(crate) fn print(&self, text: &str) {
        let write = || {
            let _ = anstream::stderr().lock().write_all(text.as_bytes());
        };
        match &*self.bar() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Shows the progress of a command; visible on terminals only.
    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        let mut bar = self.bar();
        let bar = bar.get_or_insert_with(|| {
            ProgressBar::with_draw_target(Some(BAR_STEPS), ProgressDrawTarget::stderr())
        });
        bar.set_style(bar_style(total.is_some()));
        bar.set_message(sanitize::line(message));
        match total {
            Some(total) => bar.set_position(bar_position(done, total)),
            None => bar.tick(),
        }
    }

    /// Removes the progress bar.
    pub(crate) fn clear_progress(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    /// Prints a log message of the server.
    pub(crate) fn log(&self, message: &LoggingMessageParams) {
        let color = match message.level {
            LogLevel::Debug | LogLevel::Info => style::DIM,
            LogLevel::Notice | LogLevel::Warning => style::WARNING,
            _ => style::ERROR,
        };
        let level = style::styled(color, message.level.as_str());
        let logger = message
            .logger
            .as_deref()
            .map(|logger| format!(" {}", sanitize::line(logger)));
        let data = match message.data.as_str() {
            Some(text) => sanitize::line(text),
            None => sanitize::line(&message.data.to_string()),
        };
        self.print(&format!("{level}{}: {data}\n", logger.unwrap_or_default()));
    }

    /// Prints a message that was sent or received.
    pub(crate) fn traffic(&self, traffic: TracedMessage<'_>) {
        let sign = match traffic.direction {
            MessageDirection::Sent => ">",
            MessageDirection::Received => "<",
        };
        let sign = style::styled(style::DIM, sign);
        self.print(&format!("{sign} {}\n", sanitize::line(traffic.message)));
    }

    /// Prints another event of the connection.
    pub(crate) fn note(&self, sign: &str, text: &str) {
        let sign = style::styled(style::DIM, sign);
        self.print(&format!("{sign} {}\n", sanitize::line(text)));
    }

    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        lock(&self.bar)
    }
}

impl fmt::Debug for Ui {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ui").finish_non_exhaustive()
    }
}

fn bar_style(measured: bool) -> ProgressStyle {
    let template = if measured {
        "{bar:30} {percent:>3} % {wide_msg}"
    } else {
        "{spinner} {wide_msg}"
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Returns the position of the bar. A server may send a total of zero, or one less than the progress.
fn bar_position(done: f64, total: f64) -> u64 {
    let part = (done / total).clamp(0.0, 1.0);
    if part.is_finite() {
        (part * BAR_STEPS as f64) as u64
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_leaves_its_bounds() {
        assert_eq!(bar_position(1.0, 2.0), 500);
        assert_eq!(bar_position(5.0, 2.0), BAR_STEPS);
        assert_eq!(bar_position(-1.0, 2.0), 0);
        assert_eq!(bar_position(0.0, 0.0), 0);
        assert_eq!(bar_position(f64::INFINITY, f64::INFINITY), 0);
    }
}
