mod encrypted;

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::json;
use tempfile::TempDir;
use turnbuckle_spec_coverage::req;

use super::*;

const SERVER: &str = "https://mcp.example/mcp";

fn login(server_url: &str, token: &str) -> StoredLogin {
    serde_json::from_value(json!({
        "server_url": server_url,
        "resource": server_url,
        "server": { "issuer": "https://as.example", "token_endpoint": "https://as.example/token" },
        "client": { "id": "client", "method": "none", "source": "dynamic" },
        "tokens": { "access": token, "kind": "bearer", "refresh": "refresh" },
        "obtained": 1_700_000_000,
        "asked": "read write",
    }))
    .unwrap()
}

fn store(folder: &TempDir) -> FileStore {
    FileStore::new(folder.path().join("logins"))
}

fn access(login: Option<StoredLogin>) -> Option<String> {
    login.map(|login| login.tokens.access.expose().to_owned())
}

#[tokio::test(start_paused = true)]
async fn saved_logins_are_loaded_and_removed_ones_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let one = store(&folder);
    assert_eq!(access(one.login(SERVER).await.unwrap()), None);
    let stored = login(SERVER, "token");
    one.save(&stored).await.unwrap();
    one.save(&login("https://other.example", "other"))
        .await
        .unwrap();
    one.save_registration("https://as.example", Some(&stored.client))
        .await
        .unwrap();

    let next = store(&folder);

    assert_eq!(
        access(next.login(SERVER).await.unwrap()),
        Some("token".into())
    );
    assert_eq!(next.logins().await.unwrap().len(), 2);
    let client = next.registration("https://as.example").await.unwrap();
    assert_eq!(client.unwrap().id, "client");
    assert!(
        next.registration("https://as.example/")
            .await
            .unwrap()
            .is_none()
    );
    assert!(next.delete(SERVER).await.unwrap());
    assert!(!next.delete(SERVER).await.unwrap());
    next.save_registration("https://as.example", None)
        .await
        .unwrap();
    assert_eq!(access(one.login(SERVER).await.unwrap()), None);
    assert!(
        one.registration("https://as.example")
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(one.logins().await.unwrap().len(), 1);
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn files_are_private_and_open_permissions_are_corrected() {
    use std::os::unix::fs::PermissionsExt as _;
    req!("auth.token.storage");
    req!("auth.token.storage-2025-03-26");
    req!("auth.refresh.confidential");
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let own = folder.path().join("logins");

    store.save(&login(SERVER, "token")).await.unwrap();
    let _lock = store.lock(SERVER).await.unwrap();
    assert_eq!(mode(&own), 0o700);
    for file in fs::read_dir(&own).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }

    open(store.path(), 0o644);
    open(&own, 0o755);
    store.login(SERVER).await.unwrap();
    assert_eq!((mode(&own), mode(store.path())), (0o700, 0o600));
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_shared_folder_is_rejected_and_unchanged() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("tmp");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();

    let error = FileStore::new(&shared).save(&login(SERVER, "token")).await;

    let error = error.unwrap_err();
    assert_eq!(error.step(), AuthorizationStep::Store);
    assert!(error.hint().unwrap().contains("belongs to you"));
    let mode = fs::metadata(&shared).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o1777);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_file_is_an_error_and_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    store.save(&login(SERVER, "sesame")).await.unwrap();
    let whole = fs::read(store.path()).unwrap();
    let half = whole[..whole.len() / 2].to_vec();
    let newer = br#"{"version":3,"logins":[]}"#.to_vec();
    let other = br#"{"version":1,"logins":{"sesame":"sesame"}}"#.to_vec();

    for (damaged, found) in [
        (half, "is damaged"),
        (other, "is damaged"),
        (Vec::new(), "is damaged"),
        (b"null".to_vec(), "is damaged"),
        (newer, "newer version"),
    ] {
        fs::write(store.path(), &damaged).unwrap();

        let failures = [
            store.login(SERVER).await.map(drop).unwrap_err(),
            store.save(&login(SERVER, "new")).await.unwrap_err(),
            store.delete(SERVER).await.map(drop).unwrap_err(),
        ];

        for error in failures {
            assert_eq!(error.step(), AuthorizationStep::Store);
            assert!(error.reason().contains(found), "{error}");
            assert!(error.hint().unwrap().contains("nothing was changed"));
            assert!(!format!("{error:?}").contains("sesame"), "{error:?}");
        }
        assert_eq!(fs::read(store.path()).unwrap(), damaged);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_writing_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    store.save(&login(SERVER, "old")).await.unwrap();
    let draft = store.path().with_file_name("logins.json.new");
    fs::write(&draft, r#"{"version":1,"logi"#).unwrap();

    assert_eq!(
        access(store.login(SERVER).await.unwrap()),
        Some("old".into())
    );
    store.save(&login(SERVER, "new")).await.unwrap();
    assert_eq!(
        access(store.login(SERVER).await.unwrap()),
        Some("new".into())
    );
    assert!(!draft.exists());
}

#[tokio::test(start_paused = true)]
async fn an_unwritable_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();

    let store = FileStore::new(folder.path().join("file").join("logins"));

    let error = store.save(&login(SERVER, "token")).await.unwrap_err();
    assert_eq!(error.step(), AuthorizationStep::Store);
    assert!(error.hint().is_some());
}

#[test]
fn concurrent_writers_lose_nothing_and_readers_see_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let block_on = |future: BoxFuture<'_, Result<(), AuthorizationError>>| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime
            .enable_time()
            .build()
            .unwrap()
            .block_on(future)
            .unwrap();
    };
    let is_done = AtomicBool::new(false);

    std::thread::scope(|threads| {
        let reader = threads.spawn(|| {
            let mut max_bytes = 0;
            while !is_done.load(Ordering::Relaxed) {
                let store = store(&folder);
                let found = store.directory.read().map(|stored| stored.logins.len());
                let found = found.expect("what is read is whole");
                assert!(found >= max_bytes, "a saved login is gone");
                max_bytes = found;
            }
        });
        let writers = (0..4).map(|writer| {
            let store = store(&folder);
            threads.spawn(move || {
                for at in 0..10 {
                    let url = format!("https://{writer}.example/{at}");
                    block_on(store.save(&login(&url, &url)));
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.join().unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });

    assert_eq!(store(&folder).directory.read().unwrap().logins.len(), 40);
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_exclusive_until_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = [(); 2].map(|()| store(&folder));
    let held = one.lock(SERVER).await.unwrap();

    let elsewhere = other.lock("https://other.example").await;
    assert!(elsewhere.is_ok(), "each server has its own lock");
    other.save(&login(SERVER, "token")).await.unwrap();
    let waiting = tokio::spawn({
        let other = other.clone();
        async move { other.lock(SERVER).await.map(drop) }
    });
    time::sleep(Duration::from_secs(60)).await;
    assert!(!waiting.is_finished());
    drop(held);
    waiting.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lock_timeout_names_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let _held = store.lock(SERVER).await.unwrap();

    let error = store.lock(SERVER).await.unwrap_err();

    assert_eq!(error.step(), AuthorizationStep::Store);
    assert!(error.reason().contains("600s"), "{error}");
    assert!(error.hint().unwrap().contains("other program"));
}
