//! A stream that is asked more often than it has something to say.

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

use crate::http::test_client::{Caller, Empty, modern, modern_headers};

/// What a handler waits for.
#[derive(Default)]
struct Gate {
    is_open: AtomicBool,
    asked: AtomicUsize,
    waiting: Mutex<Option<Waker>>,
}

impl Gate {
    fn poll(&self, cx: &TaskContext<'_>) -> Poll<()> {
        self.asked.fetch_add(1, SeqCst);
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

    fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

type Gates = Arc<[Gate; 2]>;

/// Somebody who asks, and counts how often it is woken.
#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Task {
    fn ask(self: &Arc<Self>, body: &mut ResponseBody) -> Poll<Option<Bytes>> {
        let waker = self.clone().into();
        let next = Pin::new(body).poll_frame(&mut TaskContext::from_waker(&waker));
        next.map(|frame| frame.map(|frame| frame.unwrap().into_data().unwrap()))
    }

    fn woken(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// The stream of a call that reports a step before it waits at each gate, and is done behind the last.
async fn stream(gates: &Gates) -> ResponseBody {
    let gates = gates.clone();
    let tool = Tool::new("wait", move |_: Empty, cx: Context| {
        let gates = gates.clone();
        async move {
            for (step, gate) in (1..).zip(gates.iter()) {
                cx.progress(step, 2).await;
                poll_fn(|cx| gate.poll(cx)).await;
            }
            Ok("done".to_owned())
        }
    });
    let server = Server::new("test", "1.0.0").tool(tool);
    let message = modern("tools/call", json!({ "name": "wait", "arguments": {} }));
    let request = Caller::new(server.clone()).request(Method::POST);
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
    let (gates, task) = (Gates::default(), Arc::<Task>::default());
    let mut body = stream(&gates).await;
    assert!(says(task.ask(&mut body), r#""progress":1"#));
    assert!(task.ask(&mut body).is_pending());
    let asked = gates[0].asked();

    for _ in 0..3 {
        assert!(task.ask(&mut body).is_pending());
    }
    assert_eq!((gates[0].asked(), task.woken()), (asked, 0));

    gates[0].open();
    assert_eq!(task.woken(), 1);
    assert!(says(task.ask(&mut body), r#""progress":2"#));
    assert!(task.ask(&mut body).is_pending());
    assert_eq!((gates[0].asked(), gates[1].asked()), (asked + 1, 1));

    gates[1].open();
    assert_eq!(task.woken(), 2);
    assert!(says(task.ask(&mut body), "done"));
    assert!(matches!(task.ask(&mut body), Poll::Ready(None)));
}

#[tokio::test(start_paused = true)]
async fn the_last_registered_waker_is_woken() {
    let gates = Gates::default();
    let (first, second) = (Arc::<Task>::default(), Arc::<Task>::default());
    let mut body = stream(&gates).await;
    assert!(first.ask(&mut body).is_ready());
    assert!(first.ask(&mut body).is_pending());
    assert!(second.ask(&mut body).is_pending());

    gates[0].open();

    assert_eq!((first.woken(), second.woken()), (0, 1));
    assert!(says(second.ask(&mut body), r#""progress":2"#));
}

#[tokio::test(start_paused = true)]
async fn a_wake_before_the_first_poll_is_not_missed() {
    let (gates, task) = (Gates::default(), Arc::<Task>::default());
    let mut body = stream(&gates).await;

    // Whoever waits for the head of the response is woken, and nobody asks for more until it is sent.
    gates[0].open();

    assert!(says(task.ask(&mut body), r#""progress":1"#));
    assert!(says(task.ask(&mut body), r#""progress":2"#));
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_wakes_for_every_heartbeat() {
    let task = Arc::<Task>::default();
    let mut body = stream(&Gates::default()).await;
    assert!(task.ask(&mut body).is_ready());

    for times in 1..=3 {
        assert!(task.ask(&mut body).is_pending());
        tokio::time::sleep(Duration::from_secs(16)).await;
        assert_eq!(task.woken(), times);
        assert!(says(task.ask(&mut body), ": alive"));
    }
}
