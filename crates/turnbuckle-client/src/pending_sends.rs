//! Messages that are sent in the background, so that closing can wait for them.
//!
//! A call that is dropped cannot wait until its cancellation is sent. The code that closes the connection right after it can,
//! and has to: what is not sent before the end of a session never reaches its request.

use std::time::Duration;

use tokio::{runtime::Handle, sync::watch, time::timeout};

/// Counts the messages that are being sent in the background.
#[derive(Debug, Default)]
pub(crate) struct PendingSends(watch::Sender<usize>);

/// One message that is being sent. Dropping it ends the count, also when the runtime drops the task.
struct PendingSend(watch::Sender<usize>);

impl PendingSends {
    /// Runs `send` in the background. Without a runtime it is dropped: then the connection is gone as well.
    pub(crate) fn spawn(&self, send: impl Future<Output = ()> + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        self.0.send_modify(|count| *count += 1);
        let pending = PendingSend(self.0.clone());
        runtime.spawn(async move {
            let _pending = pending;
            send.await;
        });
    }

    /// Waits until everything is sent, but no longer than `limit`.
    pub(crate) async fn wait(&self, limit: Duration) {
        let mut count = self.0.subscribe();
        let _ = timeout(limit, count.wait_for(|count| *count == 0)).await;
    }
}

impl Drop for PendingSend {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_last_send_or_at_the_limit() {
        let sends = PendingSends::default();
        let begun = Instant::now();

        sends.wait(Duration::from_secs(10)).await;
        assert_eq!(begun.elapsed().as_secs(), 0);

        sends.spawn(sleep(Duration::from_secs(1)));
        sends.spawn(sleep(Duration::from_secs(3)));
        sends.wait(Duration::from_secs(10)).await;
        assert_eq!(begun.elapsed().as_secs(), 3);

        sends.spawn(pending());
        sends.wait(Duration::from_secs(10)).await;
        assert_eq!(begun.elapsed().as_secs(), 13);
    }
}
