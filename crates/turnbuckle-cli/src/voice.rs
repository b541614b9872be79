//! Everything that goes to stderr while a server is asked: progress, log messages, traffic, questions.

use std::fmt;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use turnbuckle_check as check;
use turnbuckle_client::{Direction, Progress, Traffic};
use turnbuckle_protocol::types::{LogLevel, LoggingMessageParams};

use crate::output::{plain, style};

/// Speaks on stderr. Cheap to clone; all clones take turns.
#[derive(Clone, Default)]
pub(crate) struct Voice {
    bar: Arc<Mutex<Option<ProgressBar>>>,
}

/// How finely a bar is drawn.
const STEPS: u64 = 1000;

impl Voice {
    /// Writes text. Nobody may be listening, which stops nothing.
    pub(crate) fn say(&self, text: &str) {
        let write = || {
            let _ = anstream::stderr().lock().write_all(text.as_bytes());
        };
        match &*self.bar() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Shows how far a call has come; only a terminal sees it.
    pub(crate) fn progress(&self, progress: &Progress) {
        let mut bar = self.bar();
        let bar = bar.get_or_insert_with(|| {
            ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr())
        });
        bar.set_style(bar_style(progress.total.is_some()));
        let told = progress.message.as_deref().map(plain::line);
        bar.set_message(told.unwrap_or_default());
        match progress.total {
            Some(total) => bar.set_position(steps(progress.progress, total)),
            None => bar.tick(),
        }
    }

    /// Shows how far a check has come; only a terminal sees it.
    pub(crate) fn checking(&self, progress: check::Progress) {
        let mut bar = self.bar();
        let bar = bar.get_or_insert_with(|| {
            ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr())
        });
        bar.set_style(bar_style(true));
        bar.set_message(format!("{} {}", progress.revision, progress.rule));
        bar.set_position(steps(progress.done as f64, progress.total as f64));
    }

    /// Takes the bar away.
    pub(crate) fn quiet(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    /// Shows a log message of the server's.
    pub(crate) fn log(&self, message: &LoggingMessageParams) {
        let colour = match message.level {
            LogLevel::Debug | LogLevel::Info => style::DIM,
            LogLevel::Notice | LogLevel::Warning => style::WARNING,
            _ => style::ERROR,
        };
        let level = style::paint(colour, message.level.as_str());
        let logger = message
            .logger
            .as_deref()
            .map(|logger| format!(" {}", plain::line(logger)));
        let data = match message.data.as_str() {
            Some(text) => plain::line(text),
            None => plain::line(&message.data.to_string()),
        };
        self.say(&format!("{level}{}: {data}\n", logger.unwrap_or_default()));
    }

    /// Shows a message on its way.
    pub(crate) fn traffic(&self, traffic: Traffic<'_>) {
        let sign = match traffic.direction {
            Direction::Sent => ">",
            Direction::Received => "<",
        };
        let sign = style::paint(style::DIM, sign);
        self.say(&format!("{sign} {}\n", plain::line(traffic.message)));
    }

    /// Shows something else that happens on the way.
    pub(crate) fn aside(&self, sign: &str, text: &str) {
        let sign = style::paint(style::DIM, sign);
        self.say(&format!("{sign} {}\n", plain::line(text)));
    }

    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Voice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Voice").finish_non_exhaustive()
    }
}

fn bar_style(measured: bool) -> ProgressStyle {
    let template = match measured {
        true => "{bar:30} {percent:>3} % {wide_msg}",
        false => "{spinner} {wide_msg}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A total of zero, less than what is done, or no number at all is a server's mistake, not ours.
fn steps(done: f64, total: f64) -> u64 {
    let part = (done / total).clamp(0.0, 1.0);
    match part.is_finite() {
        true => (part * STEPS as f64) as u64,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_leaves_its_bounds() {
        assert_eq!(steps(1.0, 2.0), 500);
        assert_eq!(steps(5.0, 2.0), STEPS);
        assert_eq!(steps(-1.0, 2.0), 0);
        assert_eq!(steps(0.0, 0.0), 0);
        assert_eq!(steps(f64::INFINITY, f64::INFINITY), 0);
    }
}
