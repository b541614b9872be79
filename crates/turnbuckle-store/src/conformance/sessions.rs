use std::sync::Arc;

use turnbuckle_protocol::{
    Principal, Revision,
    types::{Implementation, LogLevel},
};

use super::{TICK, ticks};
use crate::{
    ClientProfile, Position, RequiredSpace, SessionId, SessionOwner, SessionRecord, SessionStore,
    SessionUpdate, Store, StoreError, StoreLimits,
};

/// Checks the sessions of a store.
pub async fn sessions(make: impl AsyncFn(StoreLimits) -> Store) {
    a_session_is_loaded_as_it_was_created(&make).await;
    an_unknown_session_is_none(&make).await;
    changes_are_remembered(&make).await;
    a_loaded_record_does_not_change(&make).await;
    a_removed_session_is_gone(&make).await;
    an_idle_session_expires(&make).await;
    an_update_keeps_a_session_alive(&make).await;
    loading_a_session_does_not_keep_it_alive(&make).await;
    a_request_keeps_a_session_alive_if_the_store_says_so(&make).await;
    touched_sessions_stay_alive(&make).await;
    a_touch_tells_which_sessions_exist(&make).await;
    a_session_is_touched_before_it_expires(&make).await;
    each_update_raises_the_version(&make).await;
    the_turns_of_streams_are_stored(&make).await;
    a_session_that_is_never_initialized_expires_sooner(&make).await;
    a_sweep_reports_each_expired_session_once(&make).await;
    live_sessions_are_not_removed_to_make_room(&make).await;
    expired_sessions_make_room_and_are_still_reported(&make).await;
    subscriptions_are_limited(&make).await;
    client_data_is_limited(&make).await;
    the_sessions_of_an_owner_are_limited(&make).await;
    an_owner_at_its_limit_loses_its_own_oldest_session(&make).await;
    expired_sessions_do_not_count_for_their_owner(&make).await;
    a_full_store_evicts_from_the_largest_owner(&make).await;
    a_session_in_use_is_not_evicted(&make).await;
    uninitialized_sessions_are_evicted_first(&make).await;
    client_data_of_one_owner_is_limited(&make).await;
    an_owner_at_its_limit_of_bytes_loses_its_own_session(&make).await;
    a_store_out_of_bytes_evicts_from_the_owner_with_most_bytes(&make).await;
}

pub(super) fn record() -> SessionRecord {
    SessionRecord::new(None, Revision::LATEST_LEGACY, ClientProfile::default())
}

/// A session of a caller without other sessions.
fn single_session(number: usize) -> SessionRecord {
    record().owned_by(SessionOwner::caller(format!("single_session {number}")))
}

fn named(client: &str) -> SessionRecord {
    let profile = ClientProfile {
        info: Some(Implementation::new(client, "1.0")),
        ..ClientProfile::default()
    };
    SessionRecord::new(None, Revision::V2025_03_26, profile)
}

/// Sessions expire after two ticks before initialization, and after five ticks afterwards.
fn short_lived() -> StoreLimits {
    let mut limits = StoreLimits::default();
    limits.sessions.idle_before_initialized = TICK * 2;
    limits.sessions.idle = TICK * 5;
    limits
}

async fn initialized(sessions: &Arc<dyn SessionStore>) -> SessionId {
    let id = sessions.create(record()).await.unwrap();
    sessions
        .update(&id, SessionUpdate::Initialized)
        .await
        .unwrap()
        .unwrap();
    id
}

async fn is_there(sessions: &Arc<dyn SessionStore>, id: &SessionId) -> bool {
    sessions.load(id).await.unwrap().is_some()
}

async fn a_session_is_loaded_as_it_was_created(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(StoreLimits::default()).await.sessions;
    let mut created = named("editor");
    created.principal = Some(Principal::new("https://issuer.example", "ann"));

    let id = sessions.create(created).await.unwrap();
    let other = sessions.create(record()).await.unwrap();
    let loaded = sessions.load(&id).await.unwrap().unwrap();

    assert_ne!(id, other);
    assert_eq!(loaded.revision, Revision::V2025_03_26);
    assert_eq!(loaded.client.info.as_ref().unwrap().name, "editor");
    assert_eq!(loaded.principal.as_ref().unwrap().subject, "ann");
    assert!(!loaded.initialized);
    assert_eq!(loaded.log_level, None);
    assert!(loaded.subscriptions.is_empty());
}

async fn an_unknown_session_is_none(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(StoreLimits::default()).await.sessions;
    let unknown = SessionId::generate().unwrap();

    assert!(sessions.load(&unknown).await.unwrap().is_none());
    let changed = sessions.update(&unknown, SessionUpdate::Initialized).await;
    assert!(changed.unwrap().is_none());
    assert!(!sessions.remove(&unknown).await.unwrap());
}

async fn changes_are_remembered(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(StoreLimits::default()).await.sessions;
    let id = initialized(&sessions).await;

    for change in [
        SessionUpdate::LogLevel(LogLevel::Warning),
        SessionUpdate::Subscribe("file:///b".into()),
        SessionUpdate::Subscribe("file:///a".into()),
        SessionUpdate::Subscribe("file:///a".into()),
        SessionUpdate::Unsubscribe("file:///b".into()),
        SessionUpdate::Unsubscribe("file:///never".into()),
    ] {
        assert!(sessions.update(&id, change).await.unwrap().is_some());
    }
    let loaded = sessions.load(&id).await.unwrap().unwrap();

    assert!(loaded.initialized);
    assert_eq!(loaded.log_level, Some(LogLevel::Warning));
    assert!(loaded.subscriptions.iter().eq(["file:///a"]));
}

async fn a_loaded_record_does_not_change(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(StoreLimits::default()).await.sessions;
    let id = sessions.create(record()).await.unwrap();

    let before = sessions.load(&id).await.unwrap().unwrap();
    let changed = sessions.update(&id, SessionUpdate::Initialized).await;

    assert!(!before.initialized);
    assert!(changed.unwrap().unwrap().initialized);
}

async fn a_removed_session_is_gone(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(StoreLimits::default()).await.sessions;
    let id = sessions.create(record()).await.unwrap();
    let other = sessions.create(record()).await.unwrap();

    assert!(sessions.remove(&id).await.unwrap());

    assert!(!sessions.remove(&id).await.unwrap());
    assert!(!is_there(&sessions, &id).await);
    assert!(is_there(&sessions, &other).await);
    assert!(sessions.sweep().await.unwrap().is_empty());
}

async fn an_idle_session_expires(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(short_lived()).await.sessions;
    let id = initialized(&sessions).await;

    ticks(6).await;

    assert!(!is_there(&sessions, &id).await);
    let changed = sessions.update(&id, SessionUpdate::Initialized).await;
    assert!(changed.unwrap().is_none());
    assert!(!sessions.remove(&id).await.unwrap());
}

async fn an_update_keeps_a_session_alive(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(short_lived()).await.sessions;
    let id = initialized(&sessions).await;

    for round in 0..6 {
        ticks(3).await;
        let change = SessionUpdate::Subscribe("file:///a".into());
        let updated = sessions.update(&id, change).await.unwrap();
        assert!(updated.is_some(), "round {round}");
        assert!(sessions.sweep().await.unwrap().is_empty());
    }
}

async fn loading_a_session_does_not_keep_it_alive(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(short_lived()).await.sessions;
    let id = initialized(&sessions).await;

    ticks(3).await;
    assert!(is_there(&sessions, &id).await);
    ticks(3).await;

    assert!(!is_there(&sessions, &id).await);
    assert_eq!(sessions.sweep().await.unwrap(), [id]);
}

/// Loads a session as a server does for a request.
async fn request(sessions: &Arc<dyn SessionStore>, id: &SessionId) -> Option<Arc<SessionRecord>> {
    let found = sessions.load_for_request(id).await.unwrap()?;
    if !found.is_touched {
        assert_eq!(sessions.touch(&[*id]).await.unwrap(), [true]);
    }
    Some(found.record)
}

async fn a_request_keeps_a_session_alive_if_the_store_says_so(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let sessions = make(short_lived()).await.sessions;
    let id = initialized(&sessions).await;

    for round in 0..4 {
        ticks(3).await;
        let record = request(&sessions, &id).await;
        assert!(
            record.is_some_and(|record| record.initialized),
            "round {round}"
        );
        assert!(sessions.sweep().await.unwrap().is_empty());
    }
    ticks(6).await;

    assert!(request(&sessions, &id).await.is_none());
}

async fn touched_sessions_stay_alive(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(short_lived()).await.sessions;
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(initialized(&sessions).await);
    }
    let (touched, idle) = ids.split_at(50);

    for _ in 0..3 {
        ticks(3).await;
        assert_eq!(sessions.touch(touched).await.unwrap(), [true; 50]);
    }

    for id in touched {
        assert!(is_there(&sessions, id).await);
    }
    let mut swept = sessions.sweep().await.unwrap();
    let mut idle = idle.to_vec();
    swept.sort();
    idle.sort();
    assert_eq!(swept, idle);
    ticks(6).await;
    assert_eq!(sessions.touch(touched).await.unwrap(), [false; 50]);
}

async fn a_touch_tells_which_sessions_exist(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(short_lived()).await.sessions;
    let expired = initialized(&sessions).await;
    ticks(6).await;
    let unknown = SessionId::generate().unwrap();
    let removed = sessions.create(record()).await.unwrap();
    assert!(sessions.remove(&removed).await.unwrap());
    let [one, two] = [initialized(&sessions).await, initialized(&sessions).await];

    let ids = [one, unknown, two, removed, expired, one];
    let found = sessions.touch(&ids).await.unwrap();

    assert_eq!(found, [true, false, true, false, false, true]);
    assert!(sessions.touch(&[]).await.unwrap().is_empty());
    assert!(!is_there(&sessions, &expired).await);
    assert!(!is_there(&sessions, &removed).await);
}

async fn a_session_is_touched_before_it_expires(make: &impl AsyncFn(StoreLimits) -> Store) {
    let limits = short_lived().sessions;
    let sessions = make(short_lived()).await.sessions;

    let interval = sessions.touch_interval();

    assert!(!interval.is_zero());
    assert!(interval <= limits.idle_before_initialized.min(limits.idle) / 8);
}

async fn each_update_raises_the_version(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(StoreLimits::default()).await.sessions;
    let id = sessions.create(record()).await.unwrap();
    let other = sessions.create(record()).await.unwrap();
    let mut version = sessions.load(&id).await.unwrap().unwrap().version;

    for change in [
        SessionUpdate::Initialized,
        SessionUpdate::LogLevel(LogLevel::Error),
        SessionUpdate::Subscribe("file:///a".into()),
        SessionUpdate::Unsubscribe("file:///a".into()),
    ] {
        let updated = sessions.update(&id, change).await.unwrap().unwrap();
        sessions.touch(&[id]).await.unwrap();
        let loaded = request(&sessions, &id).await.unwrap();
        assert!(updated.version > version);
        assert_eq!(loaded.version, updated.version);
        version = updated.version;
    }
    let other = sessions.load(&other).await.unwrap().unwrap();
    assert!(other.version < version, "each session has its own");
}

async fn the_turns_of_streams_are_stored(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(StoreLimits::default()).await.sessions;
    let id = sessions.create(record()).await.unwrap();
    let mut expected = record().stream_turns;
    let steps = [
        (None, 3, 7),
        (None, 5, u64::MAX),
        // An older stream gets no turn from another endpoint.
        (Some(1), 8, 7),
        (Some(1), 9, u64::MAX),
        (Some(2), 9, 7),
    ];

    for (generation, after, sender) in steps {
        let after = Position::new(after);
        let update = SessionUpdate::BeginTurn {
            generation,
            after,
            sender,
        };
        expected.begin(generation, after, sender);
        let updated = sessions.update(&id, update).await.unwrap().unwrap();
        assert_eq!(updated.stream_turns, expected);
        let loaded = sessions.load(&id).await.unwrap().unwrap();
        assert_eq!(loaded.stream_turns, expected);
    }

    assert_eq!(expected.turns().len(), 4);
    assert_eq!(expected.newest_generation(), 2);
}

async fn a_session_that_is_never_initialized_expires_sooner(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let sessions = make(short_lived()).await.sessions;
    let hasty = sessions.create(record()).await.unwrap();
    let proper = initialized(&sessions).await;

    ticks(3).await;

    assert!(!is_there(&sessions, &hasty).await);
    assert!(is_there(&sessions, &proper).await);
}

async fn a_sweep_reports_each_expired_session_once(make: &impl AsyncFn(StoreLimits) -> Store) {
    let sessions = make(short_lived()).await.sessions;
    let mut expected = Vec::new();
    for _ in 0..20 {
        expected.push(sessions.create(record()).await.unwrap());
    }
    let kept = initialized(&sessions).await;

    ticks(3).await;
    let mut swept = sessions.sweep().await.unwrap();

    expected.sort();
    swept.sort();
    assert_eq!(swept, expected);
    assert!(sessions.sweep().await.unwrap().is_empty());
    assert!(is_there(&sessions, &kept).await);
}

async fn live_sessions_are_not_removed_to_make_room(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions = 3;
    let sessions = make(limits).await.sessions;
    let first = sessions.create(single_session(0)).await.unwrap();
    for number in 1..3 {
        sessions.create(single_session(number)).await.unwrap();
    }

    let refused = sessions.create(single_session(3)).await;

    assert!(matches!(refused, Err(StoreError::Full { .. })));
    assert!(sessions.remove(&first).await.unwrap());
    sessions.create(record()).await.unwrap();
}

async fn expired_sessions_make_room_and_are_still_reported(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let mut limits = short_lived();
    limits.sessions.max_sessions = 2;
    let sessions = make(limits).await.sessions;
    let live = initialized(&sessions).await;
    let expired = sessions.create(record()).await.unwrap();
    ticks(3).await;

    let fresh = sessions.create(record()).await.unwrap();
    let refused = sessions.create(single_session(1)).await;

    assert!(matches!(refused, Err(StoreError::Full { .. })));
    assert!(is_there(&sessions, &live).await);
    assert!(is_there(&sessions, &fresh).await);
    assert_eq!(sessions.sweep().await.unwrap(), [expired]);
}

async fn subscriptions_are_limited(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.sessions.max_subscriptions = 3;
    limits.sessions.max_uri_bytes = 10;
    limits.sessions.max_subscription_bytes = 25;
    let sessions = make(limits).await.sessions;
    let id = initialized(&sessions).await;
    let subscribe = async |uri: &str| {
        sessions
            .update(&id, SessionUpdate::Subscribe(uri.into()))
            .await
    };

    let too_long = subscribe("12345678901").await;
    subscribe("1234567890").await.unwrap();
    subscribe("2234567890").await.unwrap();
    let too_much = subscribe("323456").await;
    subscribe("3").await.unwrap();
    let too_many = subscribe("4").await;

    assert!(matches!(too_long, Err(StoreError::TooLarge { .. })));
    assert!(matches!(too_much, Err(StoreError::TooLarge { .. })));
    assert!(matches!(
        too_many,
        Err(StoreError::TooMany { limit: 3, .. })
    ));
    // An existing subscription takes no further room, and unsubscribing frees room.
    subscribe("3").await.unwrap();
    let change = SessionUpdate::Unsubscribe("3".into());
    sessions.update(&id, change).await.unwrap();
    let now = subscribe("4").await.unwrap().unwrap();
    assert!(
        now.subscriptions
            .iter()
            .eq(["1234567890", "2234567890", "4"])
    );
}

fn record_of(owner: &SessionOwner) -> SessionRecord {
    record().owned_by(owner.clone())
}

async fn create(sessions: &Arc<dyn SessionStore>, owner: &SessionOwner) -> SessionId {
    sessions.create(record_of(owner)).await.unwrap()
}

async fn evict(sessions: &Arc<dyn SessionStore>, owner: &SessionOwner) -> Option<SessionId> {
    evict_unless(sessions, owner, &|_| false).await
}

async fn evict_unless(
    sessions: &Arc<dyn SessionStore>,
    owner: &SessionOwner,
    in_use: &(dyn Fn(&SessionId) -> bool + Send + Sync),
) -> Option<SessionId> {
    let record = record_of(owner);
    let needed = RequiredSpace::Session(&record);
    sessions.evict(needed, in_use).await.unwrap()
}

async fn the_sessions_of_an_owner_are_limited(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions = 20;
    limits.sessions.max_sessions_per_owner = 2;
    let sessions = make(limits).await.sessions;
    let (ann, proxy) = (SessionOwner::caller("ann"), SessionOwner::shared("proxy"));
    let first = create(&sessions, &ann).await;
    create(&sessions, &ann).await;

    let refused = sessions.create(record_of(&ann)).await;

    assert!(matches!(refused, Err(StoreError::TooMany { limit: 2, .. })));
    assert!(sessions.remove(&first).await.unwrap());
    create(&sessions, &ann).await;
    // A shared owner may use the whole store.
    for _ in 0..18 {
        create(&sessions, &proxy).await;
    }
    let refused = sessions.create(record_of(&proxy)).await;
    assert!(matches!(refused, Err(StoreError::Full { .. })));
    assert!(evict(&sessions, &proxy).await.is_some());
    create(&sessions, &proxy).await;
}

async fn an_owner_at_its_limit_loses_its_own_oldest_session(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions_per_owner = 3;
    let sessions = make(limits).await.sessions;
    let (ann, bob) = (SessionOwner::caller("ann"), SessionOwner::caller("bob"));
    let others = create(&sessions, &bob).await;
    let mut own = Vec::new();
    for _ in 0..3 {
        own.push(create(&sessions, &ann).await);
        ticks(1).await;
    }
    assert!(
        request(&sessions, &own[0]).await.is_some(),
        "and it is used again"
    );

    let ended = evict(&sessions, &ann).await;

    assert_eq!(ended, Some(own[1]));
    assert!(!is_there(&sessions, &own[1]).await);
    assert!(is_there(&sessions, &others).await);
    create(&sessions, &ann).await;
    assert_eq!(evict(&sessions, &bob).await, None, "bob may create more");
}

async fn expired_sessions_do_not_count_for_their_owner(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = short_lived();
    limits.sessions.max_sessions_per_owner = 1;
    let sessions = make(limits).await.sessions;
    let ann = SessionOwner::caller("ann");
    let expired = create(&sessions, &ann).await;
    ticks(3).await;

    create(&sessions, &ann).await;

    assert_eq!(sessions.sweep().await.unwrap(), [expired]);
}

async fn a_full_store_evicts_from_the_largest_owner(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions = 6;
    let sessions = make(limits).await.sessions;
    let [ann, bob, cid] = ["ann", "bob", "cid"].map(SessionOwner::caller);
    let small = create(&sessions, &ann).await;
    for _ in 0..3 {
        create(&sessions, &bob).await;
    }
    assert_eq!(evict(&sessions, &cid).await, None, "there is room");
    for _ in 0..2 {
        create(&sessions, &cid).await;
    }
    let newcomer = SessionOwner::caller("dee");

    for _ in 0..3 {
        let refused = sessions.create(record_of(&newcomer)).await;
        assert!(matches!(refused, Err(StoreError::Full { .. })));
        let ended = evict(&sessions, &newcomer).await.unwrap();
        assert_ne!(ended, small);
        create(&sessions, &newcomer).await;
    }

    // No owner has more sessions than the new one would have with a second one, so it replaced its own.
    assert!(is_there(&sessions, &small).await);
    let counted = sessions.sweep().await.unwrap();
    assert!(counted.is_empty(), "those that were ended are not named");
}

async fn a_session_in_use_is_not_evicted(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions = 5;
    let sessions = make(limits).await.sessions;
    let [ann, bob, cid] = ["ann", "bob", "cid"].map(SessionOwner::caller);
    let mut used = Vec::new();
    for _ in 0..3 {
        used.push(create(&sessions, &ann).await);
    }
    let idle = [create(&sessions, &bob).await, create(&sessions, &bob).await];

    let busy = used.clone();
    let ended = evict_unless(&sessions, &cid, &|id| busy.contains(id)).await;
    assert!(idle.contains(&ended.unwrap()), "of the next largest");
    create(&sessions, &cid).await;
    let ended = evict_unless(&sessions, &cid, &|_| true).await;
    assert_eq!(ended, None);

    let free = used.pop();
    let busy = used.clone();
    let ended = evict_unless(&sessions, &cid, &|id| busy.contains(id)).await;
    assert_eq!(ended, free);
    for id in &used {
        assert!(is_there(&sessions, id).await);
    }
}

async fn uninitialized_sessions_are_evicted_first(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions_per_owner = 3;
    let sessions = make(limits).await.sessions;
    let ann = SessionOwner::caller("ann");
    let established = create(&sessions, &ann).await;
    let change = SessionUpdate::Initialized;
    sessions.update(&established, change).await.unwrap();
    ticks(1).await;
    let older = create(&sessions, &ann).await;
    ticks(1).await;
    create(&sessions, &ann).await;

    let ended = evict(&sessions, &ann).await;

    assert_eq!(ended, Some(older));
}

async fn client_data_of_one_owner_is_limited(make: &impl AsyncFn(StoreLimits) -> Store) {
    const KIB: usize = 1024;
    let mut limits = StoreLimits::default();
    limits.sessions.max_extra_bytes = 1000 * KIB;
    limits.sessions.max_owner_bytes = 100 * KIB;
    let sessions = make(limits).await.sessions;
    let (ann, bob) = (SessionOwner::caller("ann"), SessionOwner::caller("bob"));
    let talkative = |owner: &SessionOwner| named(&"x".repeat(80 * KIB)).owned_by(owner.clone());
    let first = sessions.create(talkative(&ann)).await.unwrap();

    let refused = sessions.create(talkative(&ann)).await;

    assert!(matches!(refused, Err(StoreError::TooMany { .. })));
    assert_eq!(
        evict(&sessions, &ann).await,
        None,
        "there is room for a session with little client data"
    );
    sessions.create(talkative(&bob)).await.unwrap();
    let other = create(&sessions, &ann).await;
    let subscribe = async |number: usize| {
        let uri = format!("{number}{}", "x".repeat(7 * KIB));
        sessions.update(&other, SessionUpdate::Subscribe(uri)).await
    };
    for number in 0..3 {
        subscribe(number).await.unwrap().unwrap();
    }
    subscribe(0).await.unwrap().unwrap();
    let refused = subscribe(3).await;
    assert!(matches!(refused, Err(StoreError::TooMany { .. })));
    assert!(sessions.remove(&first).await.unwrap());
    subscribe(3).await.unwrap().unwrap();
}

async fn an_owner_at_its_limit_of_bytes_loses_its_own_session(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    const KIB: usize = 1024;
    let mut limits = StoreLimits::default();
    limits.sessions.max_extra_bytes = 1000 * KIB;
    limits.sessions.max_owner_bytes = 100 * KIB;
    let sessions = make(limits).await.sessions;
    let (ann, bob) = (SessionOwner::caller("ann"), SessionOwner::caller("bob"));
    let talkative = |owner: &SessionOwner| named(&"x".repeat(80 * KIB)).owned_by(owner.clone());
    sessions.create(talkative(&bob)).await.unwrap();
    let small = create(&sessions, &ann).await;
    ticks(1).await;
    let large = sessions.create(talkative(&ann)).await.unwrap();
    let wanted = talkative(&ann);
    let needed = RequiredSpace::Session(&wanted);
    assert!(sessions.create(wanted.clone()).await.is_err());

    assert_eq!(sessions.evict(needed, &|_| true).await.unwrap(), None);
    let ended = sessions.evict(needed, &|_| false).await.unwrap();

    assert_eq!(ended, Some(large), "the older one is too small to help");
    let large = sessions.create(wanted.clone()).await.unwrap();
    // A subscription gets room in the same way.
    let uri = "x".repeat(7 * KIB);
    let subscribe = |number: usize| SessionUpdate::Subscribe(format!("{number}{uri}"));
    for number in 0..3 {
        sessions.update(&small, subscribe(number)).await.unwrap();
    }
    assert!(sessions.update(&small, subscribe(3)).await.is_err());
    let (owner, uri) = (&ann, &*uri);
    let needed = RequiredSpace::Subscription { owner, uri };
    let ended = sessions.evict(needed, &|id| *id == small).await.unwrap();
    assert_eq!(ended, Some(large));
    sessions.update(&small, subscribe(3)).await.unwrap();
    assert_eq!(sessions.evict(needed, &|_| false).await.unwrap(), None);
}

async fn a_store_out_of_bytes_evicts_from_the_owner_with_most_bytes(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    const KIB: usize = 1024;
    let mut limits = StoreLimits::default();
    limits.sessions.max_extra_bytes = 200 * KIB;
    let sessions = make(limits).await.sessions;
    let [ann, bob] = ["ann", "bob"].map(SessionOwner::caller);
    let proxy = SessionOwner::shared("proxy");
    let with_client_bytes =
        |length: usize, owner: &SessionOwner| named(&"x".repeat(length)).owned_by(owner.clone());
    let others = sessions
        .create(with_client_bytes(30 * KIB, &bob))
        .await
        .unwrap();
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(
            sessions
                .create(with_client_bytes(45 * KIB, &proxy))
                .await
                .unwrap(),
        );
        ticks(1).await;
    }
    let wanted = with_client_bytes(20 * KIB, &ann);
    let needed = RequiredSpace::Session(&wanted);
    let refused = sessions.create(wanted.clone()).await;
    assert!(matches!(refused, Err(StoreError::Full { .. })));

    let ended = sessions.evict(needed, &|_| false).await.unwrap();

    assert_eq!(ended, Some(held[0]));
    sessions.create(wanted.clone()).await.unwrap();
    // The owner with most bytes makes room for itself.
    let wanted = with_client_bytes(45 * KIB, &proxy);
    let needed = RequiredSpace::Session(&wanted);
    assert!(sessions.create(wanted.clone()).await.is_err());
    let ended = sessions.evict(needed, &|_| false).await.unwrap();
    assert_eq!(ended, Some(held[1]));
    sessions.create(wanted).await.unwrap();
    // No session is removed if one alone does not free enough.
    let wanted = with_client_bytes(150 * KIB, &ann);
    let needed = RequiredSpace::Session(&wanted);
    assert_eq!(sessions.evict(needed, &|_| false).await.unwrap(), None);
    assert!(is_there(&sessions, &others).await);
}

async fn client_data_is_limited(make: &impl AsyncFn(StoreLimits) -> Store) {
    const KIB: usize = 1024;
    let mut limits = short_lived();
    limits.sessions.max_client_bytes = 100 * KIB;
    limits.sessions.max_extra_bytes = 200 * KIB;
    let sessions = make(limits).await.sessions;
    let talkative = |number| {
        let owner = single_session(number).owner;
        named(&"x".repeat(80 * KIB)).owned_by(owner)
    };

    let too_large = sessions.create(named(&"x".repeat(101 * KIB))).await;
    let first = sessions.create(talkative(0)).await.unwrap();
    sessions.create(talkative(1)).await.unwrap();
    let too_much = sessions.create(talkative(2)).await;

    assert!(matches!(too_large, Err(StoreError::TooLarge { .. })));
    assert!(matches!(too_much, Err(StoreError::Full { .. })));
    // Sessions within the free allowance still fit, and a removed session frees room for others.
    sessions.create(named("editor")).await.unwrap();
    assert!(sessions.remove(&first).await.unwrap());
    sessions.create(talkative(2)).await.unwrap();
    ticks(3).await;
    sessions.create(talkative(3)).await.unwrap();
}
