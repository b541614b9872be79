//! Ends child processes: on exit, on request, or when the last handle is dropped.

use std::{io, process::ExitStatus, sync::Arc, time::Duration};

use tokio::{
    join,
    process::Child,
    select,
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::transport::stdio::{
    ExitReason,
    process::{ObservedProcess, ProcessShared, ProcessStage},
    process_group::{self, ProcessGroup},
};

/// Interval to check whether the group is empty after its leader has exited.
const GROUP_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum time to read stderr after the process has exited. A process that left the group may hold it open.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum time to wait for a killed process.
const KILL_WAIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Supervises a child until it has exited and its group is empty. Kills them if it is dropped before.
pub(super) struct ProcessReaper {
    pub(super) child: Child,
    pub(super) group: Arc<ProcessGroup>,
    pub(super) shared: Arc<ProcessShared>,
    pub(super) stage: watch::Sender<ProcessStage>,
    pub(super) stderr: Option<JoinHandle<()>>,
    pub(super) kill_timeout: Duration,
    /// Reports the end of the process when it is dropped.
    pub(super) _observed: Option<ObservedProcess>,
}

impl ProcessReaper {
    pub(super) async fn run(mut self) {
        let status = select! {
            status = self.child.wait() => status,
            () = self.shared.end_requested.notified() => self.end().await,
        };
        // Descendants are of no use without the child, and could hold its streams open.
        self.group.terminate();
        let exit = status.map_or(ExitReason::Unknown, process_group::exit_reason);
        let reading = self.stderr.take();
        let report_exit = async {
            drain(reading).await;
            self.stage.send_replace(ProcessStage::Exited(exit));
        };
        join!(report_exit, self.clear_group());
        self.stage.send_replace(ProcessStage::Gone(exit));
    }

    /// Waits for the child after its stdin was closed; then sends SIGTERM to its group; then SIGKILL.
    async fn end(&mut self) -> io::Result<ExitStatus> {
        if let Ok(status) = timeout(self.kill_timeout, self.child.wait()).await {
            return status;
        }
        if self.group.terminate()
            && let Ok(status) = timeout(self.kill_timeout, self.child.wait()).await
        {
            return status;
        }
        self.group.kill();
        // For systems without process groups; elsewhere it is already killed.
        let _ = self.child.start_kill();
        timeout(KILL_WAIT_TIMEOUT, self.child.wait()).await?
    }

    /// Waits until the group is empty, then kills it.
    async fn clear_group(&self) {
        let gone = async {
            while !self.group.is_gone() {
                sleep(GROUP_POLL_INTERVAL).await;
            }
        };
        if timeout(self.kill_timeout, gone).await.is_err() {
            self.group.kill();
        }
    }
}

/// Reads the rest of stderr.
async fn drain(reading: Option<JoinHandle<()>>) {
    if let Some(mut reading) = reading
        && timeout(STDERR_DRAIN_TIMEOUT, &mut reading).await.is_err()
    {
        reading.abort();
    }
}

/// A runtime that shuts down drops its tasks; no process must be left.
impl Drop for ProcessReaper {
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// Waits until the process has reached a stage; returns the exit reason.
pub(super) async fn reached(
    mut stage: watch::Receiver<ProcessStage>,
    reached: impl FnMut(&ProcessStage) -> bool,
) -> ExitReason {
    // Fails if the reaper was dropped with its runtime; then the reason is unknown.
    let _ = stage.wait_for(reached).await.is_ok();
    stage.borrow().exit()
}
