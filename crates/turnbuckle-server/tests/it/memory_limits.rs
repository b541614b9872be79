//! Servers with limited memory, under attack.
//!
//! Each attack runs in a separate process with limited memory: this test binary, controlled by an environment variable.
//! A server with memory that grows with its input is killed, and the test fails. The total input of each kind exceeds the
//! limit; where it does not, the attack counts rejections.

mod http_attacks;
mod ndjson_attacks;

use std::{
    env,
    pin::Pin,
    process::{Command, Output},
};

use crate::memory_limits::{http_attacks as http, ndjson_attacks as lines};

const ROLE: &str = "TURNBUCKLE_TEST_ATTACK";
const SURVIVED: &str = "the server has survived";

type Attack = Pin<Box<dyn Future<Output = ()>>>;
/// Starts an attack.
type StartAttack = fn() -> Attack;

/// Attacks by name, with the memory limit in megabytes.
const ATTACKS: [(&str, u32, StartAttack); 17] = [
    ("hoard", 64, || Box::pin(hoard())),
    ("handshakes", 64, || Box::pin(http::handshakes())),
    (
        "large handshakes",
        64,
        || Box::pin(http::large_handshakes()),
    ),
    ("unread streams", 96, || Box::pin(http::unread_streams())),
    ("event logs", 64, || Box::pin(http::event_logs())),
    ("pending client requests", 64, || {
        Box::pin(http::pending_client_requests())
    }),
    ("round trips", 64, || Box::pin(http::round_trips())),
    ("journals", 56, || Box::pin(http::journals())),
    ("filters", 128, || Box::pin(http::filters())),
    ("subscriptions", 56, || Box::pin(http::subscriptions())),
    ("principals", 56, || Box::pin(http::principals())),
    ("heads", 96, || Box::pin(http::heads())),
    ("batches", 64, || Box::pin(http::batches())),
    ("an endless line", 64, || Box::pin(lines::endless_line())),
    ("notifications", 64, || Box::pin(lines::notifications())),
    ("unread ndjson output", 64, || Box::pin(lines::unread())),
    ("batches on ndjson", 64, || Box::pin(lines::batches())),
];

#[test]
fn run_attacked_server() {
    let Ok(requested) = env::var(ROLE) else {
        return;
    };
    let (_, _, attack) = ATTACKS
        .into_iter()
        .find(|(name, ..)| *name == requested)
        .expect("a known attack");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(attack());
    println!("{SURVIVED}");
}

/// Runs an attack in a limited process.
fn run(name: &str) -> Output {
    let (_, megabytes, _) = ATTACKS
        .into_iter()
        .find(|(attack, ..)| *attack == name)
        .expect("a known attack");
    Command::new("sh")
        .args(["-c", r#"ulimit -d "$1" && shift && exec "$@""#, "sh"])
        .arg((megabytes * 1024).to_string())
        .arg(env::current_exe().unwrap())
        .args([
            "--exact",
            "memory_limits::run_attacked_server",
            "--nocapture",
        ])
        .env(ROLE, name)
        .output()
        .unwrap()
}

#[track_caller]
fn survives(name: &str) {
    let output = run(name);
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && output_text.contains(SURVIVED),
        "{name}: {}\n{output_text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Allocates memory until that fails.
async fn hoard() {
    let mut hoarded = Vec::new();
    for _ in 0..1_000 {
        hoarded.push(std::hint::black_box(vec![1_u8; 1024 * 1024]));
        tokio::task::yield_now().await;
    }
}

#[test]
fn the_memory_limit_is_enforced() {
    let output = run("hoard");

    assert!(!output.status.success());
    assert!(!String::from_utf8_lossy(&output.stdout).contains(SURVIVED));
    let output_text = String::from_utf8_lossy(&output.stderr);
    assert!(output_text.contains("memory allocation"), "{output_text}");
}

#[test]
fn a_hundred_thousand_handshakes() {
    survives("handshakes");
}

#[test]
fn large_initialize_requests() {
    survives("large handshakes");
}

#[test]
fn unread_streams() {
    survives("unread streams");
}

#[test]
fn calls_with_unread_messages() {
    survives("event logs");
}

#[test]
fn unanswered_client_requests() {
    survives("pending client requests");
}

#[test]
fn abandoned_round_trips() {
    survives("round trips");
}

#[test]
fn abandoned_journals() {
    survives("journals");
}

#[test]
fn subscriptions_with_huge_filters() {
    survives("filters");
}

#[test]
fn sessions_that_subscribe_to_everything() {
    survives("subscriptions");
}

#[test]
fn side_effects_of_many_principals() {
    survives("principals");
}

#[test]
fn endless_request_heads() {
    survives("heads");
}

#[test]
fn batches_with_large_responses() {
    survives("batches");
}

#[test]
fn a_line_of_a_gigabyte() {
    survives("an endless line");
}

#[test]
fn endless_notifications() {
    survives("notifications");
}

#[test]
fn unread_ndjson_output() {
    survives("unread ndjson output");
}

#[test]
fn batches_with_large_responses_on_ndjson() {
    survives("batches on ndjson");
}
