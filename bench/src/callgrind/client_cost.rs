//! Measures what a call costs the client.

use std::process::Command;

use super::{Callgrind, Cost, Profile};
use crate::{Failure, message::Era, process::ServerProcess};

impl Callgrind {
    /// Measures one sequential call of a client to the server that a command starts.
    pub fn per_call(
        &self,
        era: Era,
        calls: u64,
        client: &Command,
        server: &mut Command,
        name: &str,
    ) -> Result<Cost, Failure> {
        let server = ServerProcess::start(server)?;
        let url = format!("http://{}{}", server.address(), server.path());
        let run = |calls: u64| -> Result<Profile, Failure> {
            let era = match era {
                Era::Modern => "modern",
                Era::Legacy => "legacy",
            };
            let mut command = Command::new(client.get_program());
            command.args(client.get_args());
            command.args(["--url", &url, "--era", era, "--calls", &calls.to_string()]);
            let file = self.file(&format!("{name}.{calls}.callgrind"));
            let output = self.around(&command, &file).output()?;
            if !output.status.success() {
                let stderr = String::from_utf8_lossy(&output.stderr);
                return Err(format!("{name}: ended with {}: {stderr}", output.status).into());
            }
            self.read(&file)
        };
        let (once, twice) = (run(calls)?, run(2 * calls)?);
        server.terminate()?;
        // The client itself checked every call.
        Ok(Cost::between(once, twice, calls, String::new()))
    }
}
