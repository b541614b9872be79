use std::fs;

use keyring_core::mock;
use turnbuckle_auth::client::{FileForm, FileStore};

use super::*;

/// A keyring in memory, and what it has.
fn in_memory() -> (SystemKeyring, Entry) {
    let store: Arc<CredentialStore> = mock::Store::new().unwrap();
    let entry = store.build("turnbuckle", "logins", None).unwrap();
    let open = Box::new(move || Ok(Arc::clone(&store)));
    (SystemKeyring { open }, entry)
}

fn fails_with(error: Error) -> Failure {
    let (keyring, entry) = in_memory();
    let entry: &mock::Cred = entry.as_any().downcast_ref().unwrap();
    entry.set_error(error);
    keyring.find().unwrap_err()
}

#[test]
fn a_key_is_kept_as_text_and_found_again() {
    let (keyring, entry) = in_memory();
    assert_eq!(keyring.find().unwrap(), None);
    let key = SealingKey::new([7; SealingKey::LENGTH]);

    keyring.keep(&key).unwrap();

    assert_eq!(keyring.find().unwrap(), Some(key));
    let text = entry.get_password().unwrap();
    assert!(text.is_ascii() && text.len() == 44, "{text}");
}

#[test]
fn what_is_no_key_is_told_and_not_shown() {
    for text in ["", "sesame", "c2VzYW1l", &STANDARD.encode([1; 33])] {
        let (keyring, entry) = in_memory();
        entry.set_password(text).unwrap();

        let failure = keyring.find().unwrap_err();

        assert!(failure.reason().ends_with("is no key"), "{failure}");
        assert!(!format!("{failure:?}").contains("sesame"), "{failure:?}");
        assert_eq!(entry.get_password().unwrap(), text);
    }
}

#[test]
fn a_keyring_that_is_locked_or_not_there_is_no_keyring_without_a_key() {
    let locked = fails_with(Error::NoStorageAccess("it is locked".into()));
    assert!(locked.reason().ends_with("used: it is locked"), "{locked}");
    assert!(locked.advice().unwrap().contains("unlock the keyring"));

    let nobody = fails_with(Error::PlatformFailure("no such bus".into()));
    assert!(nobody.reason().ends_with("used: no such bus"), "{nobody}");
    assert!(nobody.advice().unwrap().contains("session"));

    let open = Box::new(|| Err(Error::NoDefaultStore));
    let failure = SystemKeyring { open }.find().unwrap_err();
    assert_eq!(failure.step(), Step::Store);
}

#[tokio::test]
async fn it_seals_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (keyring, entry) = in_memory();
    let store = FileStore::new(folder.path().join("logins")).keyring(keyring);

    store.keep_as(FileForm::Sealed).await.unwrap();

    assert!(entry.get_password().is_ok());
    assert_eq!(store.form().await.unwrap(), FileForm::Sealed);
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
