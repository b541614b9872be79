use super::*;

#[tokio::test]
async fn everything_queued_is_taken_at_once() {
    let sink = Sink::default();
    sink.append(&[b"one"]);
    sink.append(&[b"two"]);

    let batch = sink.take(Vec::new()).await.unwrap();

    assert_eq!(batch.as_deref(), Some(&b"one\ntwo\n"[..]));
}

#[tokio::test]
async fn a_line_end_inside_a_message_does_not_end_its_line() {
    let sink = Sink::default();
    sink.append(&[b"{\n\"a\":\n1}"]);

    let batch = sink.take(Vec::new()).await.unwrap();

    assert_eq!(batch.as_deref(), Some(&b"{ \"a\": 1}\n"[..]));
}

#[test]
fn nobody_takes_while_another_writes() {
    let sink = Sink::default();
    sink.append(&[b"one"]);
    let batch = sink.take_now(100).unwrap();
    sink.append(&[b"two"]);

    assert_eq!(sink.take_now(100), None);

    sink.written(batch, Ok(()));
    assert_eq!(sink.take_now(100).as_deref(), Some(&b"two\n"[..]));
}

#[test]
fn what_is_too_much_is_left_to_the_writer() {
    let sink = Sink::default();
    sink.append(&[b"12345"]);

    assert_eq!(sink.take_now(5), None);
    assert!(sink.take_now(6).is_some());
}

#[tokio::test]
async fn what_could_not_be_written_goes_out_before_what_came_later() {
    let sink = Sink::default();
    sink.append(&[b"one"]);
    let batch = sink.take_now(100).unwrap();
    sink.append(&[b"two"]);
    sink.put_back(batch, 2);

    let batch = sink.take(Vec::new()).await.unwrap();

    assert_eq!(batch.as_deref(), Some(&b"e\ntwo\n"[..]));
}

#[tokio::test]
async fn a_failed_write_ends_the_writer() {
    let sink = Sink::default();
    sink.append(&[b"one"]);
    let batch = sink.take_now(100).unwrap();
    sink.written(batch, Err(io::ErrorKind::BrokenPipe.into()));

    let error = sink.take(Vec::new()).await.unwrap_err();

    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn after_the_end_what_is_queued_is_still_taken_and_nothing_is_added() {
    let sink = Sink::default();
    sink.append(&[b"one"]);
    sink.end();
    sink.append(&[b"two"]);

    let batch = sink.take(Vec::new()).await.unwrap().unwrap();
    assert_eq!(batch, b"one\n");
    let spare = sink.written(batch, Ok(()));
    assert_eq!(sink.take(spare).await.unwrap(), None);
}

#[tokio::test]
async fn room_comes_when_a_full_queue_is_taken() {
    let sink = Sink::default();
    sink.append(&[&vec![b'x'; HIGH_WATER]]);
    assert!(sink.is_full());
    let batch = tokio::join!(sink.room(), sink.take(Vec::new())).1.unwrap();

    assert!(!sink.is_full());
    assert!(batch.is_some());
}
