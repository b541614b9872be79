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

async fn tell(endpoint: &Endpoint, audience: &[(SessionId, Arc<Presence>)], change: Change) {
    let change = Ok(Announcement::new(change));
    tell_some(endpoint, audience, &AtomicUsize::new(0), &change).await;
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
async fn a_session_that_was_told_of_lists_is_looked_at_only_for_other_changes() {
    let (endpoint, present) = session().await;
    let reader = open(&present).await.attach();
    let audience = endpoint.presences.audience();
    tell(&endpoint, &audience, Change::ToolsChanged).await;
    assert!(takes(&reader));

    let sessions = &endpoint.server.store_ref().sessions;
    sessions.remove(&present.session).await.unwrap();
    tell(&endpoint, &audience, Change::PromptsChanged).await;
    assert!(takes(&reader), "its end is found out by whoever reads");
    let uri = "test://a".into();
    tell(&endpoint, &audience, Change::ResourceUpdated { uri }).await;

    assert!(endpoint.presences.has_no_audience());
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
