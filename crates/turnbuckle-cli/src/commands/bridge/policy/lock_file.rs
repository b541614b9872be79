//! The tool lock of `--lock`.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use turnbuckle_client::tool_lock::LockFile;
use turnbuckle_gateway::{RunningGateway, Upstream};

use crate::{
    commands::bridge::upstreams::BridgedServer,
    context::CommandContext,
    error::{CliError, Result, warning},
    output::sanitize,
};

/// A tool lock that was read.
#[derive(Debug)]
pub(super) struct ToolLockFile {
    path: PathBuf,
    file: LockFile,
    is_updated: bool,
}

impl ToolLockFile {
    /// Reads the file. Only an update may create it.
    pub(super) fn open(path: PathBuf, is_updated: bool) -> Result<Self> {
        let shown = path.display();
        let file = match fs::read_to_string(&path) {
            Ok(text) => LockFile::parse(&text).map_err(|error| {
                CliError::could_not_run(format!("the tool lock {shown} is invalid: {error}"))
            })?,
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let message = format!("cannot read the tool lock {shown}: {error}");
                return Err(CliError::could_not_run(message));
            }
            Err(_) if is_updated => LockFile::new(),
            Err(_) => {
                let message = format!("the tool lock {shown} does not exist");
                return Err(CliError::could_not_run(message)
                    .hint("write the definitions of the servers to it with --lock-update"));
            }
        };
        Ok(Self {
            path,
            file,
            is_updated,
        })
    }

    /// Locks a server: to its definitions in the file, or for an update to those that it lists first.
    pub(super) fn apply(&self, upstream: Upstream, server: &str) -> Result<Upstream> {
        if self.is_updated {
            return Ok(upstream.lock_as_listed());
        }
        match self.file.servers.get(server) {
            Some(lock) => Ok(upstream.lock(lock.clone())),
            None => {
                let path = self.path.display();
                let message = format!("server `{server}` is not in the tool lock {path}");
                Err(CliError::could_not_run(message).hint("add it with --lock-update"))
            }
        }
    }

    /// Writes the definitions of the servers, if this is an update. Sections of other servers are kept.
    pub(super) fn update(
        &self,
        gateway: &RunningGateway,
        servers: &[BridgedServer],
        context: &CommandContext,
    ) -> Result {
        if !self.is_updated {
            return Ok(());
        }
        let mut file = self.file.clone();
        for (name, lock) in gateway.locks() {
            let Some(mut lock) = lock else {
                let message = format!("`{name}` was not locked: its definitions are not known");
                context.ui.print(&warning(&sanitize::line(&message)));
                continue;
            };
            let server = servers.iter().find(|server| server.name == name);
            lock.target = server.map(|server| server.target.label());
            if let Some(before) = file.servers.insert(name.clone(), lock) {
                for difference in before.compare(&file.servers[&name]) {
                    let line = format!("{name}: {difference}");
                    context.ui.note("~", &sanitize::line(&line));
                }
            }
        }
        replace(&self.path, &file.to_string()).map_err(|error| {
            let path = self.path.display();
            CliError::could_not_run(format!("cannot write the tool lock {path}: {error}"))
        })
    }
}

/// Replaces a file atomically.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    // A file may be left from a crash.
    let _ = fs::remove_file(&temporary);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).open(&temporary)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    drop(file);
    let replaced = written.and_then(|()| fs::rename(&temporary, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    replaced
}
