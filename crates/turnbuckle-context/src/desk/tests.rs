use tokio::sync::oneshot;

use super::*;

/// A question that SQLite would never finish.
const ENDLESS: &str =
    "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

fn state(data: &Path) -> (AppState, Owner) {
    let owner = Owner::for_user("ada");
    let config = ServerConfig {
        embedder: None,
        half_life: HalfLife::default(),
        first_index_timeout: Duration::from_secs(5),
        call_timeout: Duration::from_secs(3_600),
        index_timeout: Duration::from_secs(3_600),
        quota: None,
    };
    let state = AppState::new(
        DataDir::new(data),
        OwnershipPolicy::Single(owner.clone()),
        config,
    );
    (state, owner)
}

#[tokio::test]
async fn work_whose_caller_has_gone_leaves_its_place() {
    let data = tempfile::tempdir().unwrap();
    let (state, owner) = state(data.path());
    for _ in 0..3 * MAX_CONCURRENT_CALLS {
        let (started, is_started) = oneshot::channel();
        let whose = owner.clone();
        let work = state.run_read(&owner, move |state| {
            let database = state.data_dir().open_shared(&whose)?;
            let _ = started.send(());
            database.read(|db| Ok(db.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))?))
        });
        tokio::select! {
            done = work => panic!("{done:?}"),
            started = is_started => started.unwrap(),
        }
    }
    state.run_read(&owner, |_| Ok(())).await.unwrap();
}

#[tokio::test]
async fn a_call_that_waits_too_long_for_its_turn_is_told() {
    let data = tempfile::tempdir().unwrap();
    let (mut state, owner) = state(data.path());
    let shared = Arc::get_mut(&mut state.shared).unwrap();
    shared.config.call_timeout = Duration::from_millis(1);
    let mut held = Vec::new();
    for _ in 0..MAX_CONCURRENT_CALLS {
        held.push(state.shared.call_slots.acquire(&owner).await.unwrap());
    }
    let error = state.run_write(&owner, |_| Ok(())).await.unwrap_err();
    assert!(matches!(error, ContextError::TimedOut(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn files_are_closed_when_nothing_happens() {
    let data = tempfile::tempdir().unwrap();
    let (state, owner) = state(data.path());
    let whose = owner.clone();
    let open = move |state: &AppState| state.data_dir().open_shared(&whose).map(drop);
    state.run_write(&owner, open).await.unwrap();
    assert_eq!(state.data_dir().open_files(), 1);
    for _ in 0..1_000 {
        if state.data_dir().open_files() == 0 {
            break;
        }
        tokio::time::sleep(IDLE_INTERVAL / 4).await;
    }
    assert_eq!(state.data_dir().open_files(), 0);
    let whose = owner.clone();
    let again = move |state: &AppState| state.data_dir().open_shared(&whose).map(drop);
    state.run_write(&owner, again).await.unwrap();
}
