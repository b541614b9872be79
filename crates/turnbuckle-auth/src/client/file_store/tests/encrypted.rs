//! Files that are encrypted with a key of the keyring.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use super::*;

/// A keyring that counts accesses and can fail.
#[derive(Clone, Default)]
struct FakeKeyring(Arc<FakeKeyringState>);

#[derive(Default)]
struct FakeKeyringState {
    key: Mutex<Option<EncryptionKey>>,
    accesses: AtomicUsize,
    is_locked: AtomicBool,
    forgets: AtomicBool,
}

impl FakeKeyring {
    fn with_key(byte: u8) -> FakeKeyring {
        let mock = FakeKeyring::default();
        mock.set(Some(EncryptionKey::new([byte; EncryptionKey::LENGTH])));
        mock
    }

    fn set(&self, key: Option<EncryptionKey>) {
        *self.0.key.lock().unwrap() = key;
    }

    fn key(&self) -> Option<EncryptionKey> {
        self.0.key.lock().unwrap().clone()
    }

    fn access_count(&self) -> usize {
        self.0.accesses.load(Ordering::Relaxed)
    }

    fn access(&self) -> Result<(), AuthorizationError> {
        self.0.accesses.fetch_add(1, Ordering::Relaxed);
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

impl Keyring for FakeKeyring {
    fn load_key(&self) -> Result<Option<EncryptionKey>, AuthorizationError> {
        self.access()?;
        Ok(self.key())
    }

    fn store_key(&self, key: &EncryptionKey) -> Result<(), AuthorizationError> {
        self.access()?;
        if !self.0.forgets.load(Ordering::Relaxed) {
            self.set(Some(key.clone()));
        }
        Ok(())
    }
}

fn encrypted_store(folder: &TempDir, keyring: &FakeKeyring) -> FileStore {
    store(folder).keyring(keyring.clone())
}

/// Returns the raw text of the file.
fn text(store: &FileStore) -> String {
    fs::read_to_string(store.path()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_file_can_be_encrypted_and_decrypted_again() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = FakeKeyring::default();
    let one = encrypted_store(&folder, &keyring);
    one.save(&login(SERVER, "sesame")).await.unwrap();
    assert_eq!(one.encryption().await.unwrap(), FileEncryption::Plaintext);
    assert!(text(&one).contains("sesame"));

    one.set_encryption(FileEncryption::Encrypted).await.unwrap();

    assert_eq!(one.encryption().await.unwrap(), FileEncryption::Encrypted);
    let written: serde_json::Value = serde_json::from_str(&text(&one)).unwrap();
    assert_eq!(written["version"], 2);
    assert!(written["sealed"].is_string());
    assert!(!text(&one).contains("mcp.example"), "{}", text(&one));
    let other = encrypted_store(&folder, &keyring);
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
async fn the_keyring_is_read_once_for_encrypted_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = FakeKeyring::with_key(1);
    let one = encrypted_store(&folder, &keyring);
    one.save(&login(SERVER, "sesame")).await.unwrap();
    one.login(SERVER).await.unwrap();
    one.encryption().await.unwrap();
    one.set_encryption(FileEncryption::Plaintext).await.unwrap();
    assert_eq!(keyring.access_count(), 0);

    one.set_encryption(FileEncryption::Encrypted).await.unwrap();
    assert_eq!(keyring.access_count(), 1);
    let other = encrypted_store(&folder, &keyring);
    for _ in 0..3 {
        other.save(&login(SERVER, "new")).await.unwrap();
        other.login(SERVER).await.unwrap();
        other.encryption().await.unwrap();
    }

    assert_eq!(keyring.access_count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_created_once_and_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = FakeKeyring::default();
    let store = encrypted_store(&folder, &keyring);

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
async fn an_undecryptable_file_is_an_error_and_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = FakeKeyring::with_key(1);
    let good = encrypted_store(&folder, &keyring);
    good.save(&login(SERVER, "sesame")).await.unwrap();
    good.set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap();
    let whole = text(&good);
    let tampered = whole.replacen("\"sealed\": \"", "\"sealed\": \"AAAA", 1);
    let cut = r#"{"version":2,"sealed":"AAAA"}"#.to_owned();
    let locked = FakeKeyring::with_key(1);
    locked.0.is_locked.store(true, Ordering::Relaxed);

    for (written, store, found, hint) in [
        (
            &whole,
            store(&folder),
            "none is available",
            "nothing was changed",
        ),
        (
            &whole,
            encrypted_store(&folder, &FakeKeyring::default()),
            "key is not in the keyring",
            "nothing was changed",
        ),
        (
            &whole,
            encrypted_store(&folder, &FakeKeyring::with_key(2)),
            "another key",
            "nothing was changed",
        ),
        (
            &whole,
            encrypted_store(&folder, &locked),
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

        for error in failures {
            assert_eq!(error.step(), AuthorizationStep::Store);
            assert!(error.reason().contains(found), "{error}");
            assert!(error.hint().unwrap().contains(hint), "{error:?}");
        }
        assert_eq!(&text(&store), written);
        assert_eq!(store.encryption().await.unwrap(), FileEncryption::Encrypted);
    }
    assert_eq!(keyring.key(), FakeKeyring::with_key(1).key());
}

#[tokio::test(start_paused = true)]
async fn a_keyring_that_loses_the_key_does_not_encrypt() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = FakeKeyring::default();
    keyring.0.forgets.store(true, Ordering::Relaxed);
    let store = encrypted_store(&folder, &keyring);
    store.save(&login(SERVER, "sesame")).await.unwrap();
    let before = text(&store);

    let error = store
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap_err();

    assert!(error.reason().contains("does not store"), "{error}");
    assert!(error.hint().unwrap().contains("nothing was changed"));
    assert_eq!(text(&store), before);
}

#[tokio::test(start_paused = true)]
async fn a_changed_key_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = FakeKeyring::with_key(1);
    let [long_lived, other] = [(); 2].map(|()| encrypted_store(&folder, &keyring));
    long_lived
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap();

    other
        .set_encryption(FileEncryption::Plaintext)
        .await
        .unwrap();
    keyring.set(FakeKeyring::with_key(2).key());
    other.save(&login(SERVER, "sesame")).await.unwrap();
    other
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap();

    let found = long_lived.login(SERVER).await.unwrap();
    assert_eq!(access(found), Some("sesame".into()));
    long_lived.save(&login(SERVER, "new")).await.unwrap();
    let found = encrypted_store(&folder, &keyring)
        .login(SERVER)
        .await
        .unwrap();
    assert_eq!(access(found), Some("new".into()));
}

#[tokio::test(start_paused = true)]
async fn contents_over_the_size_limit_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = encrypted_store(&folder, &FakeKeyring::default());
    Arc::get_mut(&mut store.directory).unwrap().max_bytes = 4096;
    // Within the limit as plain text, but not encrypted, where three bytes become four.
    let long = "a".repeat(3000);
    store.save(&login(SERVER, &long)).await.unwrap();

    let error = store
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap_err();

    assert!(error.reason().contains("larger than 4096"), "{error}");
    assert_eq!(store.encryption().await.unwrap(), FileEncryption::Plaintext);
    let found = access(store.login(SERVER).await.unwrap());
    assert_eq!(found, Some(long));
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn an_encrypted_file_is_private_and_survives_a_crash() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let keyring = FakeKeyring::default();
    let store = encrypted_store(&folder, &keyring);
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
fn concurrent_encryption_creates_one_key_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = FakeKeyring::default();

    std::thread::scope(|threads| {
        for writer in 0..4 {
            let store = encrypted_store(&folder, &keyring);
            threads.spawn(move || {
                store
                    .directory
                    .set_encryption(FileEncryption::Encrypted)
                    .unwrap();
                for at in 0..5 {
                    let url = format!("https://{writer}.example/{at}");
                    let one = login(&url, &url);
                    let change = |stored: &mut StoreContents| stored.logins.insert(url, one);
                    store.directory.change(change).unwrap();
                }
            });
        }
    });

    let stored = encrypted_store(&folder, &keyring).directory.read().unwrap();
    assert_eq!(stored.logins.len(), 20);
}
