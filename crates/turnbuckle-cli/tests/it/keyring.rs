//! Logins that are sealed with a key in the keyring of the system.

use std::fs;
use std::process::Command;

use crate::authority::Authority;
use crate::logging_in::{Begun, LOGINS, log_in, tidy};
use crate::stage::Stage;

/// Prepares the binary in a session with a keyring of its own, which lies in the folder of the stage.
fn in_session(stage: &Stage, words: &[&str]) -> Command {
    const UNLOCK: &str = "printf sesame | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1; exec \"$@\"";
    let alone = stage.command(words);
    let mut command = Command::new("dbus-run-session");
    command.args(["--", "sh", "-c", UNLOCK, "sh"]);
    command.arg(alone.get_program()).args(alone.get_args());
    let vars = alone.get_envs();
    command
        .env_clear()
        .envs(vars.filter_map(|(name, value)| Some((name, value?))))
        .env("XDG_RUNTIME_DIR", stage.path());
    command.current_dir(stage.path());
    command.stdin(std::process::Stdio::null());
    command
}

fn has_keyring() -> bool {
    let is_there = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    is_there("dbus-run-session") && is_there("gnome-keyring-daemon")
}

fn written(stage: &Stage) -> String {
    fs::read_to_string(stage.path().join(LOGINS)).unwrap()
}

#[test]
fn where_no_keyring_answers_nothing_is_sealed_and_nobody_is_sent_to_log_in() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    log_in(&stage, &authority);
    let before = (written(&stage), authority.count("POST /mcp"));

    let seen = stage.run(&["login", &url, "--no-browser", "--keyring"]);

    let what = "the keyring of the system cannot be used: ";
    assert!(seen.contains(what), "{seen}");
    let how = "hint: nothing was changed; run this in a session with a keyring";
    assert!(seen.contains(how), "{seen}");
    assert!(seen.ends_with("--- exit 2\n"), "{seen}");
    assert!(!seen.contains("Log in at"), "{seen}");
    assert_eq!((written(&stage), authority.count("POST /mcp")), before);
    assert!(stage.run(&["ping", &url]).starts_with("answered in"));
}

#[test]
fn a_login_is_sealed_and_used_and_becomes_plain_again() {
    if !has_keyring() {
        eprintln!("not run: dbus-run-session or gnome-keyring-daemon is not installed");
        return;
    }
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    let run = |words: &[&str]| {
        let output = in_session(&stage, words).output().unwrap();
        tidy(&stage.seen(&output), &authority)
    };
    let log_in_by = |words: &[&str]| {
        let begun = Begun::new(in_session(&stage, words));
        begun.browse();
        begun.end(&stage, &authority)
    };
    log_in(&stage, &authority);
    assert!(written(&stage).contains(&url));

    let seen = log_in_by(&["login", &url, "--no-browser", "--keyring"]);

    let kept = "kept     sealed with a key in the keyring of the system\n";
    assert!(seen.contains(kept), "{seen}");
    assert!(!written(&stage).contains(&url), "{}", written(&stage));
    let seen = run(&["whoami", &url]);
    assert!(seen.contains(kept), "{seen}");
    authority.end_tokens();
    let seen = run(&["ping", &url]);
    assert!(seen.contains("answered in"), "{seen}");
    assert_eq!(authority.count("POST /token refresh_token"), 1);
    assert!(!written(&stage).contains(&url), "{}", written(&stage));

    let sealed = written(&stage);
    let seen = stage.run(&["ping", &url]);
    assert!(
        seen.contains("the keyring of the system cannot be used"),
        "{seen}"
    );
    assert_eq!(written(&stage), sealed);

    let seen = log_in_by(&["login", &url, "--no-browser", "--no-keyring"]);
    assert!(seen.contains("kept     in a file that only you"), "{seen}");
    assert!(stage.run(&["ping", &url]).starts_with("answered in"));
}
