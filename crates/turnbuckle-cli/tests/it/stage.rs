//! Where the binary runs: a folder of its own, and a server behind a socket in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use turnbuckle_server::lines::serve_lines;

use crate::weather;

/// A folder that is home and current folder, with a server on `SOCKET`.
pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) runtime: Runtime,
}

impl Stage {
    /// Starts the server.
    pub(crate) fn new() -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            runtime: Runtime::new().unwrap(),
        };
        let _inside = stage.runtime.enter();
        let listener = UnixListener::bind(stage.socket()).unwrap();
        stage.runtime.spawn(async move {
            let server = weather::server();
            while let Ok((stream, _)) = listener.accept().await {
                let (reader, writer) = stream.into_split();
                let server = server.clone();
                tokio::spawn(async move { serve_lines(reader, writer, server).await });
            }
        });
        stage
    }

    /// Writes a file into the folder.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let file = self.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Returns the folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Prepares the binary; `SOCKET` among the words is the server of the stage.
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

    /// Runs the binary and returns all that can be seen of it.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        self.seen(&self.command(words).output().unwrap())
    }

    /// Returns what a run printed, and its exit code if that is not 0.
    pub(crate) fn seen(&self, output: &Output) -> String {
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
