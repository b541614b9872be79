//! Servers with limited memory, under attack.
//!
//! Each attack runs in a separate process with limited memory: this test binary, controlled by an environment variable.
//! A server whose memory grows with its input is killed, and the test fails. The total input of each kind exceeds the
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
type Begin = fn() -> Attack;

/// Attacks by name, with the memory limit in megabytes.
const ATTACKS: [(&str, u32, Begin); 17] = [
    ("hoard", 64, || Box::pin(hoard())),
    ("handshakes", 64, || Box::pin(http::handshakes())),
    (
        "large handshakes",
        64,
        || Box::pin(http::large_handshakes()),
    ),
    ("unread streams", 96, || Box::pin(http::unread_streams())),
    ("event logs", 64, || Box::pin(http::event_logs())),
    ("open questions", 64, || Box::pin(http::open_questions())),
    ("rounds", 64, || Box::pin(http::rounds())),
    ("journals", 56, || Box::pin(http::journals())),
    ("filters", 128, || Box::pin(http::filters())),
    ("subscriptions", 56, || Box::pin(http::subscriptions())),
    ("principals", 56, || Box::pin(http::principals())),
    ("heads", 96, || Box::pin(http::heads())),
    ("arrays", 64, || Box::pin(http::arrays())),
    ("a line without end", 64, || Box::pin(lines::endless_line())),
    ("notifications", 64, || Box::pin(lines::notifications())),
    ("unread lines", 64, || Box::pin(lines::unread())),
    ("arrays on lines", 64, || Box::pin(lines::arrays())),
];

#[test]
fn be_attacked() {
    let Ok(wanted) = env::var(ROLE) else {
        return;
    };
    let (_, _, attack) = ATTACKS
        .into_iter()
        .find(|(name, ..)| *name == wanted)
        .expect("an attack that there is");
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
        .find(|(known, ..)| *known == name)
        .expect("an attack that there is");
    Command::new("sh")
        .args(["-c", r#"ulimit -d "$1" && shift && exec "$@""#, "sh"])
        .arg((megabytes * 1024).to_string())
        .arg(env::current_exe().unwrap())
        .args(["--exact", "memory_limits::be_attacked", "--nocapture"])
        .env(ROLE, name)
        .output()
        .unwrap()
}

#[track_caller]
fn survives(name: &str) {
    let output = run(name);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains(SURVIVED),
        "{name}: {}\n{said}\n{}",
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
fn who_takes_more_memory_than_there_is_gets_killed() {
    let output = run("hoard");

    assert!(!output.status.success());
    assert!(!String::from_utf8_lossy(&output.stdout).contains(SURVIVED));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("memory allocation"), "{said}");
}

#[test]
fn a_hundred_thousand_handshakes() {
    survives("handshakes");
}

#[test]
fn handshakes_that_say_much() {
    survives("large handshakes");
}

#[test]
fn streams_that_nobody_reads() {
    survives("unread streams");
}

#[test]
fn calls_that_talk_to_nobody() {
    survives("event logs");
}

#[test]
fn questions_that_nobody_answers() {
    survives("open questions");
}

#[test]
fn rounds_that_nobody_goes_on_with() {
    survives("rounds");
}

#[test]
fn journals_that_nobody_comes_back_for() {
    survives("journals");
}

#[test]
fn listeners_with_huge_filters() {
    survives("filters");
}

#[test]
fn sessions_that_subscribe_to_everything() {
    survives("subscriptions");
}

#[test]
fn effects_of_many_principals() {
    survives("principals");
}

#[test]
fn heads_without_end() {
    survives("heads");
}

#[test]
fn arrays_of_large_answers() {
    survives("arrays");
}

#[test]
fn a_line_of_a_gigabyte() {
    survives("a line without end");
}

#[test]
fn notifications_without_end() {
    survives("notifications");
}

#[test]
fn lines_that_nobody_reads() {
    survives("unread lines");
}

#[test]
fn arrays_of_large_answers_on_lines() {
    survives("arrays on lines");
}
