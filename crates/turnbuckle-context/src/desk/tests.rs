use tokio::sync::oneshot;

use super::*;

/// A question that SQLite would never finish.
const ENDLESS: &str =
    "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

fn desk(data: &Path) -> (Desk, Owner) {
    let owner = Owner::user("ada");
    let habits = Habits {
        embedder: None,
        half_life: HalfLife::default(),
        first_index: Duration::from_secs(5),
        deadline: Duration::from_secs(3_600),
        index_deadline: Duration::from_secs(3_600),
        quota: None,
    };
    let desk = Desk::new(Library::new(data), Owners::One(owner.clone()), habits);
    (desk, owner)
}

#[tokio::test]
async fn work_whose_caller_has_gone_leaves_its_place() {
    let data = tempfile::tempdir().unwrap();
    let (desk, owner) = desk(data.path());
    for _ in 0..3 * AT_ONCE {
        let (started, is_started) = oneshot::channel();
        let whose = owner.clone();
        let work = desk.block_read(&owner, move |desk| {
            let database = desk.library().shared(&whose)?;
            let _ = started.send(());
            database.read(|db| Ok(db.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))?))
        });
        tokio::select! {
            done = work => panic!("{done:?}"),
            started = is_started => started.unwrap(),
        }
    }
    desk.block_read(&owner, |_| Ok(())).await.unwrap();
}

#[tokio::test]
async fn a_call_that_waits_too_long_for_its_turn_is_told() {
    let data = tempfile::tempdir().unwrap();
    let (mut desk, owner) = desk(data.path());
    let shared = Arc::get_mut(&mut desk.shared).unwrap();
    shared.habits.deadline = Duration::from_millis(1);
    let mut held = Vec::new();
    for _ in 0..AT_ONCE {
        held.push(desk.shared.short.acquire(&owner).await.unwrap());
    }
    let error = desk.block(&owner, |_| Ok(())).await.unwrap_err();
    assert!(matches!(error, ContextError::TimedOut(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn files_are_closed_when_nothing_happens() {
    let data = tempfile::tempdir().unwrap();
    let (desk, owner) = desk(data.path());
    let whose = owner.clone();
    let open = move |desk: &Desk| desk.library().shared(&whose).map(drop);
    desk.block(&owner, open).await.unwrap();
    assert_eq!(desk.library().open_files(), 1);
    for _ in 0..1_000 {
        if desk.library().open_files() == 0 {
            break;
        }
        tokio::time::sleep(IDLE / 4).await;
    }
    assert_eq!(desk.library().open_files(), 0);
    let whose = owner.clone();
    let again = move |desk: &Desk| desk.library().shared(&whose).map(drop);
    desk.block(&owner, again).await.unwrap();
}
