//! Options about what callers may use and what is recorded: tool lock, audit log and metrics.

mod lock_file;
mod metrics;

use std::{
    fs::OpenOptions,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use turnbuckle_gateway::{Gateway, RunningGateway, Upstream};
use turnbuckle_server::middleware::JsonLines;

use self::{lock_file::ToolLockFile, metrics::MetricsListener};
use super::{server_files, upstreams::BridgedServer};
use crate::{
    context::CommandContext,
    error::{CliError, Result},
};

/// The options.
#[derive(Debug, clap::Args)]
pub(super) struct PolicyOptions {
    /// Use only definitions that are in this tool lock
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,

    /// Write the definitions of the servers to the tool lock
    #[arg(long)]
    lock_update: bool,

    /// Append a record of every request to this file
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,

    /// Serve metrics for Prometheus on this loopback address
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
}

/// The opened files and the listener.
#[derive(Debug, Default)]
pub(super) struct PolicyFiles {
    lock: Option<ToolLockFile>,
    /// Whether the command line names the tool lock, so that the configuration file does not matter.
    is_lock_given: bool,
    /// The tool lock of the configuration file at the start.
    configured_lock: Option<PathBuf>,
    audit: Option<JsonLines>,
    metrics: Option<MetricsListener>,
}

impl PolicyOptions {
    /// Opens everything before the bridge serves anything.
    pub(super) async fn open(&self, context: &CommandContext) -> Result<PolicyFiles> {
        let folder = &context.environment.cwd;
        let configured_lock = server_files::lock_path(context)?;
        let given = self.lock.as_ref().map(|path| folder.join(path));
        let lock = given.or(configured_lock.clone());
        if lock.is_none() && self.lock_update {
            return Err(CliError::could_not_run("--lock-update needs a tool lock")
                .hint("name it with --lock FILE, or `lock` in `[policy]` of bridge.toml"));
        }
        Ok(PolicyFiles {
            lock: match lock {
                Some(path) => Some(ToolLockFile::open(path, self.lock_update)?),
                None => None,
            },
            is_lock_given: self.lock.is_some(),
            configured_lock,
            audit: match &self.audit {
                Some(path) => Some(open_audit_log(&folder.join(path))?),
                None => None,
            },
            metrics: match self.metrics {
                Some(address) => Some(MetricsListener::bind(address).await?),
                None => None,
            },
        })
    }
}

impl PolicyFiles {
    /// Locks a server.
    pub(super) fn lock(&self, upstream: Upstream, server: &BridgedServer) -> Result<Upstream> {
        match &self.lock {
            Some(lock) => lock.apply(upstream, &server.name),
            None => Ok(upstream),
        }
    }

    /// Returns an error if the configuration file names another tool lock than at the start.
    pub(super) fn check_lock(&self, configured: Option<&Path>) -> Result {
        if self.is_lock_given || configured == self.configured_lock.as_deref() {
            return Ok(());
        }
        let message = "`lock` in `[policy]` has changed, and is read at the start only";
        Err(CliError::could_not_run(message).hint("restart the bridge"))
    }

    /// Records what a gateway does.
    pub(super) fn observe(&self, gateway: Gateway) -> Gateway {
        match &self.audit {
            Some(audit) => gateway.audit(audit.clone()),
            None => gateway,
        }
    }

    /// Updates the tool lock, and serves the metrics of a gateway that has started.
    pub(super) fn started(
        &self,
        gateway: &RunningGateway,
        servers: &[BridgedServer],
        context: &CommandContext,
    ) -> Result {
        if let Some(lock) = &self.lock {
            lock.update(gateway, servers, context)?;
        }
        if let Some(metrics) = &self.metrics {
            metrics.serve(gateway);
        }
        Ok(())
    }
}

/// Opens a log that only the user can read.
fn open_audit_log(path: &Path) -> Result<JsonLines> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| {
        let path = path.display();
        CliError::could_not_run(format!("cannot write the audit log {path}: {error}"))
    })?;
    Ok(JsonLines::new(file))
}
