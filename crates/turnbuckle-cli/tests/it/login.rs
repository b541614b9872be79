//! Tests of `login`, `whoami` and `logout`, and of other commands with a login.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{
    auth_server::AuthServer, sandbox::Sandbox, serve_process::get, terminal::TerminalSession,
};

/// A login that waits for the user.
pub(crate) struct PendingLogin {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    stderr_text: String,
    /// The login URL.
    page: String,
}

impl PendingLogin {
    /// Starts a login, and reads the login URL.
    pub(crate) fn start(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut stderr_text = String::new();
        let page = loop {
            let before = stderr_text.len();
            if stderr.read_line(&mut stderr_text).unwrap() == 0 {
                panic!("no login page:\n{stderr_text}");
            }
            if let Some(page) = stderr_text[before..].strip_prefix("  http") {
                break format!("http{}", page.trim_end());
            }
        };
        Self {
            child,
            stderr,
            stderr_text,
            page,
        }
    }

    /// Requests the login URL and follows the redirect, as a browser does. Returns the last response.
    pub(crate) fn follow_login_page(&self) -> String {
        let sent_on = get(&self.page);
        let mut lines = sent_on.lines();
        let location = lines.find_map(|line| line.strip_prefix("Location: "));
        get(location.unwrap_or_else(|| panic!("{sent_on}")))
    }

    /// Returns the program, and its stderr.
    pub(crate) fn into_program(self) -> (Child, BufReader<std::process::ChildStderr>) {
        (self.child, self.stderr)
    }

    /// Waits for the end, and returns the output.
    pub(crate) fn end(mut self, sandbox: &Sandbox, auth_server: &AuthServer) -> String {
        self.stderr.read_to_string(&mut self.stderr_text).unwrap();
        let mut output = self.child.wait_with_output().unwrap();
        output.stderr = self.stderr_text.into_bytes();
        normalize(&sandbox.render(&output), auth_server)
    }
}

/// Replaces parts that differ between runs.
pub(crate) fn normalize(text: &str, auth_server: &AuthServer) -> String {
    let line = |line: &str| match line {
        line if line.starts_with("  http") => {
            let place = line.split('?').next().unwrap_or(line);
            format!("{place}?…\n")
        }
        line if line.starts_with("expires  2") => "expires  …\n".to_owned(),
        line if line.trim_start().starts_with("\"expires\": \"") => "      \"expires\": …\n".into(),
        line => format!("{line}\n"),
    };
    let host = auth_server.origin.strip_prefix("http://").unwrap();
    text.replace(host, "HOST").lines().map(line).collect()
}

pub(crate) fn log_in(sandbox: &Sandbox, auth_server: &AuthServer) -> String {
    let url = auth_server.url();
    let login = PendingLogin::start(sandbox.command(&["login", &url, "--no-browser"]));
    login.follow_login_page();
    login.end(sandbox, auth_server)
}

/// Returns the stored logins.
fn stored_logins(sandbox: &Sandbox) -> Value {
    let bytes = fs::read(sandbox.path().join(LOGINS_FILE)).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

pub(crate) const LOGINS_FILE: &str = ".local/state/turnbuckle/logins/logins.json";

fn run(sandbox: &Sandbox, auth_server: &AuthServer, words: &[&str]) -> String {
    normalize(&sandbox.run(words), auth_server)
}

#[test]
fn login_use_and_logout() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();

    insta::assert_snapshot!(run(&sandbox, &auth_server, &["ping", &url]), @r"
    --- stderr
    error: the server requires authorization: HTTP status 401 Unauthorized

    hint: log in with `turnbuckle login http://HOST/mcp`, or send a token with --token-file FILE
    --- exit 2
    ");
    let login = PendingLogin::start(sandbox.command(&["login", &url, "--no-browser"]));
    let shown = login.follow_login_page();
    assert!(shown.starts_with("HTTP/1.1 200"), "{shown}");
    insta::assert_snapshot!(login.end(&sandbox, &auth_server), @r"
    server   http://HOST/mcp
    issuer   http://HOST
    subject  user-1 (ada@example.com)
    scopes   weather:read
    client   client-1
    expires  …
    stored   in a file that only you can read
    --- stderr
    Log in at HOST:

      http://HOST/authorize?…

    Open it in a browser on this machine; press Ctrl-C to cancel.
    You are logged in.
    ");

    let seen = sandbox.run(&["call", &url, "forecast", "city=Oslo"]);
    assert!(seen.contains("Sun over Oslo"), "{seen}");
    insta::assert_snapshot!(run(&sandbox, &auth_server, &["whoami", &url]), @r"
    server   http://HOST/mcp
    issuer   http://HOST
    subject  user-1 (ada@example.com)
    scopes   weather:read
    client   client-1
    expires  …
    stored   in a file that only you can read
    ");
    insta::assert_snapshot!(run(&sandbox, &auth_server, &["whoami"]), @r"
    server                      subject          issuer                  expires    scopes
    http://HOST/mcp  ada@example.com  http://HOST  refreshed  weather:read
    --- stderr
    stored in a file that only you can read
    ");
    insta::assert_snapshot!(run(&sandbox, &auth_server, &["whoami", "--json"]), @r#"
    {
      "logins": [
        {
          "server": "http://HOST/mcp",
          "issuer": "http://HOST",
          "subject": "user-1",
          "name": "ada@example.com",
          "scopes": [
            "weather:read"
          ],
          "clientId": "client-1",
          "expires": …
          "renews": true,
          "bound": false,
          "encrypted": false
        }
      ]
    }
    "#);
    insta::assert_snapshot!(run(&sandbox, &auth_server, &["logout", &url]), @r"
    --- stderr
    logged out of http://HOST/mcp
    ");
    insta::assert_snapshot!(run(&sandbox, &auth_server, &["logout", &url]), @r"
    --- stderr
    error: you are not logged in to this server

    hint: list your logins with `turnbuckle whoami`
    --- exit 1
    ");
    insta::assert_snapshot!(run(&sandbox, &auth_server, &["whoami", &url]), @r"
    --- stderr
    error: you are not logged in to `http://HOST/mcp`

    hint: log in with `turnbuckle login http://HOST/mcp`
    --- exit 1
    ");
    assert!(sandbox.run(&["ping", &url]).contains("turnbuckle login"));
}

#[test]
fn a_logout_revokes_the_tokens() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    auth_server.state().revocation_status = Some("200 OK");
    log_in(&sandbox, &auth_server);
    assert_eq!(auth_server.valid_token_count(), 2);

    let output = run(&sandbox, &auth_server, &["logout", &auth_server.url()]);

    insta::assert_snapshot!(output, @r"
    --- stderr
    logged out of http://HOST/mcp
    ");
    assert_eq!(auth_server.valid_token_count(), 0);
}

#[test]
fn a_failed_revocation_is_a_warning_and_the_login_is_deleted() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    auth_server.state().revocation_status = Some("503 Service Unavailable");
    log_in(&sandbox, &auth_server);

    let output = run(&sandbox, &auth_server, &["logout", "--all"]);

    insta::assert_snapshot!(output, @r"
    --- stderr
    warning: the tokens were deleted, but not revoked, and may stay valid until they expire: the authorization server failed (503)
    logged out of http://HOST/mcp
    ");
    assert_eq!(auth_server.valid_token_count(), 2);
    let after = sandbox.run(&["whoami", &auth_server.url()]);
    assert!(after.contains("you are not logged in"), "{after}");
}

/// Stores the login also for a caller of a bridge, and at an invalid URL.
fn add_login_of_caller(sandbox: &Sandbox, url: &str) {
    let mut stored = stored_logins(sandbox);
    let own = stored["logins"][url].clone();
    let user = "0123456789abcdef".repeat(4);
    for key in [format!("{url}#user={user}"), "invalid".to_owned()] {
        let mut login = own.clone();
        login["server_url"] = key.as_str().into();
        stored["logins"][key] = login;
    }
    sandbox.write(LOGINS_FILE, &stored.to_string());
}

#[test]
fn a_logout_also_deletes_the_logins_of_callers_of_a_bridge() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    auth_server.state().revocation_status = Some("200 OK");
    log_in(&sandbox, &auth_server);
    add_login_of_caller(&sandbox, &url);

    let listed = sandbox.run(&["whoami"]);
    assert!(listed.contains(" (caller 01234567) "), "{listed}");
    assert!(!listed.contains("#user="), "{listed}");
    let document = sandbox.run(&["whoami", "--json"]);
    assert!(
        document.contains(r#""user": "0123456789abcdef"#),
        "{document}"
    );
    insta::assert_snapshot!(run(&sandbox, &auth_server, &["logout", &url]), @r"
    --- stderr
    logged out of http://HOST/mcp
    logged out of http://HOST/mcp (caller 01234567)
    ");

    assert_eq!(auth_server.valid_token_count(), 0);
    let stored = stored_logins(&sandbox);
    let keys: Vec<_> = stored["logins"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["invalid"]);
}

#[test]
fn a_login_that_cannot_be_deleted_does_not_keep_the_others() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    log_in(&sandbox, &auth_server);
    add_login_of_caller(&sandbox, &auth_server.url());

    let output = run(&sandbox, &auth_server, &["logout", "--all"]);

    assert!(
        output.contains("logged out of http://HOST/mcp\n"),
        "{output}"
    );
    assert!(
        output.contains("http://HOST/mcp (caller 01234567)\n"),
        "{output}"
    );
    assert!(output.contains("error: "), "{output}");
    assert!(output.contains("--- exit 2"), "{output}");
    let stored = stored_logins(&sandbox);
    assert_eq!(stored["logins"].as_object().unwrap().len(), 1);
}

#[test]
fn logins_are_private_and_tokens_are_never_shown() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();

    let seen = log_in(&sandbox, &auth_server)
        + &sandbox.run(&["ping", &url, "--verbose"])
        + &sandbox.run(&["whoami", &url, "--json"]);

    assert!(!seen.contains("sesame"), "{seen}");
    let file = sandbox.path().join(LOGINS_FILE);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn an_expired_token_is_refreshed_silently() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    log_in(&sandbox, &auth_server);

    auth_server.revoke_access_tokens();
    let seen = sandbox.run(&["call", &url, "forecast", "city=Oslo"]);

    assert!(seen.contains("Sun over Oslo"), "{seen}");
    assert!(!seen.contains("--- stderr"), "{seen}");
    assert_eq!(auth_server.count("POST /token refresh_token"), 1);
}

#[test]
fn a_token_about_to_expire_is_refreshed_before_it_is_sent() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    log_in(&sandbox, &auth_server);
    let mut stored = stored_logins(&sandbox);
    stored["logins"][&url]["tokens"]["expires"] = 1.into();
    sandbox.write(LOGINS_FILE, &stored.to_string());
    auth_server.revoke_access_tokens();
    let rejected = auth_server.count("POST /mcp");

    let seen = sandbox.run(&["ping", &url]);

    assert!(seen.starts_with("response in"), "{seen}");
    assert_eq!(auth_server.count("POST /token refresh_token"), 1);
    assert_eq!(auth_server.count("POST /mcp"), rejected);
}

#[test]
fn concurrent_commands_refresh_once() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    log_in(&sandbox, &auth_server);
    auth_server.revoke_access_tokens();

    let begin = || {
        let mut command = sandbox.command(&["call", &url, "forecast", "city=Oslo"]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let both = [begin(), begin()].map(|child| child.wait_with_output().unwrap());

    for output in &both {
        let seen = sandbox.render(output);
        assert!(seen.contains("Sun over Oslo"), "{seen}");
    }
    assert_eq!(auth_server.count("POST /token refresh_token"), 1);
}

#[test]
fn an_expired_login_asks_to_log_in_again() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    log_in(&sandbox, &auth_server);

    auth_server.revoke_all_tokens();

    insta::assert_snapshot!(run(&sandbox, &auth_server, &["ping", &url]), @r"
    --- stderr
    error: authorization failed while using the token: the login has expired and cannot be refreshed

      request  POST http://HOST/mcp
      response 401

    hint: log in again with `turnbuckle login http://HOST/mcp`
    --- exit 2
    ");
    insta::assert_snapshot!(run(&sandbox, &auth_server, &["ping", &url, "--json"]), @r#"
    {
      "error": {
        "message": "authorization failed while using the token: the login has expired and cannot be refreshed",
        "step": "use",
        "request": "POST http://HOST/mcp",
        "response": "401",
        "cause": "the login has expired and cannot be refreshed",
        "hint": "log in again with `turnbuckle login http://HOST/mcp`"
      }
    }
    --- stderr
    error: authorization failed while using the token: the login has expired and cannot be refreshed

      request  POST http://HOST/mcp
      response 401

    hint: log in again with `turnbuckle login http://HOST/mcp`
    --- exit 2
    "#);
    log_in(&sandbox, &auth_server);
    assert!(sandbox.run(&["ping", &url]).starts_with("response in"));
}

#[test]
fn a_denied_login_is_not_stored() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    auth_server.state().denies = true;

    let login = PendingLogin::start(sandbox.command(&["login", &url, "--no-browser"]));
    login.follow_login_page();

    insta::assert_snapshot!(login.end(&sandbox, &auth_server), @r"
    --- stderr
    Log in at HOST:

      http://HOST/authorize?…

    Open it in a browser on this machine; press Ctrl-C to cancel.
    error: authorization failed while waiting for the login to finish: access was denied

      response access_denied: Ada said no

    hint: log in again and allow it
    --- exit 1
    ");
    assert!(
        sandbox
            .run(&["whoami"])
            .contains("not logged in to any server")
    );
}

#[test]
fn metadata_with_another_issuer_is_rejected() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    auth_server.state().wrong_issuer = true;

    insta::assert_snapshot!(run(&sandbox, &auth_server, &["login", &url]), @r"
    --- stderr
    error: authorization failed while reading the metadata of the authorization server: the metadata of the authorization server `http://HOST` belongs to another one, `https://accounts.example`

      request  GET http://HOST/.well-known/oauth-authorization-server

    hint: the document was not used; ask the operator of the server to correct it
    --- exit 2
    ");
    insta::assert_snapshot!(run(&sandbox, &auth_server, &["login", &url, "--json"]), @r#"
    {
      "error": {
        "message": "authorization failed while reading the metadata of the authorization server: the metadata of the authorization server `http://HOST` belongs to another one, `https://accounts.example`",
        "step": "server-metadata",
        "request": "GET http://HOST/.well-known/oauth-authorization-server",
        "response": null,
        "cause": "the metadata of the authorization server `http://HOST` belongs to another one, `https://accounts.example`",
        "hint": "the document was not used; ask the operator of the server to correct it"
      }
    }
    --- stderr
    error: authorization failed while reading the metadata of the authorization server: the metadata of the authorization server `http://HOST` belongs to another one, `https://accounts.example`

      request  GET http://HOST/.well-known/oauth-authorization-server

    hint: the document was not used; ask the operator of the server to correct it
    --- exit 2
    "#);
    assert_eq!(auth_server.count("POST /register"), 0);
}

#[test]
fn a_server_without_authorization_needs_no_login() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    auth_server.state().is_public = true;

    insta::assert_snapshot!(run(&sandbox, &auth_server, &["login", &auth_server.url()]), @r"
    --- stderr
    http://HOST/mcp does not use authorization: no login is needed
    ");
    insta::assert_snapshot!(run(&sandbox, &auth_server, &["login", "SOCKET"]), @r"
    --- stderr
    error: `SOCKET` is not a server on HTTP: logins are not supported

    hint: pass credentials to a program in environment variables
    --- exit 2
    ");
}

#[test]
fn the_device_flow_is_used_without_a_browser() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    auth_server.state().supports_device_flow = true;

    insta::assert_snapshot!(run(&sandbox, &auth_server, &["login", &url, "--no-browser"]), @r"
    server   http://HOST/mcp
    issuer   http://HOST
    subject  user-1 (ada@example.com)
    scopes   weather:read
    client   client-1
    expires  …
    stored   in a file that only you can read
    --- stderr
    Log in on any device, within 10 min:

      page  http://HOST/type
      code  WDJB-MJHT

    Waiting; press Ctrl-C to cancel.
    You are logged in.
    ");
    assert!(sandbox.run(&["ping", &url]).starts_with("response in"));
}

#[test]
fn a_browser_is_opened_with_the_url_as_one_argument() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    // The names of the opener on Linux and macOS.
    for opener in ["bin/xdg-open", "bin/open"] {
        let script = "#!/bin/sh\necho \"$#\" > opened\necho \"$1\" >> opened\n";
        sandbox.write(opener, script);
        let may_run = fs::Permissions::from_mode(0o755);
        fs::set_permissions(sandbox.path().join(opener), may_run).unwrap();
    }
    let path = format!("{}/bin:/usr/bin:/bin", sandbox.path().display());
    let mut command = sandbox.command(&["login", &auth_server.url()]);
    command.env("PATH", path).env("DISPLAY", ":0");

    let login = PendingLogin::start(command);
    login.follow_login_page();
    let page = login.page.clone();

    insta::assert_snapshot!(login.end(&sandbox, &auth_server), @r"
    server   http://HOST/mcp
    issuer   http://HOST
    subject  user-1 (ada@example.com)
    scopes   weather:read
    client   client-1
    expires  …
    stored   in a file that only you can read
    --- stderr
    Log in at HOST:

      http://HOST/authorize?…

    Opened in your browser; press Ctrl-C to cancel.
    You are logged in.
    ");
    let opened = fs::read_to_string(sandbox.path().join("opened")).unwrap();
    assert_eq!(opened, format!("1\n{page}\n"));
}

#[test]
fn without_a_browser_the_url_is_printed() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let mut command = sandbox.command(&["login", &auth_server.url()]);
    command.env("PATH", sandbox.path()).env("DISPLAY", ":0");

    let login = PendingLogin::start(command);
    login.follow_login_page();

    let seen = login.end(&sandbox, &auth_server);
    assert!(seen.contains("Could not start a browser: "), "{seen}");
    assert!(seen.contains("You are logged in."), "{seen}");
}

#[test]
fn other_commands_open_no_browser() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let mut command = sandbox.command(&["ping", &auth_server.url()]);

    let output = command.env("DISPLAY", ":0").output().unwrap();

    assert_eq!(output.status.code(), Some(2));
    assert_eq!(auth_server.count("GET /"), 0);
}

#[test]
fn a_client_id_with_secret_is_used_instead_of_registration() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    auth_server.state().lacks_registration = true;
    sandbox.write("secret", "sesame: open\n");

    insta::assert_snapshot!(run(&sandbox, &auth_server, &["login", &url]), @r"
    --- stderr
    error: authorization failed while registering with the authorization server: `http://HOST` does not know this client and does not support dynamic registration

    hint: get a client id from the operator of the authorization server, and pass it with --client-id ID
    --- exit 2
    ");
    let words = ["login", &url, "--no-browser", "--client-id", "me"];
    let words = [&words[..], &["--client-secret-file", "secret"]].concat();
    let login = PendingLogin::start(sandbox.command(&words));
    login.follow_login_page();
    let seen = login.end(&sandbox, &auth_server);

    assert!(seen.contains("other users can read secret"), "{seen}");
    assert!(seen.contains("client   me\n"), "{seen}");
    // me:sesame%3A%20open
    assert_eq!(
        auth_server.state().client_credentials,
        ["Basic bWU6c2VzYW1lJTNBJTIwb3Blbg=="]
    );
    assert_eq!(auth_server.count("POST /register"), 0);
    let other = sandbox.run(&["ping", &url, "--client-id", "another-client"]);
    assert!(other.contains("HTTP status 401"), "{other}");
}

#[test]
fn the_client_credentials_grant_needs_no_user() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    sandbox.write("secret", "sesame\n");
    let words = ["login", &url, "--as-client", "--client-id", "me"];
    let words = [&words[..], &["--client-secret-file", "secret"]].concat();

    let seen = sandbox.run(&words);

    assert!(seen.ends_with("You are logged in.\n"), "{seen}");
    assert_eq!(auth_server.count("GET /authorize"), 0);
    assert!(sandbox.run(&["ping", &url]).starts_with("response in"));
    let without_id = sandbox.run(&["login", &url, "--as-client"]);
    assert!(without_id.contains("--client-id <ID>"), "{without_id}");
}

#[test]
fn a_fixed_redirect_uri_is_used() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("http://{}/back", free.local_addr().unwrap());
    drop(free);
    let url = auth_server.url();
    let words = ["login", &url, "--no-browser", "--client-id", "me"];
    let words = [&words[..], &["--redirect-uri", &uri]].concat();

    let login = PendingLogin::start(sandbox.command(&words));
    login.follow_login_page();

    let seen = login.end(&sandbox, &auth_server);
    assert!(seen.ends_with("You are logged in.\n"), "{seen}");
    let elsewhere = ["login", &url, "--redirect-uri", "https://evil.example/"];
    insta::assert_snapshot!(run(&sandbox, &auth_server, &elsewhere), @r#"
    --- stderr
    error: authorization failed while opening the login page: "https://evil.example/" is not a valid loopback redirect URI

    hint: use a redirect URI such as `http://127.0.0.1:8976/callback`
    --- exit 2
    "#);
}

#[test]
fn insufficient_scope_is_reported_with_the_login_command() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    log_in(&sandbox, &auth_server);
    auth_server.state().required_scope = Some("weather:write");

    insta::assert_snapshot!(run(&sandbox, &auth_server, &["ping", &url]), @r"
    --- stderr
    error: authorization failed while using the token: the login lacks the scope `weather:write`

      request  POST http://HOST/mcp
      response 403 insufficient_scope

    hint: log in again with `turnbuckle login http://HOST/mcp --scope weather:write`
    --- exit 2
    ");
    let words = ["login", &url, "--no-browser", "--scope", "weather:write"];
    let login = PendingLogin::start(sandbox.command(&words));
    login.follow_login_page();
    let seen = login.end(&sandbox, &auth_server);

    let both = "scopes   weather:read weather:write\n";
    assert!(seen.contains(both), "{seen}");
    assert!(sandbox.run(&["ping", &url]).starts_with("response in"));
}

#[test]
fn a_login_that_the_server_rejects_is_not_stored() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    auth_server.state().rejects_all_tokens = true;

    insta::assert_snapshot!(log_in(&sandbox, &auth_server), @r"
    --- stderr
    Log in at HOST:

      http://HOST/authorize?…

    Open it in a browser on this machine; press Ctrl-C to cancel.
    error: authorization failed while using the token: the server rejects the token that `http://HOST` has just issued

    hint: ask the operator of the server to accept tokens of this issuer with the URL of the server as audience
    --- exit 2
    ");
    assert!(
        sandbox
            .run(&["whoami"])
            .contains("not logged in to any server")
    );
}

#[test]
fn a_server_with_optional_authorization_can_be_logged_in_to() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    auth_server.state().has_optional_auth = true;

    let seen = log_in(&sandbox, &auth_server);

    assert!(seen.ends_with("You are logged in.\n"), "{seen}");
}

#[test]
fn the_redirect_url_of_another_machine_can_be_pasted() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let mut session =
        TerminalSession::new(&sandbox, &["login", &auth_server.url(), "--no-browser"]);

    session.answer("paste its URL here.", "good morning\n");
    session.answer("not the redirect URL", "");
    let page = session
        .seen
        .lines()
        .find_map(|line| line.trim().strip_prefix("http"));
    let page = format!("http{}", page.unwrap());
    let sent_on = get(&page);
    let location = sent_on
        .lines()
        .find_map(|line| line.strip_prefix("Location: "));
    session.answer("", &format!("{}\n", location.unwrap()));

    let seen = session.end(&sandbox);
    assert!(seen.contains("You are logged in."), "{seen}");
    assert!(seen.ends_with("--- exit 0\n"), "{seen}");
}

#[test]
fn ctrl_c_cancels_a_login() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let mut session =
        TerminalSession::new(&sandbox, &["login", &auth_server.url(), "--no-browser"]);

    session.answer("paste its URL here.", "");
    session.interrupt();

    let seen = session.end(&sandbox);
    assert!(seen.ends_with("error: interrupted\n--- exit 2\n"), "{seen}");
}

#[test]
fn a_configured_header_overrides_a_login() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    log_in(&sandbox, &auth_server);
    sandbox.write(
        ".claude.json",
        &format!(
            r#"{{"mcpServers": {{"mine": {{"type": "http", "url": "{url}", "headers": {{"authorization": "Bearer own"}}}}}}}}"#
        ),
    );

    insta::assert_snapshot!(run(&sandbox, &auth_server, &["ping", "mine"]), @r"
    --- stderr
    error: the server requires authorization: HTTP status 401 Unauthorized

    hint: the credentials were rejected: they may have expired, or be for another server; remove them, and log in with `turnbuckle login mine`
    --- exit 2
    ");
    insta::assert_snapshot!(run(&sandbox, &auth_server, &["login", "mine"]), @r"
    --- stderr
    error: `mine` has an `Authorization` header, which would override the login

    hint: remove the token option, or the header in the configuration
    --- exit 2
    ");
}

#[test]
fn a_login_is_used_for_a_project_only_once_it_is_approved() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    log_in(&sandbox, &auth_server);
    sandbox.write(
        ".mcp.json",
        &format!(r#"{{"mcpServers": {{"mine": {{"type": "http", "url": "{url}"}}}}}}"#),
    );

    let refused = run(&sandbox, &auth_server, &["ping", "mine"]);
    let mut asked = TerminalSession::new(&sandbox, &["ping", "mine"]);
    asked.answer("[y/n]", "y\n");
    let asked = asked.end(&sandbox);
    let approved = sandbox.run(&["ping", "mine"]);

    assert!(refused.contains("defined by a project"), "{refused}");
    assert!(asked.contains(&url), "{asked}");
    assert!(asked.contains("response in"), "{asked}");
    assert!(approved.starts_with("response in"), "{approved}");
}

#[test]
fn a_token_can_be_given() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    log_in(&sandbox, &auth_server);
    let stored = stored_logins(&sandbox);
    let token = stored["logins"][&url]["tokens"]["access"].as_str().unwrap();
    sandbox.run(&["logout", "--all"]);
    sandbox.write("token", &format!("{token}\n"));
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(sandbox.path().join("token"), private).unwrap();

    let from_file = sandbox.run(&["ping", &url, "--token-file", "token"]);
    let on_the_line = sandbox.run(&["ping", &url, "--token", token]);
    let wrong = run(&sandbox, &auth_server, &["ping", &url, "--token", "no"]);
    let both = sandbox.run(&["ping", &url, "--token", "a", "--header", "Authorization: b"]);
    let nowhere = sandbox.run(&["ping", "SOCKET", "--token", "a"]);

    assert!(from_file.starts_with("response in"), "{from_file}");
    assert!(on_the_line.starts_with("response in"), "{on_the_line}");
    insta::assert_snapshot!(wrong, @r"
    --- stderr
    error: the server requires authorization: HTTP status 401 Unauthorized

    hint: the credentials were rejected: they may have expired, or be for another server; remove them, and log in with `turnbuckle login http://HOST/mcp`
    --- exit 2
    ");
    insta::assert_snapshot!(both, @r"
    --- stderr
    error: --token and --token-file cannot be combined with an `Authorization` header
    --- exit 2
    ");
    insta::assert_snapshot!(nowhere, @r"
    --- stderr
    error: a token can only be sent to a server on HTTP

    hint: pass credentials to a program in environment variables
    --- exit 2
    ");
}

#[test]
fn well_known_metadata_is_fetched_once_per_login() {
    type Change = fn(&mut crate::auth_server::AuthServerState);
    let methods: [(&str, Change); 4] = [
        ("in a browser", |_| {}),
        ("on another device", |state| {
            state.supports_device_flow = true;
        }),
        ("a token that is not taken", |state| {
            state.rejects_all_tokens = true;
        }),
        ("a server that is open", |state| {
            state.has_optional_auth = true;
        }),
    ];
    for (method, change) in methods {
        let sandbox = Sandbox::new();
        let auth_server = AuthServer::new(&sandbox);
        change(&mut auth_server.state());

        match method {
            "on another device" => sandbox.run(&["login", &auth_server.url(), "--no-browser"]),
            _ => log_in(&sandbox, &auth_server),
        };

        let mut asked = auth_server.state().log.clone();
        asked.retain(|asked| asked.starts_with("GET /.well-known/"));
        assert!(!asked.is_empty(), "{method}");
        let mut once = asked.clone();
        once.sort();
        once.dedup();
        assert_eq!(asked.len(), once.len(), "{method}: {asked:?}");
    }
}

#[test]
fn without_pkce_support_no_client_is_registered() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    auth_server.state().lacks_pkce = true;

    let seen = run(
        &sandbox,
        &auth_server,
        &["login", &auth_server.url(), "--no-browser"],
    );

    assert!(seen.contains("PKCE with S256"), "{seen}");
    assert_eq!(auth_server.count("POST /register"), 0);
}
