//! An authorization server for the tokens of callers, which also exchanges them.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};
use turnbuckle_auth::jwt::SigningKey;

/// An authorization server with metadata, keys and a token endpoint for exchanges and codes. A code is the name of a user.
#[derive(Clone)]
pub(crate) struct Issuer {
    pub(crate) url: String,
    key: SigningKey,
    exchanges: Arc<Mutex<Vec<String>>>,
}

impl Issuer {
    /// Listens on a free port.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let key = SigningKey::generate().unwrap();
        let metadata = json!({
            "issuer": url,
            "jwks_uri": format!("{url}/keys"),
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        });
        let keys = json!({ "keys": [key.public_jwk()] });
        let exchanges = Arc::<Mutex<Vec<String>>>::default();
        let received = Arc::clone(&exchanges);
        let this = Self {
            url,
            key,
            exchanges,
        };
        let issuer = this.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), |path, body| match path {
                    "/.well-known/oauth-authorization-server" => ("200 OK", metadata.clone()),
                    "/keys" => ("200 OK", keys.clone()),
                    "/token" if body.contains("grant_type=authorization_code") => {
                        issuer.redeem(body)
                    }
                    "/token" => exchange(body, &received),
                    _ => ("404 Not Found", json!({})),
                });
            }
        });
        this
    }

    /// Issues a token for the user that the code names, and for the requested resource.
    fn redeem(&self, form: &str) -> (&'static str, Value) {
        let field = |name: &str| {
            let mut pairs = turnbuckle_text::percent::form_pairs(form);
            let found = pairs.find(|(own, _)| own == name);
            found.unwrap().1
        };
        let token = self.token(&field("code"), &field("resource"));
        (
            "200 OK",
            json!({ "access_token": token, "token_type": "Bearer" }),
        )
    }

    /// Returns a token for an audience.
    pub(crate) fn token(&self, subject: &str, audience: &str) -> String {
        self.token_with_scope(subject, audience, "")
    }

    /// Returns a token for an audience, with scopes.
    pub(crate) fn token_with_scope(&self, subject: &str, audience: &str, scope: &str) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let claims = json!({
            "iss": self.url, "sub": subject, "aud": audience, "scope": scope, "exp": now + 600,
        });
        let header = Map::from_iter([("typ".to_owned(), json!("at+jwt"))]);
        self.key.sign(header, &claims).unwrap()
    }

    /// Returns the forms of all exchanges.
    pub(crate) fn exchanges(&self) -> Vec<String> {
        self.exchanges.lock().unwrap().clone()
    }
}

/// Issues a numbered token, or rejects the third exchange and quotes the token of the caller.
fn exchange(form: &str, exchanges: &Mutex<Vec<String>>) -> (&'static str, Value) {
    let mut exchanges = exchanges.lock().unwrap();
    exchanges.push(form.to_owned());
    let number = exchanges.len();
    if number == 3 {
        let error = json!({ "error": "invalid_grant", "error_description": form });
        return ("400 Bad Request", error);
    }
    let token = json!({
        "access_token": format!("issued-{number}"),
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "token_type": "Bearer",
        "expires_in": 600,
    });
    ("200 OK", token)
}

fn serve(mut stream: TcpStream, respond: impl Fn(&str, &str) -> (&'static str, Value)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let path = first.split(' ').nth(1).unwrap();
    let (status, body) = respond(path, &String::from_utf8(body).unwrap());
    let (head, body) = (
        "Content-Type: application/json\r\nConnection: close",
        body.to_string(),
    );
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
}
