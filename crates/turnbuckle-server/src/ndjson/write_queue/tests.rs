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
fn nobody_takes_while_another_writes() {
    let queue = WriteQueue::default();
    queue.append(&[b"one"]);
    let batch = queue.try_take(100).unwrap();
    queue.append(&[b"two"]);

    assert_eq!(queue.try_take(100), None);

    queue.finish_chunk(batch, Ok(()));
    assert_eq!(queue.try_take(100).as_deref(), Some(&b"two\n"[..]));
}

#[test]
fn what_is_too_much_is_left_to_the_writer() {
    let queue = WriteQueue::default();
    queue.append(&[b"12345"]);

    assert_eq!(queue.try_take(5), None);
    assert!(queue.try_take(6).is_some());
}

#[tokio::test]
async fn what_could_not_be_written_goes_out_before_what_came_later() {
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
async fn after_the_end_what_is_queued_is_still_taken_and_nothing_is_added() {
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
async fn room_comes_when_a_full_queue_is_taken() {
    let queue = WriteQueue::default();
    queue.append(&[&vec![b'x'; HIGH_WATER]]);
    assert!(queue.is_full());
    let batch = tokio::join!(queue.wait_for_room(), queue.next_chunk(Vec::new()))
        .1
        .unwrap();

    assert!(!queue.is_full());
    assert!(batch.is_some());
}
