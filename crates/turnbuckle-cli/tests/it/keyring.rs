//! Tests of logins that are encrypted with a key in the system keyring.

use std::{fs, process::Command};

use crate::{
    auth_server::AuthServer,
    login::{LOGINS_FILE, PendingLogin, log_in, normalize},
    sandbox::Sandbox,
};

/// Returns a command in a D-Bus session with its own keyring, stored in the sandbox.
fn in_session(sandbox: &Sandbox, words: &[&str]) -> Command {
    const UNLOCK: &str = "printf sesame | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1; exec \"$@\"";
    let alone = sandbox.command(words);
    let mut command = Command::new("dbus-run-session");
    command.args(["--", "sh", "-c", UNLOCK, "sh"]);
    command.arg(alone.get_program()).args(alone.get_args());
    let vars = alone.get_envs();
    command
        .env_clear()
        .envs(vars.filter_map(|(name, value)| Some((name, value?))))
        .env("XDG_RUNTIME_DIR", sandbox.path());
    command.current_dir(sandbox.path());
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

fn logins_text(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.path().join(LOGINS_FILE)).unwrap()
}

#[test]
fn without_a_keyring_nothing_is_encrypted_and_no_login_starts() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    log_in(&sandbox, &auth_server);
    let before = (logins_text(&sandbox), auth_server.count("POST /mcp"));

    let seen = sandbox.run(&["login", &url, "--no-browser", "--keyring"]);

    let what = "cannot use the system keyring: ";
    assert!(seen.contains(what), "{seen}");
    let how = "hint: nothing was changed; run this in a session with a keyring";
    assert!(seen.contains(how), "{seen}");
    assert!(seen.ends_with("--- exit 2\n"), "{seen}");
    assert!(!seen.contains("Log in at"), "{seen}");
    assert_eq!(
        (logins_text(&sandbox), auth_server.count("POST /mcp")),
        before
    );
    assert!(sandbox.run(&["ping", &url]).starts_with("response in"));
}

#[test]
fn a_login_is_encrypted_used_and_decrypted_again() {
    if !has_keyring() {
        eprintln!("not run: dbus-run-session or gnome-keyring-daemon is not installed");
        return;
    }
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    let run = |words: &[&str]| {
        let output = in_session(&sandbox, words).output().unwrap();
        normalize(&sandbox.render(&output), &auth_server)
    };
    let log_in_by = |words: &[&str]| {
        let login = PendingLogin::start(in_session(&sandbox, words));
        login.follow_login_page();
        login.end(&sandbox, &auth_server)
    };
    log_in(&sandbox, &auth_server);
    assert!(logins_text(&sandbox).contains(&url));

    let seen = log_in_by(&["login", &url, "--no-browser", "--keyring"]);

    let stored = "stored   encrypted with a key in the system keyring\n";
    assert!(seen.contains(stored), "{seen}");
    assert!(
        !logins_text(&sandbox).contains(&url),
        "{}",
        logins_text(&sandbox)
    );
    let seen = run(&["whoami", &url]);
    assert!(seen.contains(stored), "{seen}");
    auth_server.revoke_access_tokens();
    let seen = run(&["ping", &url]);
    assert!(seen.contains("response in"), "{seen}");
    assert_eq!(auth_server.count("POST /token refresh_token"), 1);
    assert!(
        !logins_text(&sandbox).contains(&url),
        "{}",
        logins_text(&sandbox)
    );

    let sealed = logins_text(&sandbox);
    let seen = sandbox.run(&["ping", &url]);
    assert!(seen.contains("cannot use the system keyring"), "{seen}");
    assert_eq!(logins_text(&sandbox), sealed);

    let seen = log_in_by(&["login", &url, "--no-browser", "--no-keyring"]);
    assert!(seen.contains("stored   in a file that only you"), "{seen}");
    assert!(sandbox.run(&["ping", &url]).starts_with("response in"));
}
