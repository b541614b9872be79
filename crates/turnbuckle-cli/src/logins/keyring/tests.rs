use std::fs;

use keyring_core::mock;
use turnbuckle_auth::client::{FileEncryption, FileStore};

use super::*;

/// Returns a keyring in memory, and its entry.
fn in_memory() -> (SystemKeyring, Entry) {
    let store: Arc<CredentialStore> = mock::Store::new().unwrap();
    let entry = store.build("turnbuckle", "logins", None).unwrap();
    let open = Box::new(move || Ok(Arc::clone(&store)));
    (SystemKeyring { open }, entry)
}

fn fails_with(error: Error) -> AuthorizationError {
    let (keyring, entry) = in_memory();
    let entry: &mock::Cred = entry.as_any().downcast_ref().unwrap();
    entry.set_error(error);
    keyring.load_key().unwrap_err()
}

#[test]
fn a_key_is_stored_as_text_and_found_again() {
    let (keyring, entry) = in_memory();
    assert_eq!(keyring.load_key().unwrap(), None);
    let key = EncryptionKey::new([7; EncryptionKey::LENGTH]);

    keyring.store_key(&key).unwrap();

    assert_eq!(keyring.load_key().unwrap(), Some(key));
    let text = entry.get_password().unwrap();
    assert!(text.is_ascii() && text.len() == 44, "{text}");
}

#[test]
fn an_invalid_key_is_reported_and_not_shown() {
    for text in ["", "sesame", "c2VzYW1l", &STANDARD.encode([1; 33])] {
        let (keyring, entry) = in_memory();
        entry.set_password(text).unwrap();

        let failure = keyring.load_key().unwrap_err();

        assert!(failure.reason().ends_with("is not a key"), "{failure}");
        assert!(!format!("{failure:?}").contains("sesame"), "{failure:?}");
        assert_eq!(entry.get_password().unwrap(), text);
    }
}

#[test]
fn a_locked_or_missing_keyring_is_an_error() {
    let locked = fails_with(Error::NoStorageAccess("it is locked".into()));
    assert!(
        locked.reason().ends_with("keyring: it is locked"),
        "{locked}"
    );
    assert!(locked.hint().unwrap().contains("unlock the keyring"));

    let unavailable = fails_with(Error::PlatformFailure("no such bus".into()));
    assert!(
        unavailable.reason().ends_with("keyring: no such bus"),
        "{unavailable}"
    );
    assert!(unavailable.hint().unwrap().contains("session"));

    let open = Box::new(|| Err(Error::NoDefaultStore));
    let failure = SystemKeyring { open }.load_key().unwrap_err();
    assert_eq!(failure.step(), AuthorizationStep::Store);
}

#[tokio::test]
async fn the_keyring_encrypts_stored_logins() {
    let folder = tempfile::tempdir().unwrap();
    let (keyring, entry) = in_memory();
    let store = FileStore::new(folder.path().join("logins")).keyring(keyring);

    store
        .set_encryption(FileEncryption::Encrypted)
        .await
        .unwrap();

    assert!(entry.get_password().is_ok());
    assert_eq!(store.encryption().await.unwrap(), FileEncryption::Encrypted);
    let text = fs::read_to_string(store.path()).unwrap();
    assert!(text.contains("\"sealed\""), "{text}");
    assert!(store.logins().await.unwrap().is_empty());

    entry.delete_credential().unwrap();
    let (other, _) = in_memory();
    let failure = FileStore::new(folder.path().join("logins"))
        .keyring(other)
        .logins()
        .await;
    let failure = failure.unwrap_err();
    assert!(failure.reason().contains("not in the keyring"), "{failure}");
    assert_eq!(fs::read_to_string(store.path()).unwrap(), text);
}
