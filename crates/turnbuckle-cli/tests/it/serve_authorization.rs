//! `turnbuckle serve` for those who may, each with a memory of their own.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use turnbuckle_auth::jwt::SigningKey;

use crate::serving::{Serving, get};
use crate::stage::Stage;

const ADA: &str = "0123456789abcdef-ada";
const BO: &str = "0123456789abcdef-bo";

fn with_tokens() -> Stage {
    let stage = Stage::new();
    stage.write(
        "tokens",
        &format!("# two people\n{ADA} ada memory\n{BO} bo\n"),
    );
    let file = stage.path().join("tokens");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    stage
}

fn as_who(token: &str, words: &[&str]) -> Vec<String> {
    let header = format!("Authorization: Bearer {token}");
    let words = words.iter().map(|word| (*word).to_owned());
    words.chain(["--header".to_owned(), header]).collect()
}

fn call(server: &Serving, stage: &Stage, token: &str, words: &[&str]) -> Value {
    let words = as_who(token, words);
    server.call(stage, &Vec::from_iter(words.iter().map(String::as_str)))
}

#[test]
fn two_tokens_are_two_people_who_see_nothing_of_each_other() {
    let stage = with_tokens();
    let place = stage.path().to_str().unwrap().to_owned();
    let project = format!("project_path={place}");
    let words = [
        "--listen",
        "127.0.0.1:0",
        "--token-file",
        "tokens",
        "--root",
        ".",
    ];
    let server = Serving::start(&stage, &words);

    let saved = call(
        &server,
        &stage,
        ADA,
        &["checkpoint_save", "content=Ada's secret plan", &project],
    );
    let id = saved["checkpoint_id"].as_str().unwrap();
    let uri = format!("checkpoint://{id}");
    let read = |token: &str, uri: &str| {
        let words = as_who(token, &["read", &server.told, uri]);
        stage.run(&Vec::from_iter(words.iter().map(String::as_str)))
    };

    assert!(read(ADA, &uri).contains("secret plan"));
    let nothing = "ckpt_0000000000000000";
    let unknown = read(BO, &format!("checkpoint://{nothing}"));
    assert_eq!(read(BO, &uri).replace(id, ""), unknown.replace(nothing, ""));
    let list = |token| call(&server, &stage, token, &["checkpoint_list", &project]);
    assert_eq!(list(ADA)["checkpoints"].as_array().unwrap().len(), 1);
    assert_eq!(list(BO)["checkpoints"].as_array().unwrap().len(), 0);
    let query = |token| {
        let words = ["checkpoint_search", "query=secret plan", &project];
        call(&server, &stage, token, &words)
    };
    assert_eq!(query(BO)["checkpoints"].as_array().unwrap().len(), 0);
    let said = server.end();
    assert!(
        said.contains("Bearer TOKEN") && !said.contains(ADA),
        "{said}"
    );
}

#[test]
fn nobody_else_comes_in() {
    let stage = with_tokens();
    let words = ["--listen", "127.0.0.1:0", "--token-file", "tokens"];
    let server = Serving::start(&stage, &words);

    for header in ["X-Nothing: 1", "Authorization: Bearer 0123456789abcdef-eve"] {
        let seen = stage.run(&["tools", &server.told, "--header", header]);
        assert!(seen.contains("401") && seen.contains("--- exit"), "{seen}");
    }
    let health = server.told.replace("/mcp", "/healthz");
    assert!(get(&health).starts_with("HTTP/1.1 200"));
    let said = server.end();
    assert!(said.contains("Callers may use no folder"), "{said}");
}

#[test]
fn a_scope_can_be_required_of_everybody() {
    let stage = with_tokens();
    stage.write(
        "serve.toml",
        "listen = \"127.0.0.1:0\"\n[authorization]\ntoken-file = \"tokens\"\nrequire-scopes = [\"memory\"]\n",
    );
    let server = Serving::start(&stage, &["--config", "serve.toml"]);

    let tools = |token| {
        let words = as_who(token, &["tools", &server.told]);
        stage.run(&Vec::from_iter(words.iter().map(String::as_str)))
    };
    assert!(tools(ADA).contains("checkpoint_save"), "{}", tools(ADA));
    assert!(tools(BO).contains("403"), "{}", tools(BO));
}

#[test]
fn tokens_that_others_can_read_are_refused() {
    let stage = with_tokens();
    let file = stage.path().join("tokens");
    fs::set_permissions(file, fs::Permissions::from_mode(0o640)).unwrap();

    let seen = stage.run(&["serve", "--listen", "127.0.0.1:0", "--token-file", "tokens"]);

    insta::assert_snapshot!(seen, @r"
    --- stderr
    error: others on this machine can read the tokens in ~/tokens

    hint: chmod 600 ~/tokens
    --- exit 2
    ");
}

#[test]
fn whoever_is_known_may_come_from_other_machines() {
    let stage = with_tokens();
    let words = ["--listen", "0.0.0.0:0", "--token-file", "tokens"];

    let server = Serving::start(&stage, &words);

    assert!(
        server.told.starts_with("http://0.0.0.0:"),
        "{}",
        server.told
    );
}

#[test]
fn what_does_not_fit_together_is_said() {
    let stage = with_tokens();

    let alone = stage.run(&["serve", "--auth-issuer", "https://auth.example"]);
    insta::assert_snapshot!(alone, @r"
    --- stderr
    error: an issuer gives out tokens for many servers, and it is not said which of them are for this one

    hint: --audience https://memory.example.com/mcp, where clients reach it
    --- exit 2
    ");
    let nobody = stage.run(&["serve", "--audience", "https://memory.example/mcp"]);
    insta::assert_snapshot!(nobody, @r"
    --- stderr
    error: nobody could come in: whose tokens are good?

    hint: say it with --auth-issuer URL or --token-file FILE
    --- exit 2
    ");
    let socket = stage.run(&["serve", "--listen", "unix:s", "--token-file", "tokens"]);
    insta::assert_snapshot!(socket, @r"
    --- stderr
    error: there are no tokens on a Unix socket: only you can connect to it

    hint: --listen 127.0.0.1:8321 listens on HTTP
    --- exit 2
    ");
    let stdio = stage.run(&["serve", "--stdio", "--token-file", "tokens"]);
    assert!(stdio.contains("cannot be used with"), "{stdio}");
}

#[test]
fn the_keys_of_an_issuer_say_whose_tokens_are_good() {
    let stage = Stage::new();
    let issuer = Issuer::start();
    let words = [
        "--listen",
        "127.0.0.1:0",
        "--auth-issuer",
        &issuer.url,
        "--audience",
        "https://memory.example/mcp",
        "--root",
        ".",
        "--json",
    ];
    let mut server = Serving::start(&stage, &words);
    let told: Value = serde_json::from_str(&server.told).unwrap();
    assert_eq!(told["url"], "https://memory.example/mcp");
    server.told = told["health"].as_str().unwrap().replace("/healthz", "/mcp");
    let project = format!("project_path={}", stage.path().display());
    let save = ["checkpoint_save", "content=a plan", &project];
    let list = ["checkpoint_list", &project];

    let ada = issuer.token("ada", "https://memory.example/mcp");
    let bo = issuer.token("bo", "https://memory.example/mcp");
    call(&server, &stage, &ada, &save);
    assert_eq!(
        call(&server, &stage, &ada, &list)["checkpoints"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        call(&server, &stage, &bo, &list)["checkpoints"]
            .as_array()
            .unwrap()
            .len(),
        0
    );

    let elsewhere = issuer.token("ada", "https://elsewhere.example/mcp");
    let words = as_who(&elsewhere, &["tools", &server.told]);
    let seen = stage.run(&Vec::from_iter(words.iter().map(String::as_str)));
    assert!(seen.contains("401"), "{seen}");

    let root = server.told.replace("/mcp", "");
    let metadata = get(&format!("{root}/.well-known/oauth-protected-resource/mcp"));
    assert!(metadata.contains(&issuer.url), "{metadata}");
    let republished = get(&format!("{root}/.well-known/oauth-authorization-server"));
    assert!(republished.contains("jwks_uri"), "{republished}");
}

/// An authorization server, as far as a resource server asks it anything.
struct Issuer {
    url: String,
    key: SigningKey,
}

impl Issuer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let key = SigningKey::generate().unwrap();
        let metadata = json!({
            "issuer": url,
            "jwks_uri": format!("{url}/keys"),
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
            "response_types_supported": ["code"],
        });
        let keys = json!({ "keys": [key.public_jwk()] });
        let answers = HashMap::from([
            (
                "/.well-known/oauth-authorization-server",
                metadata.to_string(),
            ),
            ("/keys", keys.to_string()),
        ]);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &answers);
            }
        });
        Self { url, key }
    }

    fn token(&self, subject: &str, audience: &str) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let claims = json!({ "iss": self.url, "sub": subject, "aud": audience, "exp": now + 600 });
        let header = Map::from_iter([("typ".to_owned(), json!("at+jwt"))]);
        self.key.sign(header, &claims).unwrap()
    }
}

fn answer(mut stream: TcpStream, answers: &HashMap<&str, String>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    for line in lines {
        if line.unwrap().is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap();
    let (status, body) = match answers.get(path) {
        Some(body) => ("200 OK", body.as_str()),
        None => ("404 Not Found", "{}"),
    };
    let length = body.len();
    let head = "Content-Type: application/json\r\nConnection: close";
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
}
