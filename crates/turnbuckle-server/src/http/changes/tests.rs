use std::{
    collections::VecDeque,
    task::{Context, Waker},
};

use turnbuckle_protocol::Revision;
use turnbuckle_store::{ClientProfile, ServerChange, SessionOwner, SessionRecord, SessionUpdate};

use super::*;
use crate::{
    Server,
    http::{
        HttpOptions,
        session::{ActiveSessionGuard, ActiveSessions},
        stream::{ChannelReader, ReadResult, StreamWriter},
    },
};

async fn active_session() -> (Arc<Endpoint>, ActiveSessionGuard) {
    let server = Server::new("test", "1.0.0");
    let endpoint = Arc::new(Endpoint::new(server, HttpOptions::default(), None));
    let record = SessionRecord::new(None, Revision::V2025_11_25, ClientProfile::default());
    let sessions = &endpoint.server.store_ref().sessions;
    let id = sessions.create(record).await.unwrap();
    let change = SessionUpdate::Initialized;
    sessions.update(&id, change).await.unwrap().unwrap();
    let active = ActiveSessions::activate(&endpoint, id);
    (endpoint, active)
}

/// Opens a stream, as GET does.
async fn open(active: &ActiveSessionGuard) -> Arc<StreamChannel> {
    let channel = StreamWriter::open(active, &SessionOwner::shared(""))
        .await
        .unwrap()
        .channel;
    active.session.get_streams.add(&channel);
    let active_sessions = &active.endpoint.active_sessions;
    active_sessions.add_subscriber(active.session_id, &active.session);
    channel
}

async fn notify(endpoint: &Endpoint, subscribers: &[ChangeSubscriber], change: ServerChange) {
    notify_all(endpoint, subscribers, &Ok(EncodedChange::new(change))).await;
}

/// Takes the next event; returns whether there was one.
fn has_event(reader: &ChannelReader) -> bool {
    let result = reader.poll_read(&Context::from_waker(Waker::noop()), &mut VecDeque::new());
    matches!(result, Poll::Ready(ReadResult::Event(_)))
}

#[tokio::test]
async fn a_stream_opened_after_the_snapshot_gets_the_change_instead_of_the_older() {
    for notified_before in [false, true] {
        let (endpoint, active) = active_session().await;
        let older = open(&active).await.attach();
        let subscribers = endpoint.active_sessions.subscribers();
        if notified_before {
            notify(&endpoint, &subscribers, ServerChange::ToolsChanged).await;
            assert!(has_event(&older));
        }
        let newer = open(&active).await.attach();

        notify(&endpoint, &subscribers, ServerChange::ToolsChanged).await;

        assert!(has_event(&newer) && !has_event(&older), "{notified_before}");
    }
}

#[tokio::test]
async fn a_stream_lost_by_the_store_ends_and_another_gets_the_change() {
    let (endpoint, active) = active_session().await;
    let older = open(&active).await.attach();
    let newer = open(&active).await;
    let reader = newer.attach();
    let events = &endpoint.server.store_ref().events;
    let (session_id, stream) = (&active.session_id, &newer.stream);
    events.finish_stream(session_id, stream).await.unwrap();

    let subscribers = endpoint.active_sessions.subscribers();
    notify(&endpoint, &subscribers, ServerChange::ToolsChanged).await;

    assert!(has_event(&older));
    let end = reader.poll_read(&Context::from_waker(Waker::noop()), &mut VecDeque::new());
    assert!(matches!(end, Poll::Ready(ReadResult::End)));
}

#[tokio::test]
async fn a_lost_stream_is_detected_on_direct_delivery() {
    let (endpoint, active) = active_session().await;
    let channel = open(&active).await;
    let reader = channel.attach();
    let subscribers = endpoint.active_sessions.subscribers();
    notify(&endpoint, &subscribers, ServerChange::ToolsChanged).await;
    assert!(has_event(&reader));
    let events = &endpoint.server.store_ref().events;
    events
        .finish_stream(&active.session_id, &channel.stream)
        .await
        .unwrap();

    notify(&endpoint, &subscribers, ServerChange::ToolsChanged).await;

    assert!(endpoint.active_sessions.has_no_subscribers());
    let newer = open(&active).await.attach();
    let subscribers = endpoint.active_sessions.subscribers();
    notify(&endpoint, &subscribers, ServerChange::ToolsChanged).await;
    assert!(has_event(&newer) && !has_event(&reader));
}

#[tokio::test]
async fn the_remaining_stream_gets_changes_after_another_ended() {
    let (endpoint, active) = active_session().await;
    let older = open(&active).await;
    let reader = older.attach();
    let newer = open(&active).await;
    notify(
        &endpoint,
        &endpoint.active_sessions.subscribers(),
        ServerChange::ToolsChanged,
    )
    .await;
    assert!(has_event(&reader), "the newer stream lacks a reader");

    finish(&endpoint, &active.session_id, &active.session, &newer).await;
    active.session.get_streams.remove(&newer);
    assert!(older.receives_list_changes() && !newer.receives_list_changes());
    notify(
        &endpoint,
        &endpoint.active_sessions.subscribers(),
        ServerChange::ToolsChanged,
    )
    .await;

    assert!(has_event(&reader));
}

#[tokio::test]
async fn the_snapshot_is_rebuilt_when_a_stream_opens_or_ends() {
    let (endpoint, active) = active_session().await;
    let channel = open(&active).await;
    let snapshot = endpoint.active_sessions.subscribers();
    assert!(Arc::ptr_eq(
        &snapshot,
        &endpoint.active_sessions.subscribers()
    ));

    open(&active).await;
    let with_another = endpoint.active_sessions.subscribers();
    assert!(!Arc::ptr_eq(&snapshot, &with_another));

    active.session.get_streams.remove(&channel);
    let active_sessions = &endpoint.active_sessions;
    active_sessions.remove_if_idle(&active.session_id, &active.session);
    assert!(!Arc::ptr_eq(&with_another, &active_sessions.subscribers()));
    active_sessions.close(&active.session_id);
    assert!(active_sessions.subscribers().is_empty());
}

#[tokio::test]
async fn every_session_gets_a_change_exactly_once() {
    let (endpoint, first) = active_session().await;
    let record = SessionRecord::new(None, Revision::V2025_11_25, ClientProfile::default());
    let sessions = &endpoint.server.store_ref().sessions;
    let mut readers = vec![(open(&first).await.attach(), first)];
    for _ in 0..2 * MAX_STORE_BATCH {
        let id = sessions.create(record.clone()).await.unwrap();
        let change = SessionUpdate::Initialized;
        sessions.update(&id, change).await.unwrap().unwrap();
        let active = ActiveSessions::activate(&endpoint, id);
        readers.push((open(&active).await.attach(), active));
    }

    for _ in 0..2 {
        notify(
            &endpoint,
            &endpoint.active_sessions.subscribers(),
            ServerChange::ToolsChanged,
        )
        .await;

        for (reader, _) in &readers {
            assert!(has_event(reader) && !has_event(reader));
        }
    }
}

#[tokio::test]
async fn list_changes_skip_the_session_lookup_after_the_first() {
    for streams in [1, 2] {
        let (endpoint, active) = active_session().await;
        let mut readers = Vec::new();
        for _ in 0..streams {
            readers.push(open(&active).await.attach());
        }
        let newest = readers.last().unwrap();
        let subscribers = endpoint.active_sessions.subscribers();
        notify(&endpoint, &subscribers, ServerChange::ToolsChanged).await;
        assert!(has_event(newest));

        let sessions = &endpoint.server.store_ref().sessions;
        sessions.remove(&active.session_id).await.unwrap();
        notify(&endpoint, &subscribers, ServerChange::PromptsChanged).await;
        assert!(
            has_event(newest),
            "the reader detects that the session has ended"
        );
        let uri = "test://a".into();
        notify(
            &endpoint,
            &subscribers,
            ServerChange::ResourceUpdated { uri },
        )
        .await;

        assert!(endpoint.active_sessions.has_no_subscribers());
    }
}

#[tokio::test]
async fn the_snapshot_is_kept_for_sessions_without_stream_changes() {
    let (endpoint, active) = active_session().await;
    let _reader = open(&active).await.attach();
    let snapshot = endpoint.active_sessions.subscribers();

    end_streams(&endpoint, |streams| streams.expire(Instant::now())).await;
    let unsubscribed = SessionId::generate().unwrap();
    let _unsubscribed = ActiveSessions::activate(&endpoint, unsubscribed);
    endpoint.active_sessions.close(&unsubscribed);

    assert!(Arc::ptr_eq(
        &snapshot,
        &endpoint.active_sessions.subscribers()
    ));
}

#[tokio::test]
async fn the_streams_of_a_session_end_with_it() {
    let (endpoint, active) = active_session().await;
    let _feeds = [open(&active).await, open(&active).await];
    assert_eq!(endpoint.active_sessions.subscribers().len(), 1);

    endpoint.active_sessions.close(&active.session_id);

    assert!(endpoint.active_sessions.has_no_subscribers());
}

#[tokio::test(start_paused = true)]
async fn an_unread_stream_expires() {
    let (endpoint, active) = active_session().await;
    open(&active).await;
    start(&endpoint);
    drop(active);

    tokio::time::sleep(Duration::from_secs(4 * 60)).await;
    assert_eq!(endpoint.active_sessions.subscribers().len(), 1);
    tokio::time::sleep(Duration::from_secs(2 * 60)).await;

    assert!(endpoint.active_sessions.has_no_subscribers());
    assert_eq!(endpoint.active_sessions.len(), 0);
    assert!(lock(&endpoint.change_fanout.task).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_opened_while_its_session_ended_is_removed() {
    let (endpoint, active) = active_session().await;
    endpoint.active_sessions.close(&active.session_id);
    let _reader = open(&active).await.attach();
    start(&endpoint);
    assert!(!endpoint.active_sessions.has_no_subscribers());

    tokio::time::sleep(Duration::from_secs(60)).await;

    assert!(endpoint.active_sessions.has_no_subscribers());
}
