use std::{
    collections::VecDeque,
    task::{Context, Waker},
};

use turnbuckle_protocol::Revision;
use turnbuckle_store::{Change, ClientProfile, SessionChange, SessionRecord};

use super::*;
use crate::{
    Server,
    http::{
        Options,
        delivery::Sink,
        feed::{Attached, Taken},
        presence::{Presences, Present},
    },
};

async fn session() -> (Arc<Endpoint>, Present) {
    let server = Server::new("test", "1.0.0");
    let endpoint = Arc::new(Endpoint::new(server, Options::default(), None));
    let record = SessionRecord::new(None, Revision::V2025_11_25, ClientProfile::default());
    let sessions = &endpoint.server.store_ref().sessions;
    let id = sessions.create(record).await.unwrap();
    let change = SessionChange::Initialized;
    sessions.update(&id, change).await.unwrap().unwrap();
    let present = Presences::enter(&endpoint, id);
    (endpoint, present)
}

/// Opens a stream, as GET does.
async fn open(present: &Present) -> Arc<Feed> {
    let feed = Sink::open(present).await.unwrap().feed;
    present.presence.general.add(&feed);
    let presences = &present.endpoint.presences;
    presences.join(present.session, &present.presence);
    feed
}

async fn tell(endpoint: &Endpoint, audience: &[Seat], change: Change) {
    tell_all(endpoint, audience, &Ok(Announcement::new(change))).await;
}

/// Says whether an event waits; it is taken.
fn takes(reader: &Attached) -> bool {
    let taken = reader.poll_take(&Context::from_waker(Waker::noop()), &mut VecDeque::new());
    matches!(taken, Poll::Ready(Taken::Event(_)))
}

#[tokio::test]
async fn a_stream_that_is_opened_while_others_are_told_is_told_in_place_of_the_older() {
    for is_told_before in [false, true] {
        let (endpoint, present) = session().await;
        let older = open(&present).await.attach();
        let audience = endpoint.presences.audience();
        if is_told_before {
            tell(&endpoint, &audience, Change::ToolsChanged).await;
            assert!(takes(&older));
        }
        let newer = open(&present).await.attach();

        tell(&endpoint, &audience, Change::ToolsChanged).await;

        assert!(takes(&newer) && !takes(&older), "{is_told_before}");
    }
}

#[tokio::test]
async fn a_stream_that_the_store_lost_ends_and_another_is_told() {
    let (endpoint, present) = session().await;
    let older = open(&present).await.attach();
    let newer = open(&present).await;
    let reader = newer.attach();
    let events = &endpoint.server.store_ref().events;
    let (session, stream) = (&present.session, &newer.stream);
    events.finish(session, stream).await.unwrap();

    let audience = endpoint.presences.audience();
    tell(&endpoint, &audience, Change::ToolsChanged).await;

    assert!(takes(&older));
    let end = reader.poll_take(&Context::from_waker(Waker::noop()), &mut VecDeque::new());
    assert!(matches!(end, Poll::Ready(Taken::End)));
}

#[tokio::test]
async fn the_only_stream_is_found_lost_though_it_was_told_before() {
    let (endpoint, present) = session().await;
    let feed = open(&present).await;
    let reader = feed.attach();
    let audience = endpoint.presences.audience();
    tell(&endpoint, &audience, Change::ToolsChanged).await;
    assert!(takes(&reader));
    let events = &endpoint.server.store_ref().events;
    events.finish(&present.session, &feed.stream).await.unwrap();

    tell(&endpoint, &audience, Change::ToolsChanged).await;

    assert!(endpoint.presences.has_no_audience());
    let newer = open(&present).await.attach();
    let audience = endpoint.presences.audience();
    tell(&endpoint, &audience, Change::ToolsChanged).await;
    assert!(takes(&newer) && !takes(&reader));
}

#[tokio::test]
async fn the_stream_that_is_left_is_told_when_another_has_gone() {
    let (endpoint, present) = session().await;
    let older = open(&present).await;
    let reader = older.attach();
    let newer = open(&present).await;
    tell(
        &endpoint,
        &endpoint.presences.audience(),
        Change::ToolsChanged,
    )
    .await;
    assert!(takes(&reader), "the newer has no reader");

    finish(&endpoint, &present.session, &present.presence, &newer).await;
    present.presence.general.remove(&newer);
    assert!(older.takes_lists() && !newer.takes_lists());
    tell(
        &endpoint,
        &endpoint.presences.audience(),
        Change::ToolsChanged,
    )
    .await;

    assert!(takes(&reader));
}

#[tokio::test]
async fn who_is_told_is_listed_anew_when_a_stream_comes_or_goes() {
    let (endpoint, present) = session().await;
    let feed = open(&present).await;
    let list = endpoint.presences.audience();
    assert!(Arc::ptr_eq(&list, &endpoint.presences.audience()));

    open(&present).await;
    let with_another = endpoint.presences.audience();
    assert!(!Arc::ptr_eq(&list, &with_another));

    present.presence.general.remove(&feed);
    let presences = &endpoint.presences;
    presences.tidy(&present.session, &present.presence);
    assert!(!Arc::ptr_eq(&with_another, &presences.audience()));
    presences.close(&present.session);
    assert!(presences.audience().is_empty());
}

#[tokio::test]
async fn everybody_is_told_once_however_many_there_are() {
    let (endpoint, first) = session().await;
    let record = SessionRecord::new(None, Revision::V2025_11_25, ClientProfile::default());
    let sessions = &endpoint.server.store_ref().sessions;
    let mut readers = vec![(open(&first).await.attach(), first)];
    for _ in 0..2 * TOGETHER {
        let id = sessions.create(record.clone()).await.unwrap();
        let change = SessionChange::Initialized;
        sessions.update(&id, change).await.unwrap().unwrap();
        let present = Presences::enter(&endpoint, id);
        readers.push((open(&present).await.attach(), present));
    }

    for _ in 0..2 {
        tell(
            &endpoint,
            &endpoint.presences.audience(),
            Change::ToolsChanged,
        )
        .await;

        for (reader, _) in &readers {
            assert!(takes(reader) && !takes(reader));
        }
    }
}

#[tokio::test]
async fn a_session_that_was_told_of_lists_is_looked_at_only_for_other_changes() {
    for streams in [1, 2] {
        let (endpoint, present) = session().await;
        let mut readers = Vec::new();
        for _ in 0..streams {
            readers.push(open(&present).await.attach());
        }
        let newest = readers.last().unwrap();
        let audience = endpoint.presences.audience();
        tell(&endpoint, &audience, Change::ToolsChanged).await;
        assert!(takes(newest));

        let sessions = &endpoint.server.store_ref().sessions;
        sessions.remove(&present.session).await.unwrap();
        tell(&endpoint, &audience, Change::PromptsChanged).await;
        assert!(takes(newest), "its end is found out by whoever reads");
        let uri = "test://a".into();
        tell(&endpoint, &audience, Change::ResourceUpdated { uri }).await;

        assert!(endpoint.presences.has_no_audience());
    }
}

#[tokio::test]
async fn who_is_told_is_not_listed_anew_for_what_has_no_stream_or_keeps_it() {
    let (endpoint, present) = session().await;
    let _reader = open(&present).await.attach();
    let list = endpoint.presences.audience();

    end_streams(&endpoint, |streams| streams.expire(Instant::now())).await;
    let silent = SessionId::generate().unwrap();
    let _silent = Presences::enter(&endpoint, silent);
    endpoint.presences.close(&silent);

    assert!(Arc::ptr_eq(&list, &endpoint.presences.audience()));
}

#[tokio::test]
async fn the_streams_of_a_session_go_with_it() {
    let (endpoint, present) = session().await;
    let _feeds = [open(&present).await, open(&present).await];
    assert_eq!(endpoint.presences.audience().len(), 1);

    endpoint.presences.close(&present.session);

    assert!(endpoint.presences.has_no_audience());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_reads_goes_after_a_while() {
    let (endpoint, present) = session().await;
    open(&present).await;
    start(&endpoint);
    drop(present);

    tokio::time::sleep(Duration::from_secs(4 * 60)).await;
    assert_eq!(endpoint.presences.audience().len(), 1);
    tokio::time::sleep(Duration::from_secs(2 * 60)).await;

    assert!(endpoint.presences.has_no_audience());
    assert_eq!(endpoint.presences.len(), 0);
    assert!(lock(&endpoint.pump.task).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_opened_while_its_session_ended_goes_soon() {
    let (endpoint, present) = session().await;
    endpoint.presences.close(&present.session);
    let _reader = open(&present).await.attach();
    start(&endpoint);
    assert!(!endpoint.presences.has_no_audience());

    tokio::time::sleep(Duration::from_secs(60)).await;

    assert!(endpoint.presences.has_no_audience());
}
