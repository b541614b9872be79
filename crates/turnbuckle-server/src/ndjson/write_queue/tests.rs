use super::*;

#[tokio::test]
async fn everything_queued_is_taken_at_once() {
    let queue = WriteQueue::default();
    queue.append(&[b"one"]);
    queue.append(&[b"two"]);

    let batch = queue.next_chunk(Vec::new()).await.unwrap();

    assert_eq!(batch.as_deref(), Some(&b"one\ntwo\n"[..]));
}

#[tokio::test]
async fn a_line_end_inside_a_message_does_not_end_its_line() {
    let queue = WriteQueue::default();
    queue.append(&[b"{\n\"a\":\n1}"]);

    let batch = queue.next_chunk(Vec::new()).await.unwrap();

    assert_eq!(batch.as_deref(), Some(&b"{ \"a\": 1}\n"[..]));
}

#[test]
fn a_chunk_is_taken_only_after_the_previous_one_is_finished() {
    let queue = WriteQueue::default();
    queue.append(&[b"one"]);
    let batch = queue.try_take(100).unwrap();
    queue.append(&[b"two"]);

    assert_eq!(queue.try_take(100), None);

    queue.finish_chunk(batch, Ok(()));
    assert_eq!(queue.try_take(100).as_deref(), Some(&b"two\n"[..]));
}

#[test]
fn a_queue_over_the_limit_is_left_to_the_writer() {
    let queue = WriteQueue::default();
    queue.append(&[b"12345"]);

    assert_eq!(queue.try_take(5), None);
    assert!(queue.try_take(6).is_some());
}

#[tokio::test]
async fn unread_chunks_are_written_before_later_lines() {
    let queue = WriteQueue::default();
    queue.append(&[b"one"]);
    let batch = queue.try_take(100).unwrap();
    queue.append(&[b"two"]);
    queue.unread(batch, 2);

    let batch = queue.next_chunk(Vec::new()).await.unwrap();

    assert_eq!(batch.as_deref(), Some(&b"e\ntwo\n"[..]));
}

#[tokio::test]
async fn a_failed_write_ends_the_writer() {
    let queue = WriteQueue::default();
    queue.append(&[b"one"]);
    let batch = queue.try_take(100).unwrap();
    queue.finish_chunk(batch, Err(io::ErrorKind::BrokenPipe.into()));

    let error = queue.next_chunk(Vec::new()).await.unwrap_err();

    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn an_ended_queue_is_drained_and_accepts_nothing() {
    let queue = WriteQueue::default();
    queue.append(&[b"one"]);
    queue.end();
    queue.append(&[b"two"]);

    let batch = queue.next_chunk(Vec::new()).await.unwrap().unwrap();
    assert_eq!(batch, b"one\n");
    let spare = queue.finish_chunk(batch, Ok(()));
    assert_eq!(queue.next_chunk(spare).await.unwrap(), None);
}

#[tokio::test]
async fn a_full_queue_has_room_after_a_chunk_is_taken() {
    let queue = WriteQueue::default();
    queue.append(&[&vec![b'x'; HIGH_WATER]]);
    assert!(queue.is_full());
    let batch = tokio::join!(queue.wait_for_room(), queue.next_chunk(Vec::new()))
        .1
        .unwrap();

    assert!(!queue.is_full());
    assert!(batch.is_some());
}
