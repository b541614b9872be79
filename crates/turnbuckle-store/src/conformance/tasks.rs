use std::time::Duration;

use bytes::Bytes;
use turnbuckle_protocol::types::TaskStatus;

use super::{TICK, ticks};
use crate::{
    InstanceId, InstanceSlot, NewTask, Store, StoreError, StoreLimits, TaskId, TaskInputResponse,
    TaskOutcome, TaskStore, TaskUpdate,
};

const LONG: Duration = Duration::from_secs(3_600);

/// Checks the tasks of a store.
pub async fn tasks(make: impl AsyncFn(StoreLimits) -> Store) {
    a_task_is_found_until_it_expires(&make).await;
    an_input_request_is_open_until_its_response(&make).await;
    a_key_is_used_once(&make).await;
    an_input_request_can_be_withdrawn(&make).await;
    an_ended_task_never_changes(&make).await;
    tasks_are_listed_by_owner(&make).await;
    tasks_are_limited(&make).await;
    finished_tasks_make_room(&make).await;
    a_discarded_response_is_not_stored(&make).await;
    expired_tasks_make_room(&make).await;
    bytes_are_limited(&make).await;
    several_updates_are_one(&make).await;
    unfinished_tasks_are_found_by_their_runner(&make).await;
}

fn new_task(owner: &str, ttl: Duration) -> NewTask {
    NewTask {
        owner: owner.into(),
        shared: false,
        ttl,
        poll_interval: TICK,
        runner: None,
    }
}

fn input_request(key: &str) -> TaskUpdate {
    TaskUpdate::AddInputRequest {
        key: key.to_owned(),
        request: "{}".into(),
    }
}

fn input_response(key: &str, json: &'static str) -> TaskUpdate {
    TaskUpdate::AddInputResponse {
        key: key.to_owned(),
        response: TaskInputResponse::Result(json.into()),
    }
}

fn end(status: TaskStatus, bytes: usize) -> TaskUpdate {
    TaskUpdate::End {
        status,
        message: None,
        outcome: TaskOutcome::Result(Bytes::from(vec![b'x'; bytes])),
    }
}

async fn begin(tasks: &dyn TaskStore, owner: &str) -> TaskId {
    tasks.create(new_task(owner, LONG)).await.unwrap().id
}

async fn status(tasks: &dyn TaskStore, id: &TaskId) -> TaskStatus {
    tasks.load(id).await.unwrap().unwrap().status
}

async fn a_task_is_found_until_it_expires(make: &impl AsyncFn(StoreLimits) -> Store) {
    let tasks = make(StoreLimits::default()).await.tasks;
    let created = tasks.create(new_task("ada", TICK * 2)).await.unwrap();

    let found = tasks.load(&created.id).await.unwrap().unwrap();
    assert_eq!(found, created);
    assert_eq!(found.status, TaskStatus::Working);
    let unknown = TaskId::generate().unwrap();
    assert_eq!(tasks.load(&unknown).await.unwrap(), None);

    ticks(3).await;

    assert_eq!(tasks.load(&created.id).await.unwrap(), None);
    assert_eq!(
        tasks.update(&created.id, input_request("k")).await.unwrap(),
        None
    );
    assert!(tasks.list("ada", None, 10).await.unwrap().is_empty());
    tasks.sweep().await.unwrap();
}

async fn an_input_request_is_open_until_its_response(make: &impl AsyncFn(StoreLimits) -> Store) {
    let tasks = make(StoreLimits::default()).await.tasks;
    let id = begin(&*tasks, "ada").await;

    tasks
        .update(&id, input_request("a"))
        .await
        .unwrap()
        .unwrap();
    let both = tasks
        .update(&id, input_request("b"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(both.status, TaskStatus::InputRequired);
    assert_eq!(both.input_requests.len(), 2);

    let one = tasks
        .update(&id, input_response("a", "1"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(one.status, TaskStatus::InputRequired);
    assert_eq!(
        one.input_response("a"),
        Some(&TaskInputResponse::Result("1".into()))
    );
    let none = tasks
        .update(&id, input_response("b", "2"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(none.status, TaskStatus::Working);
    assert!(none.input_requests.is_empty());
    // A closed input request is not answered again.
    assert_eq!(
        tasks.update(&id, input_response("b", "3")).await.unwrap(),
        None
    );
    assert_eq!(
        tasks.update(&id, input_response("c", "3")).await.unwrap(),
        None
    );
}

async fn a_key_is_used_once(make: &impl AsyncFn(StoreLimits) -> Store) {
    let tasks = make(StoreLimits::default()).await.tasks;
    let id = begin(&*tasks, "ada").await;

    tasks
        .update(&id, input_request("a"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(tasks.update(&id, input_request("a")).await.unwrap(), None);
    tasks
        .update(&id, input_response("a", "1"))
        .await
        .unwrap()
        .unwrap();

    assert_eq!(tasks.update(&id, input_request("a")).await.unwrap(), None);
    assert_eq!(status(&*tasks, &id).await, TaskStatus::Working);
}

async fn an_input_request_can_be_withdrawn(make: &impl AsyncFn(StoreLimits) -> Store) {
    let tasks = make(StoreLimits::default()).await.tasks;
    let id = begin(&*tasks, "ada").await;
    tasks
        .update(&id, input_request("a"))
        .await
        .unwrap()
        .unwrap();

    let key = "a".to_owned();
    let change = TaskUpdate::WithdrawInputRequest { key };
    let record = tasks.update(&id, change).await.unwrap().unwrap();

    assert_eq!(record.status, TaskStatus::Working);
    assert_eq!(
        tasks.update(&id, input_response("a", "1")).await.unwrap(),
        None
    );
}

async fn an_ended_task_never_changes(make: &impl AsyncFn(StoreLimits) -> Store) {
    let tasks = make(StoreLimits::default()).await.tasks;
    for last in [
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
    ] {
        let id = begin(&*tasks, "ada").await;
        tasks
            .update(&id, input_request("a"))
            .await
            .unwrap()
            .unwrap();
        tasks.update(&id, end(last, 1)).await.unwrap().unwrap();

        for change in [
            input_request("b"),
            input_response("a", "1"),
            TaskUpdate::SetMessage("late".to_owned()),
            end(TaskStatus::Completed, 2),
        ] {
            assert_eq!(tasks.update(&id, change).await.unwrap(), None);
        }
        let record = tasks.load(&id).await.unwrap().unwrap();
        assert_eq!(record.status, last);
        assert!(record.input_requests.is_empty());
    }
}

async fn tasks_are_listed_by_owner(make: &impl AsyncFn(StoreLimits) -> Store) {
    let tasks = make(StoreLimits::default()).await.tasks;
    let mut ada = Vec::new();
    for _ in 0..5 {
        ada.push(tasks.create(new_task("ada", LONG)).await.unwrap().number);
        begin(&*tasks, "bob").await;
    }
    let listed = async |after, limit| {
        let page = tasks.list("ada", after, limit).await.unwrap();
        page.iter().map(|task| task.number).collect::<Vec<_>>()
    };

    assert_eq!(listed(None, 10).await, ada);
    assert_eq!(listed(None, 2).await, ada[..2]);
    assert_eq!(listed(Some(ada[1]), 2).await, ada[2..4]);
    assert!(listed(Some(ada[4]), 2).await.is_empty());
    assert!(listed(Some(u64::MAX), 2).await.is_empty());
    assert_eq!(tasks.list("eve", None, 10).await.unwrap(), []);
}

async fn tasks_are_limited(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.tasks.max_tasks = 3;
    limits.tasks.max_tasks_per_owner = 1;
    let tasks = make(limits).await.tasks;
    begin(&*tasks, "ada").await;

    let error = tasks.create(new_task("ada", LONG)).await.unwrap_err();
    assert!(matches!(error, StoreError::TooMany { limit: 1, .. }));
    let many = NewTask {
        shared: true,
        ..new_task("anyone", LONG)
    };
    tasks.create(many.clone()).await.unwrap();
    tasks.create(many.clone()).await.unwrap();
    let error = tasks.create(many).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }));
}

async fn finished_tasks_make_room(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.tasks.max_tasks = 3;
    limits.tasks.max_tasks_per_owner = 2;
    let tasks = make(limits).await.tasks;
    let (old, new) = (begin(&*tasks, "ada").await, begin(&*tasks, "ada").await);
    let completed = end(TaskStatus::Completed, 1);
    tasks
        .update(&new, completed.clone())
        .await
        .unwrap()
        .unwrap();

    // Only finished tasks of the same owner are removed.
    let third = begin(&*tasks, "ada").await;
    assert_eq!(tasks.load(&new).await.unwrap(), None);
    assert!(tasks.load(&old).await.unwrap().is_some());
    let many = NewTask {
        shared: true,
        ..new_task("anyone", LONG)
    };
    let shared = tasks.create(many).await.unwrap().id;
    let error = tasks.create(new_task("bob", LONG)).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }));

    // Finished tasks of shared owners are removed for any owner.
    tasks
        .update(&shared, completed.clone())
        .await
        .unwrap()
        .unwrap();
    begin(&*tasks, "bob").await;
    assert_eq!(tasks.load(&shared).await.unwrap(), None);
    // Tasks of other owners are never removed.
    tasks.update(&third, completed).await.unwrap().unwrap();
    let error = tasks.create(new_task("bob", LONG)).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }));
}

async fn a_discarded_response_is_not_stored(make: &impl AsyncFn(StoreLimits) -> Store) {
    let tasks = make(StoreLimits::default()).await.tasks;
    let id = begin(&*tasks, "ada").await;
    tasks
        .update(&id, input_request("a"))
        .await
        .unwrap()
        .unwrap();
    let stored = tasks
        .update(&id, input_response("a", "12345"))
        .await
        .unwrap();

    let key = "a".to_owned();
    let discarded = tasks
        .update(&id, TaskUpdate::DiscardInputResponse { key })
        .await
        .unwrap();

    let (stored, discarded) = (stored.unwrap(), discarded.unwrap());
    assert_eq!(discarded.content_bytes(), stored.content_bytes() - 5);
    assert!(discarded.changes > stored.changes);
    assert_eq!(tasks.update(&id, input_request("a")).await.unwrap(), None);
}

async fn expired_tasks_make_room(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.tasks.max_tasks = 1;
    let tasks = make(limits).await.tasks;
    tasks.create(new_task("ada", TICK)).await.unwrap();

    ticks(2).await;

    begin(&*tasks, "bob").await;
}

async fn bytes_are_limited(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.tasks.max_task_bytes = 100;
    limits.tasks.max_total_bytes = 150;
    let tasks = make(limits).await.tasks;
    let (one, two) = (begin(&*tasks, "ada").await, begin(&*tasks, "ada").await);
    let completed = |bytes| end(TaskStatus::Completed, bytes);

    let error = tasks.update(&one, completed(101)).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { limit: 100, .. }));
    tasks.update(&one, completed(100)).await.unwrap().unwrap();
    let error = tasks.update(&two, completed(51)).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }));

    assert_eq!(status(&*tasks, &two).await, TaskStatus::Working);
    let three = begin(&*tasks, "ada").await;
    let failed = TaskUpdate::End {
        status: TaskStatus::Failed,
        message: None,
        outcome: TaskOutcome::Error(Bytes::from(vec![b'x'; 60])),
    };
    // Ending with an error always succeeds.
    tasks.update(&three, failed).await.unwrap().unwrap();
    let error = tasks.update(&two, completed(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }));
}

async fn several_updates_are_one(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.tasks.max_task_bytes = 100;
    let tasks = make(limits).await.tasks;
    let id = begin(&*tasks, "ada").await;
    let both = TaskUpdate::Several(vec![input_request("a"), input_request("b")]);

    let asked = tasks.update(&id, both.clone()).await.unwrap().unwrap();
    let repeated = tasks.update(&id, both).await.unwrap();
    let answers = ["c", "a", "a", "b"].map(|key| input_response(key, "1"));
    let answers = TaskUpdate::Several(answers.to_vec());
    let answered = tasks.update(&id, answers).await.unwrap().unwrap();

    assert_eq!(asked.input_requests.len(), 2);
    assert_eq!(repeated, None);
    assert_eq!(answered.changes, asked.changes + 1);
    assert_eq!(answered.input_responses.len(), 2);
    assert_eq!(answered.status, TaskStatus::Working);
    let message = TaskUpdate::SetMessage("half".to_owned());
    let too_large = TaskUpdate::Several(vec![message, end(TaskStatus::Completed, 101)]);
    let error = tasks.update(&id, too_large).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }));
    let record = tasks.load(&id).await.unwrap().unwrap();
    assert_eq!(record, answered, "all or nothing");
    let message = TaskUpdate::SetMessage("late".to_owned());
    let ends = TaskUpdate::Several(vec![end(TaskStatus::Completed, 1), message]);
    let ended = tasks.update(&id, ends).await.unwrap().unwrap();
    assert_eq!(ended.message, None);
    assert_eq!(
        tasks
            .update(&id, TaskUpdate::Several(vec![]))
            .await
            .unwrap(),
        None
    );
}

async fn unfinished_tasks_are_found_by_their_runner(make: &impl AsyncFn(StoreLimits) -> Store) {
    let tasks = make(StoreLimits::default()).await.tasks;
    let slot = |number| InstanceSlot::new(number).unwrap();
    let runner = |slot, nonce| InstanceId { slot, nonce };
    let (one, same_slot, other) = (
        runner(slot(7), 1),
        runner(slot(7), u64::MAX),
        runner(slot(8), 1),
    );
    let create = async |runner, ttl| {
        let task = NewTask {
            runner,
            ..new_task("ada", ttl)
        };
        tasks.create(task).await.unwrap()
    };
    let first = create(Some(one), LONG).await;
    let second = create(Some(one), LONG).await;
    let expiring = create(Some(one), TICK * 2).await;
    let of_other = create(Some(other), LONG).await;
    create(None, LONG).await;
    let of_runner = async |runner| {
        let mut found = tasks.of_runner(&runner).await.unwrap();
        found.sort_unstable();
        found
    };
    let sorted = |mut ids: Vec<TaskId>| {
        ids.sort_unstable();
        ids
    };

    assert_eq!(first.runner, Some(one));
    let loaded = tasks.load(&first.id).await.unwrap().unwrap();
    assert_eq!(loaded.runner, Some(one));
    let all = sorted(vec![first.id, second.id, expiring.id]);
    assert_eq!(of_runner(one).await, all);
    assert_eq!(of_runner(same_slot).await, []);
    assert_eq!(of_runner(other).await, [of_other.id]);

    ticks(3).await;
    let asked = tasks.update(&first.id, input_request("a")).await.unwrap();
    assert_eq!(asked.unwrap().runner, Some(one));
    let ended = end(TaskStatus::Completed, 1);
    tasks.update(&second.id, ended).await.unwrap().unwrap();

    assert_eq!(of_runner(one).await, [first.id]);
}
