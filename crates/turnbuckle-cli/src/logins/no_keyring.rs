//! The keyring of the system, in a build that cannot ask it.

use turnbuckle_auth::client::{Keyring, SealingKey};
use turnbuckle_auth::{Failure, Step};

/// Says how to have a keyring, when one is needed.
pub(super) struct SystemKeyring;

impl SystemKeyring {
    /// Takes none.
    pub(super) fn new() -> Self {
        Self
    }
}

impl Keyring for SystemKeyring {
    fn find(&self) -> Result<Option<SealingKey>, Failure> {
        Err(cannot())
    }

    fn keep(&self, _key: &SealingKey) -> Result<(), Failure> {
        Err(cannot())
    }
}

fn cannot() -> Failure {
    let reason = "this build cannot ask the keyring of the system for the key to the logins";
    Failure::new(Step::Store, reason).cure(
        "nothing was changed; build it with the feature `keyring`: `cargo install --path crates/turnbuckle-cli --features keyring`",
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use turnbuckle_auth::client::{FileForm, FileStore};

    use super::*;

    #[tokio::test]
    async fn who_wants_a_seal_is_told_how_to_build_and_nothing_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::new(folder.path().join("logins")).keyring(SystemKeyring::new());

        let failure = store.keep_as(FileForm::Sealed).await.unwrap_err();

        assert!(failure.reason().contains("this build"), "{failure}");
        assert!(failure.advice().unwrap().contains("--features keyring"));
        assert!(!store.path().exists());
    }

    #[tokio::test]
    async fn what_another_build_has_sealed_is_not_opened_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::new(folder.path()).keyring(SystemKeyring::new());
        let sealed = r#"{"version":2,"sealed":"c2VzYW1l"}"#;
        fs::write(store.path(), sealed).unwrap();

        let failure = store.logins().await.map(drop).unwrap_err();

        assert!(failure.advice().unwrap().contains("--features keyring"));
        assert_eq!(fs::read_to_string(store.path()).unwrap(), sealed);
    }
}
