//! Files that are sealed with a key of a keyring.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use super::*;

/// A keyring that counts how often it is asked, and fails when it is told to.
#[derive(Clone, Default)]
struct Mock(Arc<MockParts>);

#[derive(Default)]
struct MockParts {
    key: Mutex<Option<EncryptionKey>>,
    asked: AtomicUsize,
    is_locked: AtomicBool,
    forgets: AtomicBool,
}

impl Mock {
    fn with_key(byte: u8) -> Mock {
        let mock = Mock::default();
        mock.set(Some(EncryptionKey::new([byte; EncryptionKey::LENGTH])));
        mock
    }

    fn set(&self, key: Option<EncryptionKey>) {
        *self.0.key.lock().unwrap() = key;
    }

    fn key(&self) -> Option<EncryptionKey> {
        self.0.key.lock().unwrap().clone()
    }

    fn asked(&self) -> usize {
        self.0.asked.load(Ordering::Relaxed)
    }

    fn ask(&self) -> Result<(), AuthorizationError> {
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        if self.0.is_locked.load(Ordering::Relaxed) {
            Err(
                AuthorizationError::new(AuthorizationStep::Store, "the keyring is locked")
                    .with_hint("unlock it"),
            )
        } else {
            Ok(())
        }
    }
}

impl Keyring for Mock {
    fn load_key(&self) -> Result<Option<EncryptionKey>, AuthorizationError> {
        self.ask()?;
        Ok(self.key())
    }

    fn store_key(&self, key: &EncryptionKey) -> Result<(), AuthorizationError> {
        self.ask()?;
        if !self.0.forgets.load(Ordering::Relaxed) {
            self.set(Some(key.clone()));
        }
        Ok(())
    }
}

fn sealing(folder: &TempDir, keyring: &Mock) -> FileStore {
    store(folder).keyring(keyring.clone())
}

/// Returns what stands in the file, whoever reads it.
fn text(store: &FileStore) -> String {
    fs::read_to_string(store.path()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_plain_file_is_sealed_and_stays_so_and_becomes_plain_again() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = Mock::default();
    let one = sealing(&folder, &keyring);
    one.save(&login(SERVER, "sesame")).await.unwrap();
    assert_eq!(one.encryption().await.unwrap(), FileEncryption::Plaintext);
    assert!(text(&one).contains("sesame"));

    one.set_encryption(FileEncryption::Encrypted).await.unwrap();

    assert_eq!(one.encryption().await.unwrap(), FileEncryption::Encrypted);
    let written: serde_json::Value = serde_json::from_str(&text(&one)).unwrap();
    assert_eq!(written["version"], 2);
    assert!(written["sealed"].is_string());
    assert!(!text(&one).contains("mcp.example"), "{}", text(&one));
    let other = sealing(&folder, &keyring);
    other
        .save(&login("https://other.example", "other"))
        .await
        .unwrap();
    assert_eq!(other.encryption().await.unwrap(), FileEncryption::Encrypted);
    let found = one.login(SERVER).await.unwrap();
    assert_eq!(access(found), Some("sesame".into()));
    assert_eq!(one.logins().await.unwrap().len(), 2);
    assert!(one.delete(SERVER).await.unwrap());

    other
        .set_encryption(FileEncryption::Plaintext)
        .await
        .unwrap();

    assert!(text(&one).contains("other.example"));
    let plain = store(&folder);
    assert_eq!(plain.logins().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_keyring_is_not_asked_for_plain_files_and_once_for_sealed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = Mock::with_key(1);
    let one = sealing(&folder, &keyring);
    one.save(&login(SERVER, "sesame")).await.unwrap();
    one.login(SERVER).await.unwrap();
    one.encryption().await.unwrap();
    one.set_encryption(FileEncryption::Plaintext).await.unwrap();
    assert_eq!(keyring.asked(), 0);

    one.set_encryption(FileEncryption::Encrypted).await.unwrap();
    assert_eq!(keyring.asked(), 1);
    let other = sealing(&folder, &keyring);
    for _ in 0..3 {
        other.save(&login(SERVER, "new")).await.unwrap();
        other.login(SERVER).await.unwrap();
        other.encryption().await.unwrap();
    }

    assert_eq!(keyring.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_made_once_and_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = Mock::default();
    let store = sealing(&folder, &keyring);

    store
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap();
    let first = keyring.key().expect("a key was made");
    store
        .set_encryption(FileEncryption::Plaintext)
        .await
        .unwrap();
    store
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap();
    store
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap();

    assert_eq!(keyring.key(), Some(first.clone()));
    assert_ne!(first, EncryptionKey::new([0; EncryptionKey::LENGTH]));
}

#[tokio::test(start_paused = true)]
async fn a_sealed_file_that_cannot_be_opened_is_told_and_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = Mock::with_key(1);
    let good = sealing(&folder, &keyring);
    good.save(&login(SERVER, "sesame")).await.unwrap();
    good.set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap();
    let whole = text(&good);
    let tampered = whole.replacen("\"sealed\": \"", "\"sealed\": \"AAAA", 1);
    let cut = r#"{"version":2,"sealed":"AAAA"}"#.to_owned();
    let locked = Mock::with_key(1);
    locked.0.is_locked.store(true, Ordering::Relaxed);

    for (written, store, said, cure) in [
        (
            &whole,
            store(&folder),
            "none is available",
            "nothing was changed",
        ),
        (
            &whole,
            sealing(&folder, &Mock::default()),
            "key is not in the keyring",
            "nothing was changed",
        ),
        (
            &whole,
            sealing(&folder, &Mock::with_key(2)),
            "another key",
            "nothing was changed",
        ),
        (
            &whole,
            sealing(&folder, &locked),
            "the keyring is locked",
            "unlock it",
        ),
        (
            &tampered,
            good.clone(),
            "file was modified",
            "nothing was changed",
        ),
        (
            &cut,
            good.clone(),
            "file was modified",
            "nothing was changed",
        ),
    ] {
        fs::write(store.path(), written).unwrap();

        let failures = [
            store.login(SERVER).await.map(drop).unwrap_err(),
            store.save(&login(SERVER, "new")).await.unwrap_err(),
            store.delete(SERVER).await.map(drop).unwrap_err(),
            store
                .set_encryption(FileEncryption::Encrypted)
                .await
                .unwrap_err(),
            store
                .set_encryption(FileEncryption::Plaintext)
                .await
                .unwrap_err(),
        ];

        for failure in failures {
            assert_eq!(failure.step(), AuthorizationStep::Store);
            assert!(failure.reason().contains(said), "{failure}");
            assert!(failure.hint().unwrap().contains(cure), "{failure:?}");
        }
        assert_eq!(&text(&store), written);
        assert_eq!(store.encryption().await.unwrap(), FileEncryption::Encrypted);
    }
    assert_eq!(keyring.key(), Mock::with_key(1).key());
}

#[tokio::test(start_paused = true)]
async fn a_keyring_that_keeps_nothing_seals_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = Mock::default();
    keyring.0.forgets.store(true, Ordering::Relaxed);
    let store = sealing(&folder, &keyring);
    store.save(&login(SERVER, "sesame")).await.unwrap();
    let before = text(&store);

    let failure = store
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap_err();

    assert!(failure.reason().contains("does not store"), "{failure}");
    assert!(failure.hint().unwrap().contains("nothing was changed"));
    assert_eq!(text(&store), before);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_became_another_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = Mock::with_key(1);
    let [long_lived, other] = [(); 2].map(|()| sealing(&folder, &keyring));
    long_lived
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap();

    other
        .set_encryption(FileEncryption::Plaintext)
        .await
        .unwrap();
    keyring.set(Mock::with_key(2).key());
    other.save(&login(SERVER, "sesame")).await.unwrap();
    other
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap();

    let found = long_lived.login(SERVER).await.unwrap();
    assert_eq!(access(found), Some("sesame".into()));
    long_lived.save(&login(SERVER, "new")).await.unwrap();
    let found = sealing(&folder, &keyring).login(SERVER).await.unwrap();
    assert_eq!(access(found), Some("new".into()));
}

#[tokio::test(start_paused = true)]
async fn what_would_be_too_long_to_be_read_again_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = sealing(&folder, &Mock::default());
    Arc::get_mut(&mut store.directory).unwrap().max_bytes = 4096;
    // Short enough as it is, and too long under a seal, where three bytes become four.
    let long = "a".repeat(3000);
    store.save(&login(SERVER, &long)).await.unwrap();

    let failure = store
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap_err();

    assert!(failure.reason().contains("larger than 4096"), "{failure}");
    assert_eq!(store.encryption().await.unwrap(), FileEncryption::Plaintext);
    let found = access(store.login(SERVER).await.unwrap());
    assert_eq!(found, Some(long));
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_sealed_file_too_is_for_its_owner_alone_and_survives_a_crash() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let keyring = Mock::default();
    let store = sealing(&folder, &keyring);
    let draft = store.path().with_file_name("logins.json.new");
    store.save(&login(SERVER, "sesame")).await.unwrap();
    fs::write(&draft, r#"{"version":2,"seal"#).unwrap();

    store
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap();

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(store.path()), 0o600);
    assert!(!draft.exists());
    let found = store.login(SERVER).await.unwrap();
    assert_eq!(access(found), Some("sesame".into()));
}

#[test]
fn many_who_seal_at_once_make_one_key_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = Mock::default();

    std::thread::scope(|threads| {
        for writer in 0..4 {
            let store = sealing(&folder, &keyring);
            threads.spawn(move || {
                store
                    .directory
                    .set_encryption(FileEncryption::Encrypted)
                    .unwrap();
                for at in 0..5 {
                    let url = format!("https://{writer}.example/{at}");
                    let one = login(&url, &url);
                    let change = |kept: &mut StoreContents| kept.logins.insert(url, one);
                    store.directory.change(change).unwrap();
                }
            });
        }
    });

    let kept = sealing(&folder, &keyring).directory.read().unwrap();
    assert_eq!(kept.logins.len(), 20);
}
