//! A server with a folder for its data and a repository to work in.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use turnbuckle_context::{ContextServer, Library, Owner, Owners};
use turnbuckle_server::Server;
use turnbuckle_server::testing::Peer;

/// Two folders that are gone when the test is over.
pub(crate) struct Place {
    pub(crate) data: TempDir,
    pub(crate) repository: TempDir,
}

impl Place {
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

    /// The path of the repository, as a client says it.
    pub(crate) fn path(&self) -> String {
        let path = self.repository.path().canonicalize().unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A server for one person.
    pub(crate) fn server(&self) -> Server {
        self.builder(Owners::One(Owner::user("ada"))).build()
    }

    /// A server for several people, who may all use the repository.
    pub(crate) fn shared_server(&self) -> Server {
        let library = Library::new(self.data.path()).within([self.repository.path().to_owned()]);
        ContextServer::new(library, Owners::ByPrincipal).build()
    }

    pub(crate) fn builder(&self, owners: Owners) -> ContextServer {
        ContextServer::new(Library::new(self.data.path()), owners)
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
