//! A server with a data directory and a repository.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;
use turnbuckle_context::{ContextServer, DataDir, Owner, OwnershipPolicy};
use turnbuckle_server::{Server, testing::Peer};

/// Two temporary folders.
pub(crate) struct TestProject {
    pub(crate) data: TempDir,
    pub(crate) repository: TempDir,
}

impl TestProject {
    pub(crate) fn new() -> Self {
        let repository = tempfile::tempdir().unwrap();
        let git = repository.path().join(".git");
        fs::create_dir(&git).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        Self {
            data: tempfile::tempdir().unwrap(),
            repository,
        }
    }

    /// Returns the path of the repository.
    pub(crate) fn path(&self) -> String {
        let path = self.repository.path().canonicalize().unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Returns a server for a single owner.
    pub(crate) fn server(&self) -> Server {
        self.builder(OwnershipPolicy::Single(Owner::for_user("ada")))
            .build()
    }

    /// Returns a server for several owners, who may all use the repository.
    pub(crate) fn shared_server(&self) -> Server {
        let data_dir =
            DataDir::new(self.data.path()).restrict_to([self.repository.path().to_owned()]);
        ContextServer::new(data_dir, OwnershipPolicy::PerPrincipal).build()
    }

    pub(crate) fn builder(&self, owners: OwnershipPolicy) -> ContextServer {
        ContextServer::new(DataDir::new(self.data.path()), owners)
    }

    /// Writes a file of the repository.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.repository.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Calls a tool and returns its structured content.
pub(crate) async fn call(peer: &mut Peer, name: &str, arguments: Value) -> Value {
    let answer = peer.call_tool(name, arguments).await;
    assert_ne!(answer.expect_result()["isError"], true, "{}", answer.text());
    answer.structured()
}
