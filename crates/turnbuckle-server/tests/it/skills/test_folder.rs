//! A temporary folder of skills.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use turnbuckle_server::{Server, Skills};

use crate::spec::revision_client::RevisionClient;

pub(crate) struct TestFolder {
    path: PathBuf,
}

impl TestFolder {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("turnbuckle-skills-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("skills")).unwrap();
        Self { path }
    }

    /// A folder with a skill that has files, and one without.
    pub(crate) fn with_skills() -> Self {
        let folder = Self::new();
        folder.skill("drinks/tea", "How to brew tea.");
        folder.write(
            "drinks/tea/references/pots.md",
            "A pot holds four cups.\r\n",
        );
        folder.write("drinks/tea/references/old/leaf.bin", [0, 159, 146, 150]);
        folder.write("drinks/tea/leaf.png", b"\x89PNG");
        folder.skill("tidy", "How to tidy up.");
        folder
    }

    /// The served folder. Its parent has room for other files.
    pub(crate) fn skills(&self) -> PathBuf {
        self.path.join("skills")
    }

    pub(crate) fn outside(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.skills().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Writes the `SKILL.md` of a skill.
    pub(crate) fn skill(&self, path: &str, description: &str) {
        let name = path.rsplit('/').next().unwrap();
        self.write(
            &format!("{path}/SKILL.md"),
            format!("---\nname: {name}\ndescription: {description}\n---\n# {name}\n"),
        );
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_dir_all(self.skills().join(path)).unwrap();
    }

    pub(crate) fn server(&self) -> Server {
        Server::new("cook", "1").skills(Skills::from_folder(self.skills()))
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The URIs of all listed skills.
pub(crate) async fn listed(client: &mut RevisionClient) -> Vec<String> {
    let list = client.result("skills/list", json!({})).await;
    let skills = list["skills"].as_array().unwrap().iter();
    skills
        .map(|skill| skill["uri"].as_str().unwrap().to_owned())
        .collect()
}

/// The bytes of a resource.
pub(crate) async fn read(client: &mut RevisionClient, uri: &str) -> Vec<u8> {
    let read = client.result("resources/read", json!({ "uri": uri })).await;
    let contents = &read["contents"][0];
    assert_eq!(contents["uri"], uri);
    match contents["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => BASE64_STANDARD
            .decode(contents["blob"].as_str().unwrap())
            .unwrap(),
    }
}

/// Reads every file of an entry, and compares it with the entry.
pub(crate) async fn check_digests(client: &mut RevisionClient, entry: &Value) {
    for file in entry["resources"].as_array().unwrap() {
        let bytes = read(client, file["uri"].as_str().unwrap()).await;
        assert_eq!(file["digest"], digest(&bytes), "{file}");
        assert_eq!(file["size"], bytes.len(), "{file}");
    }
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}
