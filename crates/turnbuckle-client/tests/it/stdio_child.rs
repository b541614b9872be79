//! Servers as child processes, from the first question to the end.

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

use crate::child_roles::{LONG, Witness, child};

/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn our_server_is_spoken_with_in_both_eras() {
    req!("stdio.client.support", "stdio.stderr.not-error");
    for (choice, era) in [
        (LifecycleMode::Auto, Era::Modern),
        (LifecycleMode::Modern, Era::Modern),
        (LifecycleMode::Legacy, Era::Legacy),
    ] {
        let witness = Witness::new();
        let builder = Client::builder("test", "1").lifecycle_mode(choice);
        let client = builder.connect(child("server", &witness)).await.unwrap();
        let life = witness.next().await;

        assert_eq!(client.server().era, era);
        ran_in(client.server().revision.as_str());
        assert_eq!(echo(&client).await, "echo");
        let process = client.process().unwrap();
        assert!(process.stderr_tail().contains("error: this is only talk"));

        client.close().await;
        assert_eq!(process.exit(), Some(ExitReason::Code(0)));
        life.ends().await;
    }
}

#[tokio::test]
async fn what_else_is_on_standard_output_is_reported_and_passed_over() {
    let witness = Witness::new();
    let odd = Arc::<Mutex<Vec<Anomaly>>>::default();
    let seen = odd.clone();
    let builder =
        Client::builder("test", "1").on_anomaly(move |odd| seen.lock().unwrap().push(odd));

    let client = builder.connect(child("server", &witness)).await.unwrap();

    assert_eq!(echo(&client).await, "echo");
    let odd = odd.lock().unwrap();
    let noise = |text: &str| odd.contains(&Anomaly::NotJson(text.to_owned()));
    assert!(noise("starting up"), "{odd:?}");
    assert!(
        noise(r#"{"level":"info","text":"a log on the wrong stream"}"#),
        "{odd:?}"
    );
}

#[tokio::test]
async fn whoever_waits_learns_how_the_server_died() {
    for choice in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let witness = Witness::new();
        let builder = Client::builder("test", "1").lifecycle_mode(choice);
        let client = builder.connect(child("server", &witness)).await.unwrap();

        let waiting: Vec<_> = (0..3)
            .map(|_| tokio::spawn(client.call_tool("wait", json!({})).into_future()))
            .collect();
        let asked = client.call_tool("die", json!({})).await.unwrap_err();

        let died = death(&asked);
        assert_eq!(died.exit, ExitReason::Code(3));
        assert!(died.stderr_tail.ends_with("out of paper"), "{died}");
        for waited in waiting {
            let error = waited.await.unwrap().unwrap_err();
            assert_eq!(death(&error).exit, ExitReason::Code(3));
        }
    }
}

#[tokio::test]
async fn a_server_without_sessions_is_started_again_by_the_next_call() {
    req!("stdio.crash.restart");
    let witness = Witness::new();
    let client = stdio::spawn(child("server", &witness)).await.unwrap();
    ran_in(client.server().revision.as_str());
    let first = witness.next().await;
    let before = client.process().unwrap();
    client.call_tool("die", json!({})).await.unwrap_err();
    first.ends().await;

    let answer = echo(&client).await;

    assert_eq!(answer, "echo");
    assert_ne!(client.process().unwrap().id(), before.id());
    let second = witness.next().await;
    client.close().await;
    second.ends().await;
}

#[tokio::test]
async fn whoever_listens_listens_to_the_new_process() {
    req!("stdio.crash.resubscribe");
    let witness = Witness::new();
    let client = stdio::spawn(child("server", &witness)).await.unwrap();
    ran_in(client.server().revision.as_str());
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut listening = client.listen(filter).await.unwrap();
    assert!(matches!(
        heard(&mut listening).await,
        SubscriptionEvent::Acknowledged(_)
    ));

    client.call_tool("die", json!({})).await.unwrap_err();
    assert!(matches!(
        heard(&mut listening).await,
        SubscriptionEvent::Interrupted
    ));
    assert!(matches!(
        heard(&mut listening).await,
        SubscriptionEvent::Acknowledged(_)
    ));
    client.call_tool("learn", json!({})).await.unwrap();

    let change = heard(&mut listening).await;
    assert!(
        matches!(change, SubscriptionEvent::Change(Change::Tools)),
        "{change:?}"
    );
}

#[tokio::test]
async fn a_server_with_a_session_stays_dead() {
    let witness = Witness::new();
    let builder = Client::builder("test", "1").lifecycle_mode(LifecycleMode::Legacy);
    let client = builder.connect(child("server", &witness)).await.unwrap();
    client.call_tool("die", json!({})).await.unwrap_err();

    let error = client.call_tool("echo", json!({})).await.unwrap_err();

    assert_eq!(death(&error).exit, ExitReason::Code(3));
}

/// Sees that no child was started that the test has not met: the next that says it lives is one that is started here.
async fn no_other_lives(witness: &Witness) {
    let fence = stdio::spawn(child("server", witness)).await.unwrap();
    let next = witness.next().await;
    fence.close().await;
    next.ends().await;
}

#[tokio::test]
async fn a_closed_client_starts_nothing() {
    let witness = Witness::new();
    let client = stdio::spawn(child("server", &witness)).await.unwrap();
    let life = witness.next().await;
    client.call_tool("die", json!({})).await.unwrap_err();
    life.ends().await;
    client.close().await;

    client.call_tool("echo", json!({})).await.unwrap_err();

    no_other_lives(&witness).await;
}

#[tokio::test]
async fn a_server_that_dies_of_the_first_question_gets_a_second_chance() {
    let witness = Witness::new();
    let memory = LifecycleCache::new();
    let builder = Client::builder("test", "1").lifecycle_cache(memory);
    let frail = child("frail", &witness);

    let client = builder.clone().connect(frail.clone()).await.unwrap();

    assert_eq!(client.server().era, Era::Legacy);
    client.ping().await.unwrap();
    witness.next().await.ends().await;
    let second = witness.next().await;
    client.close().await;
    second.ends().await;

    // Now it is known.
    let client = builder.connect(frail).await.unwrap();
    let third = witness.next().await;
    client.ping().await.unwrap();
    assert!(!third.is_over());
}

#[tokio::test]
async fn a_server_that_always_dies_is_started_twice_and_its_last_words_are_told() {
    let witness = Witness::new();

    let error = stdio::spawn(child("hopeless", &witness)).await.unwrap_err();

    let ConnectError::Unreachable(TransportError::ProcessExited(died)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(died.exit, ExitReason::Code(4));
    assert_eq!(died.stderr_tail, "no paper left");
    for _ in 0..2 {
        witness.next().await.ends().await;
    }
    no_other_lives(&witness).await;
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
async fn a_server_that_does_not_end_is_made_to() {
    req!("stdio.shutdown.client-wait-kill");
    let witness = Witness::new();
    let stubborn = child("stubborn server", &witness).kill_timeout(SHORT);
    let client = stdio::spawn(stubborn).await.unwrap();
    let process = client.process().unwrap();

    timeout(LONG, client.close()).await.unwrap();

    assert!(matches!(process.exit(), Some(ExitReason::Signal(9 | 15))));
}

#[tokio::test]
async fn whom_a_server_started_ends_with_the_last_client() {
    let witness = Witness::new();
    let forking = child("forking server", &witness).kill_timeout(SHORT);
    let client = stdio::spawn(forking).await.unwrap();
    let life = witness.next().await;
    let clone = client.clone();
    let view = client.process().unwrap();
    drop(client);
    assert_eq!(echo(&clone).await, "echo");

    drop(clone);

    life.ends().await;
    view.wait().await;
}

#[test]
fn a_client_that_is_dropped_away_from_its_runtime_leaves_nobody_behind() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (client, life) = runtime.block_on(async {
        let witness = Witness::new();
        let forking = child("forking server", &witness);
        let client = stdio::spawn(forking).await.unwrap();
        (client, witness.next().await)
    });

    // Nobody drives the runtime now.
    drop(client);

    runtime.block_on(life.ends());
}

#[tokio::test]
async fn only_messages_reach_standard_input_and_no_farewell() {
    req!(
        "stdio.stdin.only-mcp",
        "stdio.framing.newline",
        "stdio.framing.no-embedded",
        "stdio.shutdown.client-close",
        "lifecycle.shutdown.no-message",
    );
    let witness = Witness::new();
    let client = stdio::spawn(child("recorder", &witness)).await.unwrap();

    let text = "two\nlines\r\nand \u{2028} more";
    client
        .call_tool("note", json!({ "text": text }))
        .await
        .unwrap();
    client.close().await;

    let recorded = client.process().unwrap().stderr_tail();
    let recorded: Vec<Value> = recorded
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert_eq!(recorded.len(), 2, "{recorded:#?}");
    assert_eq!(recorded[0]["method"], "server/discover");
    assert_eq!(recorded[1]["method"], "tools/call");
    assert_eq!(recorded[1]["params"]["arguments"]["text"], text);
}

#[tokio::test]
async fn a_line_without_end_takes_no_memory() {
    let witness = Witness::new();
    let mut limits = turnbuckle_client::ClientLimits::default();
    limits.max_message_bytes = 64 * 1024;
    let builder = Client::builder("test", "1").limits(limits);
    let client = builder.connect(child("endless", &witness)).await.unwrap();
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

/// The most memory this process has had so far, in KiB, where the system tells.
fn memory_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

async fn heard(listening: &mut Subscription) -> SubscriptionEvent {
    let heard = timeout(LONG, listening.next()).await.unwrap();
    heard.unwrap().unwrap()
}

async fn echo(client: &Client) -> String {
    let output = client.call_tool("echo", json!({})).await.unwrap();
    output.content[0].as_text().unwrap().to_owned()
}

fn death(error: &CallError) -> Arc<ProcessExited> {
    match error {
        CallError::Disconnected {
            source: TransportError::ProcessExited(died),
            ..
        } => died.clone(),
        _ => panic!("{error:?}"),
    }
}
