//! A stream that is polled more often than it has events.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context as TaskContext, Poll, Wake, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::Method;
use http_body::Body as _;
use http_body_util::Full;
use serde_json::json;
use tower_service::Service as _;
use turnbuckle_server::{
    Context, Server, Tool,
    http::{Http, ResponseBody},
};

use crate::http::test_client::{Empty, HttpTestClient, modern, modern_headers};

/// A barrier that a handler waits at.
#[derive(Default)]
struct Barrier {
    is_open: AtomicBool,
    poll_count: AtomicUsize,
    waiting: Mutex<Option<Waker>>,
}

impl Barrier {
    fn poll(&self, cx: &TaskContext<'_>) -> Poll<()> {
        self.poll_count.fetch_add(1, SeqCst);
        if self.is_open.load(SeqCst) {
            return Poll::Ready(());
        }
        *self.waiting.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    }

    fn open(&self) {
        self.is_open.store(true, SeqCst);
        let waiting = self.waiting.lock().unwrap().take();
        waiting.unwrap().wake();
    }

    fn poll_count(&self) -> usize {
        self.poll_count.load(SeqCst)
    }
}

type Barriers = Arc<[Barrier; 2]>;

/// A task that counts how often it is woken.
#[derive(Default)]
struct CountingTask(AtomicUsize);

impl Wake for CountingTask {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl CountingTask {
    fn poll_body(self: &Arc<Self>, body: &mut ResponseBody) -> Poll<Option<Bytes>> {
        let waker = self.clone().into();
        let next = Pin::new(body).poll_frame(&mut TaskContext::from_waker(&waker));
        next.map(|frame| frame.map(|frame| frame.unwrap().into_data().unwrap()))
    }

    fn wake_count(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// The stream of a call that reports a step before it waits at each barrier, and ends after the last.
async fn stream(barriers: &Barriers) -> ResponseBody {
    let barriers = barriers.clone();
    let tool = Tool::new("wait", move |_: Empty, cx: Context| {
        let barriers = barriers.clone();
        async move {
            for (step, barrier) in (1..).zip(barriers.iter()) {
                cx.progress(step, 2).await;
                poll_fn(|cx| barrier.poll(cx)).await;
            }
            Ok("done".to_owned())
        }
    });
    let server = Server::new("test", "1.0.0").tool(tool);
    let message = modern("tools/call", json!({ "name": "wait", "arguments": {} }));
    let request = HttpTestClient::new(server.clone()).request(Method::POST);
    let request = modern_headers(request, &message)
        .body(Full::<Bytes>::from(message.to_string()))
        .unwrap();
    let mut service = Http::new(server).into_service();
    service.call(request).await.unwrap().into_body()
}

fn says(next: Poll<Option<Bytes>>, text: &str) -> bool {
    matches!(next, Poll::Ready(Some(bytes)) if String::from_utf8_lossy(&bytes).contains(text))
}

#[tokio::test(start_paused = true)]
async fn a_pending_handler_is_polled_only_after_a_wake() {
    let (barriers, task) = (Barriers::default(), Arc::<CountingTask>::default());
    let mut body = stream(&barriers).await;
    assert!(says(task.poll_body(&mut body), r#""progress":1"#));
    assert!(task.poll_body(&mut body).is_pending());
    let poll_count = barriers[0].poll_count();

    for _ in 0..3 {
        assert!(task.poll_body(&mut body).is_pending());
    }
    assert_eq!(
        (barriers[0].poll_count(), task.wake_count()),
        (poll_count, 0)
    );

    barriers[0].open();
    assert_eq!(task.wake_count(), 1);
    assert!(says(task.poll_body(&mut body), r#""progress":2"#));
    assert!(task.poll_body(&mut body).is_pending());
    assert_eq!(
        (barriers[0].poll_count(), barriers[1].poll_count()),
        (poll_count + 1, 1)
    );

    barriers[1].open();
    assert_eq!(task.wake_count(), 2);
    assert!(says(task.poll_body(&mut body), "done"));
    assert!(matches!(task.poll_body(&mut body), Poll::Ready(None)));
}

#[tokio::test(start_paused = true)]
async fn the_last_registered_waker_is_woken() {
    let barriers = Barriers::default();
    let (first, second) = (
        Arc::<CountingTask>::default(),
        Arc::<CountingTask>::default(),
    );
    let mut body = stream(&barriers).await;
    assert!(first.poll_body(&mut body).is_ready());
    assert!(first.poll_body(&mut body).is_pending());
    assert!(second.poll_body(&mut body).is_pending());

    barriers[0].open();

    assert_eq!((first.wake_count(), second.wake_count()), (0, 1));
    assert!(says(second.poll_body(&mut body), r#""progress":2"#));
}

#[tokio::test(start_paused = true)]
async fn a_wake_before_the_first_poll_is_not_missed() {
    let (barriers, task) = (Barriers::default(), Arc::<CountingTask>::default());
    let mut body = stream(&barriers).await;

    // The task that waits for the response head is woken, and the body is not polled until it is sent.
    barriers[0].open();

    assert!(says(task.poll_body(&mut body), r#""progress":1"#));
    assert!(says(task.poll_body(&mut body), r#""progress":2"#));
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_wakes_for_every_heartbeat() {
    let task = Arc::<CountingTask>::default();
    let mut body = stream(&Barriers::default()).await;
    assert!(task.poll_body(&mut body).is_ready());

    for times in 1..=3 {
        assert!(task.poll_body(&mut body).is_pending());
        tokio::time::sleep(Duration::from_secs(16)).await;
        assert_eq!(task.wake_count(), times);
        assert!(says(task.poll_body(&mut body), ": alive"));
    }
}
