//! `login`, `whoami`, `logout`, and every other command before and after.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::authority::Authority;
use crate::serving::get;
use crate::stage::Stage;
use crate::terminal::Session;

/// A login that is under way.
pub(crate) struct Begun {
    child: Child,
    talk: BufReader<std::process::ChildStderr>,
    said: String,
    /// The address that somebody is sent to.
    page: String,
}

impl Begun {
    /// Begins to log in, and reads the address of the page.
    pub(crate) fn new(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let page = loop {
            let before = said.len();
            if talk.read_line(&mut said).unwrap() == 0 {
                panic!("there is no page:\n{said}");
            }
            if let Some(page) = said[before..].strip_prefix("  http") {
                break format!("http{}", page.trim_end());
            }
        };
        Self {
            child,
            talk,
            said,
            page,
        }
    }

    /// Does what a browser does with the page, and returns what it shows in the end.
    pub(crate) fn browse(&self) -> String {
        let sent_on = get(&self.page);
        let mut lines = sent_on.lines();
        let location = lines.find_map(|line| line.strip_prefix("Location: "));
        get(location.unwrap_or_else(|| panic!("{sent_on}")))
    }

    /// Waits for its end, and returns all that can be seen.
    pub(crate) fn end(mut self, stage: &Stage, authority: &Authority) -> String {
        self.talk.read_to_string(&mut self.said).unwrap();
        let mut output = self.child.wait_with_output().unwrap();
        output.stderr = self.said.into_bytes();
        tidy(&stage.seen(&output), authority)
    }
}

/// Takes out what is different each time.
pub(crate) fn tidy(text: &str, authority: &Authority) -> String {
    let line = |line: &str| match line {
        line if line.starts_with("  http") => {
            let place = line.split('?').next().unwrap_or(line);
            format!("{place}?…\n")
        }
        line if line.starts_with("expires  2") => "expires  …\n".to_owned(),
        line if line.trim_start().starts_with("\"expires\": \"") => "      \"expires\": …\n".into(),
        line => format!("{line}\n"),
    };
    let host = authority.origin.strip_prefix("http://").unwrap();
    text.replace(host, "HOST").lines().map(line).collect()
}

pub(crate) fn log_in(stage: &Stage, authority: &Authority) -> String {
    let url = authority.url();
    let begun = Begun::new(stage.command(&["login", &url, "--no-browser"]));
    begun.browse();
    begun.end(stage, authority)
}

/// Returns what is kept of logins.
fn kept(stage: &Stage) -> Value {
    let bytes = fs::read(stage.path().join(LOGINS)).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

pub(crate) const LOGINS: &str = ".local/state/turnbuckle/logins/logins.json";

fn run(stage: &Stage, authority: &Authority, words: &[&str]) -> String {
    tidy(&stage.run(words), authority)
}

#[test]
fn a_login_is_made_and_used_and_ended() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();

    insta::assert_snapshot!(run(&stage, &authority, &["ping", &url]), @r"
    --- stderr
    error: the server wants to know who asks: HTTP status 401 Unauthorized

    hint: log in with `turnbuckle login http://HOST/mcp`, or send a token with --token-file FILE
    --- exit 2
    ");
    let begun = Begun::new(stage.command(&["login", &url, "--no-browser"]));
    let shown = begun.browse();
    assert!(shown.starts_with("HTTP/1.1 200"), "{shown}");
    insta::assert_snapshot!(begun.end(&stage, &authority), @r"
    server   http://HOST/mcp
    issuer   http://HOST
    subject  user-1 (ada@example.com)
    scopes   weather:read
    client   client-1
    expires  …
    kept     in a file that only you can read
    --- stderr
    Log in at HOST:

      http://HOST/authorize?…

    Open it in a browser on this machine; Ctrl-C gives up.
    You are logged in.
    ");

    let seen = stage.run(&["call", &url, "forecast", "city=Oslo"]);
    assert!(seen.contains("Sun over Oslo"), "{seen}");
    insta::assert_snapshot!(run(&stage, &authority, &["whoami", &url]), @r"
    server   http://HOST/mcp
    issuer   http://HOST
    subject  user-1 (ada@example.com)
    scopes   weather:read
    client   client-1
    expires  …
    kept     in a file that only you can read
    ");
    insta::assert_snapshot!(run(&stage, &authority, &["whoami"]), @r"
    server                      subject          issuer                  expires  scopes
    http://HOST/mcp  ada@example.com  http://HOST  renewed  weather:read
    --- stderr
    kept in a file that only you can read
    ");
    insta::assert_snapshot!(run(&stage, &authority, &["whoami", "--json"]), @r#"
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
          "sealed": false
        }
      ]
    }
    "#);
    insta::assert_snapshot!(run(&stage, &authority, &["logout", &url]), @r"
    --- stderr
    logged out of http://HOST/mcp
    ");
    insta::assert_snapshot!(run(&stage, &authority, &["logout", &url]), @r"
    --- stderr
    error: there is no login to this server

    hint: `turnbuckle whoami` lists those that there are
    --- exit 1
    ");
    insta::assert_snapshot!(run(&stage, &authority, &["whoami", &url]), @r"
    --- stderr
    error: you are not logged in to `http://HOST/mcp`

    hint: log in with `turnbuckle login http://HOST/mcp`
    --- exit 1
    ");
    assert!(stage.run(&["ping", &url]).contains("turnbuckle login"));
}

#[test]
fn logins_are_for_the_user_alone_and_tokens_are_never_shown() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();

    let seen = log_in(&stage, &authority)
        + &stage.run(&["ping", &url, "--verbose"])
        + &stage.run(&["whoami", &url, "--json"]);

    assert!(!seen.contains("sesame"), "{seen}");
    let file = stage.path().join(LOGINS);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn a_token_that_is_over_is_renewed_without_a_word() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    log_in(&stage, &authority);

    authority.end_tokens();
    let seen = stage.run(&["call", &url, "forecast", "city=Oslo"]);

    assert!(seen.contains("Sun over Oslo"), "{seen}");
    assert!(!seen.contains("--- stderr"), "{seen}");
    assert_eq!(authority.count("POST /token refresh_token"), 1);
}

#[test]
fn a_token_that_ends_soon_is_renewed_before_it_is_sent() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    log_in(&stage, &authority);
    let mut kept = kept(&stage);
    kept["logins"][&url]["tokens"]["expires"] = 1.into();
    stage.write(LOGINS, &kept.to_string());
    authority.end_tokens();
    let refused = authority.count("POST /mcp");

    let seen = stage.run(&["ping", &url]);

    assert!(seen.starts_with("answered in"), "{seen}");
    assert_eq!(authority.count("POST /token refresh_token"), 1);
    assert_eq!(authority.count("POST /mcp"), refused);
}

#[test]
fn two_commands_at_one_time_need_one_new_token() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    log_in(&stage, &authority);
    authority.end_tokens();

    let begin = || {
        let mut command = stage.command(&["call", &url, "forecast", "city=Oslo"]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let both = [begin(), begin()].map(|child| child.wait_with_output().unwrap());

    for output in &both {
        let seen = stage.seen(output);
        assert!(seen.contains("Sun over Oslo"), "{seen}");
    }
    assert_eq!(authority.count("POST /token refresh_token"), 1);
}

#[test]
fn a_login_that_is_over_has_to_be_made_again() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    log_in(&stage, &authority);

    authority.end_logins();

    insta::assert_snapshot!(run(&stage, &authority, &["ping", &url]), @r"
    --- stderr
    error: authorization failed while using the token: the login is over, and cannot be renewed

      request  POST http://HOST/mcp
      answer   401

    hint: log in again with `turnbuckle login http://HOST/mcp`
    --- exit 2
    ");
    insta::assert_snapshot!(run(&stage, &authority, &["ping", &url, "--json"]), @r#"
    {
      "error": {
        "message": "authorization failed while using the token: the login is over, and cannot be renewed",
        "step": "use",
        "request": "POST http://HOST/mcp",
        "answer": "401",
        "cause": "the login is over, and cannot be renewed",
        "cure": "log in again with `turnbuckle login http://HOST/mcp`"
      }
    }
    --- stderr
    error: authorization failed while using the token: the login is over, and cannot be renewed

      request  POST http://HOST/mcp
      answer   401

    hint: log in again with `turnbuckle login http://HOST/mcp`
    --- exit 2
    "#);
    log_in(&stage, &authority);
    assert!(stage.run(&["ping", &url]).starts_with("answered in"));
}

#[test]
fn who_says_no_is_not_logged_in() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    authority.state().denies = true;

    let begun = Begun::new(stage.command(&["login", &url, "--no-browser"]));
    begun.browse();

    insta::assert_snapshot!(begun.end(&stage, &authority), @r"
    --- stderr
    Log in at HOST:

      http://HOST/authorize?…

    Open it in a browser on this machine; Ctrl-C gives up.
    error: authorization failed while hearing how the login went: access was denied

      answer   access_denied: Ada said no

    hint: log in again and allow it
    --- exit 1
    ");
    assert!(stage.run(&["whoami"]).contains("logged in nowhere"));
}

#[test]
fn metadata_of_somebody_else_is_not_used() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    authority.state().wrong_issuer = true;

    insta::assert_snapshot!(run(&stage, &authority, &["login", &url]), @r"
    --- stderr
    error: authorization failed while reading the metadata of the authorization server: the metadata of the authorization server `http://HOST` is of another one, `https://accounts.example`

      request  GET http://HOST/.well-known/oauth-authorization-server

    hint: nothing of it is used; whoever runs the server must correct it
    --- exit 2
    ");
    insta::assert_snapshot!(run(&stage, &authority, &["login", &url, "--json"]), @r#"
    {
      "error": {
        "message": "authorization failed while reading the metadata of the authorization server: the metadata of the authorization server `http://HOST` is of another one, `https://accounts.example`",
        "step": "server-metadata",
        "request": "GET http://HOST/.well-known/oauth-authorization-server",
        "answer": null,
        "cause": "the metadata of the authorization server `http://HOST` is of another one, `https://accounts.example`",
        "cure": "nothing of it is used; whoever runs the server must correct it"
      }
    }
    --- stderr
    error: authorization failed while reading the metadata of the authorization server: the metadata of the authorization server `http://HOST` is of another one, `https://accounts.example`

      request  GET http://HOST/.well-known/oauth-authorization-server

    hint: nothing of it is used; whoever runs the server must correct it
    --- exit 2
    "#);
    assert_eq!(authority.count("POST /register"), 0);
}

#[test]
fn where_nobody_is_asked_there_is_nothing_to_log_in_to() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    authority.state().asks_nobody = true;

    insta::assert_snapshot!(run(&stage, &authority, &["login", &authority.url()]), @r"
    --- stderr
    http://HOST/mcp asks nobody who they are: there is nothing to log in to
    ");
    insta::assert_snapshot!(run(&stage, &authority, &["login", "SOCKET"]), @r"
    --- stderr
    error: `SOCKET` is not reached by HTTP: there is nothing to log in to

    hint: a program that is started takes its credentials from its environment
    --- exit 2
    ");
}

#[test]
fn a_code_is_typed_on_another_device() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    authority.state().knows_devices = true;

    insta::assert_snapshot!(run(&stage, &authority, &["login", &url, "--no-browser"]), @r"
    server   http://HOST/mcp
    issuer   http://HOST
    subject  user-1 (ada@example.com)
    scopes   weather:read
    client   client-1
    expires  …
    kept     in a file that only you can read
    --- stderr
    Log in on any device, within 10 min:

      page  http://HOST/type
      code  WDJB-MJHT

    Waiting for that; Ctrl-C gives up.
    You are logged in.
    ");
    assert!(stage.run(&["ping", &url]).starts_with("answered in"));
}

#[test]
fn a_browser_is_opened_with_the_address_as_one_word() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    // As it is called on Linux, and on macOS.
    for opener in ["bin/xdg-open", "bin/open"] {
        let script = "#!/bin/sh\necho \"$#\" > opened\necho \"$1\" >> opened\n";
        stage.write(opener, script);
        let may_run = fs::Permissions::from_mode(0o755);
        fs::set_permissions(stage.path().join(opener), may_run).unwrap();
    }
    let path = format!("{}/bin:/usr/bin:/bin", stage.path().display());
    let mut command = stage.command(&["login", &authority.url()]);
    command.env("PATH", path).env("DISPLAY", ":0");

    let begun = Begun::new(command);
    begun.browse();
    let page = begun.page.clone();

    insta::assert_snapshot!(begun.end(&stage, &authority), @r"
    server   http://HOST/mcp
    issuer   http://HOST
    subject  user-1 (ada@example.com)
    scopes   weather:read
    client   client-1
    expires  …
    kept     in a file that only you can read
    --- stderr
    Log in at HOST:

      http://HOST/authorize?…

    It is opened in your browser; Ctrl-C gives up.
    You are logged in.
    ");
    let opened = fs::read_to_string(stage.path().join("opened")).unwrap();
    assert_eq!(opened, format!("1\n{page}\n"));
}

#[test]
fn without_a_browser_the_address_is_still_there() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let mut command = stage.command(&["login", &authority.url()]);
    command.env("PATH", stage.path()).env("DISPLAY", ":0");

    let begun = Begun::new(command);
    begun.browse();

    let seen = begun.end(&stage, &authority);
    assert!(seen.contains("No browser could be started: "), "{seen}");
    assert!(seen.contains("You are logged in."), "{seen}");
}

#[test]
fn other_commands_open_no_browser() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let mut command = stage.command(&["ping", &authority.url()]);

    let output = command.env("DISPLAY", ":0").output().unwrap();

    assert_eq!(output.status.code(), Some(2));
    assert_eq!(authority.count("GET /"), 0);
}

#[test]
fn a_client_that_is_known_shows_its_secret_and_does_not_register() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    authority.state().only_known_clients = true;
    stage.write("secret", "sesame: open\n");

    insta::assert_snapshot!(run(&stage, &authority, &["login", &url]), @r"
    --- stderr
    error: authorization failed while registering with the authorization server: `http://HOST` does not know this client, and does not let it register itself

    hint: get a client id from whoever runs the authorization server, and use it with --client-id ID
    --- exit 2
    ");
    let words = ["login", &url, "--no-browser", "--client-id", "me"];
    let words = [&words[..], &["--client-secret-file", "secret"]].concat();
    let begun = Begun::new(stage.command(&words));
    begun.browse();
    let seen = begun.end(&stage, &authority);

    assert!(seen.contains("secret is not for you alone"), "{seen}");
    assert!(seen.contains("client   me\n"), "{seen}");
    // me:sesame%3A%20open
    assert_eq!(
        authority.state().shown,
        ["Basic bWU6c2VzYW1lJTNBJTIwb3Blbg=="]
    );
    assert_eq!(authority.count("POST /register"), 0);
    let other = stage.run(&["ping", &url, "--client-id", "somebody else"]);
    assert!(other.contains("HTTP status 401"), "{other}");
}

#[test]
fn a_client_without_a_user_logs_in_by_its_secret() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    stage.write("secret", "sesame\n");
    let words = ["login", &url, "--as-client", "--client-id", "me"];
    let words = [&words[..], &["--client-secret-file", "secret"]].concat();

    let seen = stage.run(&words);

    assert!(seen.ends_with("You are logged in.\n"), "{seen}");
    assert_eq!(authority.count("GET /authorize"), 0);
    assert!(stage.run(&["ping", &url]).starts_with("answered in"));
    let nobody = stage.run(&["login", &url, "--as-client"]);
    assert!(nobody.contains("--client-id <ID>"), "{nobody}");
}

#[test]
fn a_client_that_is_known_by_its_port_comes_back_to_it() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("http://{}/back", free.local_addr().unwrap());
    drop(free);
    let url = authority.url();
    let words = ["login", &url, "--no-browser", "--client-id", "me"];
    let words = [&words[..], &["--redirect-uri", &uri]].concat();

    let begun = Begun::new(stage.command(&words));
    begun.browse();

    let seen = begun.end(&stage, &authority);
    assert!(seen.ends_with("You are logged in.\n"), "{seen}");
    let elsewhere = ["login", &url, "--redirect-uri", "https://evil.example/"];
    insta::assert_snapshot!(run(&stage, &authority, &elsewhere), @r#"
    --- stderr
    error: authorization failed while sending you to log in: "https://evil.example/" is no place on this machine that a browser could come back to

    hint: use a redirect URI as `http://127.0.0.1:8976/callback`
    --- exit 2
    "#);
}

#[test]
fn a_server_that_wants_more_is_told_of_with_the_login_that_gives_it() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    log_in(&stage, &authority);
    authority.state().needs = Some("weather:write");

    insta::assert_snapshot!(run(&stage, &authority, &["ping", &url]), @r"
    --- stderr
    error: authorization failed while using the token: the login is not good for `weather:write`

      request  POST http://HOST/mcp
      answer   403 insufficient_scope

    hint: log in again with `turnbuckle login http://HOST/mcp --scope weather:write`
    --- exit 2
    ");
    let words = ["login", &url, "--no-browser", "--scope", "weather:write"];
    let begun = Begun::new(stage.command(&words));
    begun.browse();
    let seen = begun.end(&stage, &authority);

    let both = "scopes   weather:read weather:write\n";
    assert!(seen.contains(both), "{seen}");
    assert!(stage.run(&["ping", &url]).starts_with("answered in"));
}

#[test]
fn a_login_that_the_server_does_not_take_is_not_kept() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    authority.state().takes_none = true;

    insta::assert_snapshot!(log_in(&stage, &authority), @r"
    --- stderr
    Log in at HOST:

      http://HOST/authorize?…

    Open it in a browser on this machine; Ctrl-C gives up.
    error: authorization failed while using the token: the server refuses the token that `http://HOST` has just given for it

    hint: whoever runs the server must see that it takes tokens of this issuer, with its own URL as their audience
    --- exit 2
    ");
    assert!(stage.run(&["whoami"]).contains("logged in nowhere"));
}

#[test]
fn a_server_that_lets_everybody_in_may_still_take_tokens() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    authority.state().is_open = true;

    let seen = log_in(&stage, &authority);

    assert!(seen.ends_with("You are logged in.\n"), "{seen}");
}

#[test]
fn an_address_that_a_browser_elsewhere_ended_at_is_pasted() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let mut session = Session::new(&stage, &["login", &authority.url(), "--no-browser"]);

    session.answer("paste its address here.", "good morning\n");
    session.answer("not the address", "");
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

    let seen = session.end(&stage);
    assert!(seen.contains("You are logged in."), "{seen}");
    assert!(seen.ends_with("--- exit 0\n"), "{seen}");
}

#[test]
fn ctrl_c_gives_up_a_login() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let mut session = Session::new(&stage, &["login", &authority.url(), "--no-browser"]);

    session.answer("paste its address here.", "");
    session.interrupt();

    let seen = session.end(&stage);
    assert!(seen.ends_with("error: interrupted\n--- exit 2\n"), "{seen}");
}

#[test]
fn a_header_of_a_configuration_counts_more_than_a_login() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    log_in(&stage, &authority);
    stage.write(
        ".claude.json",
        &format!(
            r#"{{"mcpServers": {{"mine": {{"type": "http", "url": "{url}", "headers": {{"authorization": "Bearer own"}}}}}}}}"#
        ),
    );

    insta::assert_snapshot!(run(&stage, &authority, &["ping", "mine"]), @r"
    --- stderr
    error: the server wants to know who asks: HTTP status 401 Unauthorized

    hint: what was sent does not do: it may be over, or be for another server; without it, `turnbuckle login mine` logs in
    --- exit 2
    ");
    insta::assert_snapshot!(run(&stage, &authority, &["login", "mine"]), @r"
    --- stderr
    error: `mine` is sent a header `Authorization` already, which would be used and not the login

    hint: leave out the token, or the header in the configuration
    --- exit 2
    ");
}

#[test]
fn a_login_is_used_for_a_project_only_once_it_is_approved() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    log_in(&stage, &authority);
    stage.write(
        ".mcp.json",
        &format!(r#"{{"mcpServers": {{"mine": {{"type": "http", "url": "{url}"}}}}}}"#),
    );

    let refused = run(&stage, &authority, &["ping", "mine"]);
    let mut asked = Session::new(&stage, &["ping", "mine"]);
    asked.answer("[y/n]", "y\n");
    let asked = asked.end(&stage);
    let approved = stage.run(&["ping", "mine"]);

    assert!(refused.contains("it came with a project"), "{refused}");
    assert!(asked.contains(&url), "{asked}");
    assert!(asked.contains("answered in"), "{asked}");
    assert!(approved.starts_with("answered in"), "{approved}");
}

#[test]
fn a_token_can_be_given() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    let url = authority.url();
    log_in(&stage, &authority);
    let kept = kept(&stage);
    let token = kept["logins"][&url]["tokens"]["access"].as_str().unwrap();
    stage.run(&["logout", "--all"]);
    stage.write("token", &format!("{token}\n"));
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(stage.path().join("token"), private).unwrap();

    let from_file = stage.run(&["ping", &url, "--token-file", "token"]);
    let on_the_line = stage.run(&["ping", &url, "--token", token]);
    let wrong = run(&stage, &authority, &["ping", &url, "--token", "no"]);
    let both = stage.run(&["ping", &url, "--token", "a", "--header", "Authorization: b"]);
    let nowhere = stage.run(&["ping", "SOCKET", "--token", "a"]);

    assert!(from_file.starts_with("answered in"), "{from_file}");
    assert!(on_the_line.starts_with("answered in"), "{on_the_line}");
    insta::assert_snapshot!(wrong, @r"
    --- stderr
    error: the server wants to know who asks: HTTP status 401 Unauthorized

    hint: what was sent does not do: it may be over, or be for another server; without it, `turnbuckle login http://HOST/mcp` logs in
    --- exit 2
    ");
    insta::assert_snapshot!(both, @r"
    --- stderr
    error: a token and a header `Authorization` were given, and only one of them can be sent
    --- exit 2
    ");
    insta::assert_snapshot!(nowhere, @r"
    --- stderr
    error: a token is sent by HTTP, and this server is not reached by it

    hint: a program that is started takes its credentials from its environment
    --- exit 2
    ");
}

#[test]
fn each_well_known_place_is_asked_once_per_login() {
    type Change = fn(&mut crate::authority::State);
    let ways: [(&str, Change); 4] = [
        ("in a browser", |_| {}),
        ("on another device", |state| state.knows_devices = true),
        ("a token that is not taken", |state| state.takes_none = true),
        ("a server that is open", |state| state.is_open = true),
    ];
    for (way, change) in ways {
        let stage = Stage::new();
        let authority = Authority::new(&stage);
        change(&mut authority.state());

        match way {
            "on another device" => stage.run(&["login", &authority.url(), "--no-browser"]),
            _ => log_in(&stage, &authority),
        };

        let mut asked = authority.state().log.clone();
        asked.retain(|asked| asked.starts_with("GET /.well-known/"));
        assert!(!asked.is_empty(), "{way}");
        let mut once = asked.clone();
        once.sort();
        once.dedup();
        assert_eq!(asked.len(), once.len(), "{way}: {asked:?}");
    }
}

#[test]
fn nobody_registers_where_logins_are_not_protected_by_pkce() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);
    authority.state().lacks_pkce = true;

    let seen = run(
        &stage,
        &authority,
        &["login", &authority.url(), "--no-browser"],
    );

    assert!(seen.contains("PKCE with S256"), "{seen}");
    assert_eq!(authority.count("POST /register"), 0);
}
