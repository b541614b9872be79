//! A temporary directory in which the binary runs, with a server on a Unix socket.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;
use tokio::{net::UnixListener, runtime::Runtime};
use turnbuckle_server::ndjson::serve;

use crate::weather;

/// A directory that is both home and current directory, with a server on `SOCKET`.
pub(crate) struct Sandbox {
    folder: TempDir,
    pub(crate) runtime: Runtime,
}

impl Sandbox {
    /// Starts the server.
    pub(crate) fn new() -> Self {
        let sandbox = Self {
            folder: tempfile::tempdir().unwrap(),
            runtime: Runtime::new().unwrap(),
        };
        let _inside = sandbox.runtime.enter();
        let listener = UnixListener::bind(sandbox.socket()).unwrap();
        sandbox.runtime.spawn(async move {
            let server = weather::server();
            while let Ok((stream, _)) = listener.accept().await {
                let (reader, writer) = stream.into_split();
                let server = server.clone();
                tokio::spawn(async move { serve(reader, writer, server).await });
            }
        });
        sandbox
    }

    /// Writes a file in the directory.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let file = self.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Returns the directory.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a command for the binary; the argument `SOCKET` is replaced by the server of the sandbox.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnbuckle"));
        for word in words {
            match *word {
                "SOCKET" => command.arg(format!("unix:{}", self.socket().display())),
                word => command.arg(word),
            };
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path());
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// Runs the binary, and returns its output.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        self.render(&self.command(words).output().unwrap())
    }

    /// Returns the output of a run, and its exit code if that is not 0.
    pub(crate) fn render(&self, output: &Output) -> String {
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.stderr.is_empty() {
            text += "--- stderr\n";
            text += &String::from_utf8_lossy(&output.stderr);
        }
        if !output.status.success() {
            text += &format!("--- exit {}\n", output.status.code().unwrap_or(-1));
        }
        let socket = format!("unix:{}", self.socket().display());
        let folder = self.path().display().to_string();
        text.replace(&socket, "SOCKET").replace(&folder, "~")
    }

    fn socket(&self) -> PathBuf {
        self.path().join("s")
    }
}
