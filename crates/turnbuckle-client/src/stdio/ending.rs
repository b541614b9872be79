//! The end of a child process: by itself, by request, or because nobody holds it any more.

use std::{io, process::ExitStatus, sync::Arc, time::Duration};

use tokio::{
    join,
    process::Child,
    select,
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    Exit,
    group::{self, Group},
    observer::Observed,
    process::{Shared, Stage},
};

/// How often a group whose leader is gone is asked whether anyone is left.
const GLANCE: Duration = Duration::from_millis(20);
/// How long standard error may still be read once the process is gone. Whoever left the group may hold it open.
const DRAIN: Duration = Duration::from_millis(500);
/// How long the operating system may take to end what was killed.
const KILLED: Duration = Duration::from_secs(5);

/// Who stays with a child until it and all of its group are gone. If dropped before, it kills them.
pub(super) struct Keeper {
    pub(super) child: Child,
    pub(super) group: Arc<Group>,
    pub(super) shared: Arc<Shared>,
    pub(super) stage: watch::Sender<Stage>,
    pub(super) stderr: Option<JoinHandle<()>>,
    pub(super) grace: Duration,
    /// Reports the end, which dropping this is.
    pub(super) _observed: Option<Observed>,
}

impl Keeper {
    pub(super) async fn stay(mut self) {
        let status = select! {
            status = self.child.wait() => status,
            () = self.shared.asked.notified() => self.end().await,
        };
        // What the child leaves behind serves nobody, and could hold its streams open for ever.
        self.group.terminate();
        let exit = status.map_or(Exit::Unknown, group::exit);
        let reading = self.stderr.take();
        let told = async {
            drain(reading).await;
            self.stage.send_replace(Stage::Exited(exit));
        };
        join!(told, self.clear());
        self.stage.send_replace(Stage::Gone(exit));
    }

    /// Waits for the child, whose input was closed; then asks its group to end; then kills it.
    async fn end(&mut self) -> io::Result<ExitStatus> {
        if let Ok(status) = timeout(self.grace, self.child.wait()).await {
            return status;
        }
        if self.group.terminate()
            && let Ok(status) = timeout(self.grace, self.child.wait()).await
        {
            return status;
        }
        self.group.kill();
        // For systems without groups; elsewhere it is as good as gone.
        let _ = self.child.start_kill();
        timeout(KILLED, self.child.wait()).await?
    }

    /// Waits for those of the group that outlived the child, then kills them.
    async fn clear(&self) {
        let gone = async {
            while !self.group.is_gone() {
                sleep(GLANCE).await;
            }
        };
        if timeout(self.grace, gone).await.is_err() {
            self.group.kill();
        }
    }
}

/// Reads the rest of standard error.
async fn drain(reading: Option<JoinHandle<()>>) {
    if let Some(mut reading) = reading
        && timeout(DRAIN, &mut reading).await.is_err()
    {
        reading.abort();
    }
}

/// A runtime that ends takes its tasks with it; nobody stays behind.
impl Drop for Keeper {
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// Waits until the process has come as far as `reached` says; returns how it ended.
pub(super) async fn reached(
    mut stage: watch::Receiver<Stage>,
    reached: impl FnMut(&Stage) -> bool,
) -> Exit {
    // Fails if the keeper went with its runtime; then nobody saw the end.
    let _ = stage.wait_for(reached).await.is_ok();
    stage.borrow().exit()
}
