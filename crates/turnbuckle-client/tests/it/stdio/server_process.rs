//! Servers as child processes.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::timeout;
use turnbuckle_client::{
    Anomaly, CallError, Change, Client, ConnectError, Era, LifecycleCache, LifecycleMode,
    Subscription, SubscriptionEvent, TransportError,
    stdio::{self, ExitReason, ProcessExited, ServerCommand},
};
use turnbuckle_protocol::types::SubscriptionFilter;
use turnbuckle_spec_coverage::{ran_in, req};

use crate::stdio::child_roles::{ProcessMonitor, TEST_TIMEOUT, child};

/// A timeout that tests can wait for.
const SHORT_TIMEOUT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_turnbuckle_server_works_in_both_eras() {
    req!("stdio.client.support", "stdio.stderr.not-error");
    for (mode, era) in [
        (LifecycleMode::Auto, Era::Modern),
        (LifecycleMode::Modern, Era::Modern),
        (LifecycleMode::Legacy, Era::Legacy),
    ] {
        let monitor = ProcessMonitor::new();
        let builder = Client::builder("test", "1").lifecycle_mode(mode);
        let client = builder.connect(child("server", &monitor)).await.unwrap();
        let running_process = monitor.next().await;

        assert_eq!(client.server().era, era);
        ran_in(client.server().revision.as_str());
        assert_eq!(echo(&client).await, "echo");
        let process = client.process().unwrap();
        assert!(process.stderr_tail().contains("error: this is only talk"));

        client.close().await;
        assert_eq!(process.exit(), Some(ExitReason::Code(0)));
        running_process.wait_for_exit().await;
    }
}

#[tokio::test]
async fn other_output_on_stdout_is_an_anomaly() {
    let monitor = ProcessMonitor::new();
    let anomalies = Arc::<Mutex<Vec<Anomaly>>>::default();
    let recorded = anomalies.clone();
    let builder = Client::builder("test", "1")
        .on_anomaly(move |anomaly| recorded.lock().unwrap().push(anomaly));

    let client = builder.connect(child("server", &monitor)).await.unwrap();

    assert_eq!(echo(&client).await, "echo");
    let anomalies = anomalies.lock().unwrap();
    let has_noise = |text: &str| anomalies.contains(&Anomaly::NotJson(text.to_owned()));
    assert!(has_noise("starting up"), "{anomalies:?}");
    assert!(
        has_noise(r#"{"level":"info","text":"a log on the wrong stream"}"#),
        "{anomalies:?}"
    );
}

#[tokio::test]
async fn pending_calls_fail_with_the_exit_status() {
    for mode in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let monitor = ProcessMonitor::new();
        let builder = Client::builder("test", "1").lifecycle_mode(mode);
        let client = builder.connect(child("server", &monitor)).await.unwrap();

        let waiting: Vec<_> = (0..3)
            .map(|_| tokio::spawn(client.call_tool("wait", json!({})).into_future()))
            .collect();
        let requested = client.call_tool("die", json!({})).await.unwrap_err();

        let exited = exit_of(&requested);
        assert_eq!(exited.exit, ExitReason::Code(3));
        assert!(exited.stderr_tail.ends_with("out of paper"), "{exited}");
        for waited in waiting {
            let error = waited.await.unwrap().unwrap_err();
            assert_eq!(exit_of(&error).exit, ExitReason::Code(3));
        }
    }
}

#[tokio::test]
async fn a_modern_server_that_exited_is_restarted_by_the_next_call() {
    req!("stdio.crash.restart");
    let monitor = ProcessMonitor::new();
    let client = stdio::spawn(child("server", &monitor)).await.unwrap();
    ran_in(client.server().revision.as_str());
    let first = monitor.next().await;
    let before = client.process().unwrap();
    client.call_tool("die", json!({})).await.unwrap_err();
    first.wait_for_exit().await;

    let response = echo(&client).await;

    assert_eq!(response, "echo");
    assert_ne!(client.process().unwrap().id(), before.id());
    let second = monitor.next().await;
    client.close().await;
    second.wait_for_exit().await;
}

#[tokio::test]
async fn subscriptions_continue_with_the_restarted_server() {
    req!("stdio.crash.resubscribe");
    let monitor = ProcessMonitor::new();
    let client = stdio::spawn(child("server", &monitor)).await.unwrap();
    ran_in(client.server().revision.as_str());
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut subscription = client.listen(filter).await.unwrap();
    assert!(matches!(
        next_event(&mut subscription).await,
        SubscriptionEvent::Acknowledged(_)
    ));

    client.call_tool("die", json!({})).await.unwrap_err();
    assert!(matches!(
        next_event(&mut subscription).await,
        SubscriptionEvent::Interrupted
    ));
    assert!(matches!(
        next_event(&mut subscription).await,
        SubscriptionEvent::Acknowledged(_)
    ));
    client.call_tool("learn", json!({})).await.unwrap();

    let change = next_event(&mut subscription).await;
    assert!(
        matches!(change, SubscriptionEvent::Change(Change::Tools)),
        "{change:?}"
    );
}

#[tokio::test]
async fn a_legacy_server_that_exited_is_not_restarted() {
    let monitor = ProcessMonitor::new();
    let builder = Client::builder("test", "1").lifecycle_mode(LifecycleMode::Legacy);
    let client = builder.connect(child("server", &monitor)).await.unwrap();
    client.call_tool("die", json!({})).await.unwrap_err();

    let error = client.call_tool("echo", json!({})).await.unwrap_err();

    assert_eq!(exit_of(&error).exit, ExitReason::Code(3));
}

/// Verifies that no other child was started: the next one that reports is started here.
async fn assert_no_other_child(monitor: &ProcessMonitor) {
    let fence = stdio::spawn(child("server", monitor)).await.unwrap();
    let next = monitor.next().await;
    fence.close().await;
    next.wait_for_exit().await;
}

#[tokio::test]
async fn a_closed_client_does_not_restart_the_server() {
    let monitor = ProcessMonitor::new();
    let client = stdio::spawn(child("server", &monitor)).await.unwrap();
    let running_process = monitor.next().await;
    client.call_tool("die", json!({})).await.unwrap_err();
    running_process.wait_for_exit().await;
    client.close().await;

    client.call_tool("echo", json!({})).await.unwrap_err();

    assert_no_other_child(&monitor).await;
}

#[tokio::test]
async fn a_server_that_exits_on_the_probe_is_restarted_for_the_handshake() {
    let monitor = ProcessMonitor::new();
    let memory = LifecycleCache::new();
    let builder = Client::builder("test", "1").lifecycle_cache(memory);
    let frail = child("frail", &monitor);

    let client = builder.clone().connect(frail.clone()).await.unwrap();

    assert_eq!(client.server().era, Era::Legacy);
    client.ping().await.unwrap();
    monitor.next().await.wait_for_exit().await;
    let second = monitor.next().await;
    client.close().await;
    second.wait_for_exit().await;

    // The era is cached now.
    let client = builder.connect(frail).await.unwrap();
    let third = monitor.next().await;
    client.ping().await.unwrap();
    assert!(!third.has_exited());
}

#[tokio::test]
async fn a_server_that_always_exits_is_started_twice_and_its_stderr_is_reported() {
    let monitor = ProcessMonitor::new();

    let error = stdio::spawn(child("hopeless", &monitor)).await.unwrap_err();

    let ConnectError::Unreachable(TransportError::ProcessExited(exited)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(exited.exit, ExitReason::Code(4));
    assert_eq!(exited.stderr_tail, "no paper left");
    for _ in 0..2 {
        monitor.next().await.wait_for_exit().await;
    }
    assert_no_other_child(&monitor).await;
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let error = stdio::spawn(ServerCommand::new("no-such-server"))
        .await
        .unwrap_err();

    assert!(matches!(error, ConnectError::SpawnFailed(_)));
    assert!(error.to_string().contains("`no-such-server`"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_exit_is_killed() {
    req!("stdio.shutdown.client-wait-kill");
    let monitor = ProcessMonitor::new();
    let stubborn = child("stubborn server", &monitor).kill_timeout(SHORT_TIMEOUT);
    let client = stdio::spawn(stubborn).await.unwrap();
    let process = client.process().unwrap();

    timeout(TEST_TIMEOUT, client.close()).await.unwrap();

    assert!(matches!(process.exit(), Some(ExitReason::Signal(9 | 15))));
}

#[tokio::test]
async fn processes_of_a_server_end_with_the_last_client() {
    let monitor = ProcessMonitor::new();
    let forking = child("forking server", &monitor).kill_timeout(SHORT_TIMEOUT);
    let client = stdio::spawn(forking).await.unwrap();
    let running_process = monitor.next().await;
    let clone = client.clone();
    let view = client.process().unwrap();
    drop(client);
    assert_eq!(echo(&clone).await, "echo");

    drop(clone);

    running_process.wait_for_exit().await;
    view.wait().await;
}

#[test]
fn a_client_dropped_without_a_runtime_leaves_no_process() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (client, running_process) = runtime.block_on(async {
        let monitor = ProcessMonitor::new();
        let forking = child("forking server", &monitor);
        let client = stdio::spawn(forking).await.unwrap();
        (client, monitor.next().await)
    });

    // The runtime does not run any more.
    drop(client);

    runtime.block_on(running_process.wait_for_exit());
}

#[tokio::test]
async fn only_messages_are_written_to_stdin() {
    req!(
        "stdio.stdin.only-mcp",
        "stdio.framing.newline",
        "stdio.framing.no-embedded",
        "stdio.shutdown.client-close",
        "lifecycle.shutdown.no-message",
    );
    let monitor = ProcessMonitor::new();
    let client = stdio::spawn(child("recorder", &monitor)).await.unwrap();

    let text = "two\nlines\r\nand \u{2028} more";
    client
        .call_tool("note", json!({ "text": text }))
        .await
        .unwrap();
    client.close().await;

    let messages = client.process().unwrap().stderr_tail();
    let messages: Vec<Value> = messages
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert_eq!(messages.len(), 2, "{messages:#?}");
    assert_eq!(messages[0]["method"], "server/discover");
    assert_eq!(messages[1]["method"], "tools/call");
    assert_eq!(messages[1]["params"]["arguments"]["text"], text);
}

#[tokio::test]
async fn an_endless_line_takes_bounded_memory() {
    let monitor = ProcessMonitor::new();
    let mut limits = turnbuckle_client::ClientLimits::default();
    limits.max_message_bytes = 64 * 1024;
    let builder = Client::builder("test", "1").limits(limits);
    let client = builder.connect(child("endless", &monitor)).await.unwrap();
    let before = memory_peak();

    let error = client.call_tool("pour", json!({})).await.unwrap_err();

    let CallError::Disconnected { source, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(matches!(
        source,
        TransportError::MessageTooLarge { limit: 65536 }
    ));
    client.close().await;
    if let (Some(before), Some(after)) = (before, memory_peak()) {
        assert!(after - before < 16 * 1024, "{} KiB more", after - before);
    }
}

/// Returns the peak memory of this process in KiB, if the system provides it.
fn memory_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

async fn next_event(subscription: &mut Subscription) -> SubscriptionEvent {
    let next_event = timeout(TEST_TIMEOUT, subscription.next()).await.unwrap();
    next_event.unwrap().unwrap()
}

async fn echo(client: &Client) -> String {
    let output = client.call_tool("echo", json!({})).await.unwrap();
    output.content[0].as_text().unwrap().to_owned()
}

fn exit_of(error: &CallError) -> Arc<ProcessExited> {
    match error {
        CallError::Disconnected {
            source: TransportError::ProcessExited(exited),
            ..
        } => exited.clone(),
        _ => panic!("{error:?}"),
    }
}
