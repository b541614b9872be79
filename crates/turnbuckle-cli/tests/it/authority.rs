//! A server that asks who is there, and whoever gives tokens for it: both behind one port.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use turnbuckle_server::http;

use crate::stage::Stage;
use crate::weather;

/// The two of them.
#[derive(Clone)]
pub(crate) struct Authority {
    /// `http://127.0.0.1:PORT`
    pub(crate) origin: String,
    behind: SocketAddr,
    state: Arc<Mutex<State>>,
}

/// How they behave, and what has happened.
#[derive(Default)]
pub(crate) struct State {
    /// The user says no.
    pub(crate) denies: bool,
    /// The metadata is somebody else's.
    pub(crate) wrong_issuer: bool,
    /// The metadata does not speak of PKCE.
    pub(crate) lacks_pkce: bool,
    /// There are codes for other devices.
    pub(crate) knows_devices: bool,
    /// Nobody registers here by themselves.
    pub(crate) only_known_clients: bool,
    /// The server lets everybody in, and knows of no tokens.
    pub(crate) asks_nobody: bool,
    /// The server lets everybody in, and takes tokens too.
    pub(crate) is_open: bool,
    /// The server takes no token, whatever it says.
    pub(crate) takes_none: bool,
    /// What the server wants beyond a token.
    pub(crate) needs: Option<&'static str>,
    /// How long tokens are good, in seconds; an hour if not told.
    pub(crate) lifetime: Option<u64>,
    /// Every request but those for the server behind, by its path and what is said in it.
    pub(crate) log: Vec<String>,
    /// The credentials that clients showed at the token endpoint.
    pub(crate) shown: Vec<String>,
    given: u64,
    good: Vec<String>,
    refresh: Vec<String>,
    challenge: Option<String>,
    scope: String,
}

/// A request, read to its end.
struct Request {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    authorization: Option<String>,
    body: String,
    bytes: Vec<u8>,
}

impl Authority {
    /// Begins to listen on a free port, in front of the weather.
    pub(crate) fn new(stage: &Stage) -> Self {
        let bind = || stage.runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let (front, back) = (bind().unwrap(), bind().unwrap());
        let authority = Self {
            origin: format!("http://{}", front.local_addr().unwrap()),
            behind: back.local_addr().unwrap(),
            state: Arc::default(),
        };
        stage.runtime.spawn(http::serve(back, weather::server()));
        let all = authority.clone();
        stage.runtime.spawn(async move {
            while let Ok((stream, _)) = front.accept().await {
                let one = all.clone();
                tokio::spawn(async move { one.answer(stream).await });
            }
        });
        authority
    }

    /// Returns the URL of the server.
    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// Changes how they behave, or looks at what has happened.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Lets no token be good any more.
    pub(crate) fn end_tokens(&self) {
        self.state().good.clear();
    }

    /// Lets nobody get a new token for an old one any more.
    pub(crate) fn end_logins(&self) {
        self.state().refresh.clear();
        self.end_tokens();
    }

    /// Returns how many requests there were that begin so.
    pub(crate) fn count(&self, begin: &str) -> usize {
        let state = self.state();
        let asked = state.log.iter();
        asked.filter(|asked| asked.starts_with(begin)).count()
    }

    async fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        let Some(request) = Request::read(&mut stream).await? else {
            return Ok(());
        };
        if request.path == "/mcp" && self.lets_in(&request) {
            let mut behind = TcpStream::connect(self.behind).await?;
            behind.write_all(&request.bytes).await?;
            copy_bidirectional(&mut stream, &mut behind).await?;
            return Ok(());
        }
        let (status, headers, body) = self.say(&request);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    }

    fn lets_in(&self, request: &Request) -> bool {
        let state = self.state();
        let has_scope = state
            .needs
            .is_none_or(|needed| state.scope.contains(needed));
        let has_token = state.knows(request) && !state.takes_none && has_scope;
        state.asks_nobody || state.is_open || has_token
    }

    fn say(&self, request: &Request) -> (&'static str, String, String) {
        let grant = request.form("grant_type").unwrap_or_default();
        let asked = format!("{} {} {grant}", request.method, request.path);
        self.state().log.push(asked.trim_end().to_owned());
        match request.path.as_str() {
            "/mcp" => self.challenge(request),
            "/.well-known/oauth-protected-resource/mcp" if !self.state().asks_nobody => {
                found(&json!({
                    "resource": self.url(),
                    "authorization_servers": [self.origin],
                }))
            }
            "/.well-known/oauth-authorization-server" if !self.state().asks_nobody => {
                found(&self.metadata())
            }
            "/register" => ("201 Created", String::new(), registered(request)),
            "/authorize" => self.authorize(request),
            "/device" => found(&json!({
                "device_code": "sesame-device",
                "user_code": "WDJB-MJHT",
                "verification_uri": format!("{}/type", self.origin),
                "expires_in": 600,
                "interval": 1,
            })),
            "/token" => self.give(request),
            _ => ("404 Not Found", String::new(), String::new()),
        }
    }

    fn challenge(&self, request: &Request) -> (&'static str, String, String) {
        let state = self.state();
        let place = format!("{}/.well-known/oauth-protected-resource/mcp", self.origin);
        let (status, more) = match state.needs.filter(|_| state.knows(request)) {
            Some(scope) => {
                let more = format!("error=\"insufficient_scope\", scope=\"{scope}\"");
                ("403 Forbidden", more)
            }
            None => ("401 Unauthorized", "scope=\"weather:read\"".to_owned()),
        };
        let header = format!("WWW-Authenticate: Bearer resource_metadata=\"{place}\", {more}\r\n");
        (status, header, String::new())
    }

    fn metadata(&self) -> Value {
        let state = self.state();
        let issuer = match state.wrong_issuer {
            true => "https://accounts.example",
            false => &self.origin,
        };
        let mut metadata = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{}/authorize", self.origin),
            "token_endpoint": format!("{}/token", self.origin),
            "code_challenge_methods_supported": ["S256"],
            "response_types_supported": ["code"],
            "authorization_response_iss_parameter_supported": true,
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        });
        if state.lacks_pkce {
            metadata["code_challenge_methods_supported"] = json!([]);
        }
        if !state.only_known_clients {
            metadata["registration_endpoint"] = format!("{}/register", self.origin).into();
        }
        if state.knows_devices {
            metadata["device_authorization_endpoint"] = format!("{}/device", self.origin).into();
        }
        metadata
    }

    /// Sends the browser back at once, as if the user had answered.
    fn authorize(&self, request: &Request) -> (&'static str, String, String) {
        let said = |name: &str| request.said(name).unwrap_or_default();
        assert_eq!(said("code_challenge_method"), "S256");
        assert_eq!(said("resource"), self.url());
        let mut state = self.state();
        let answer = match state.denies {
            true => "error=access_denied&error_description=Ada+said+no".to_owned(),
            false => {
                state.challenge = Some(said("code_challenge").to_owned());
                state.scope = said("scope").to_owned();
                "code=sesame-code".to_owned()
            }
        };
        let issuer = escaped(&self.origin);
        let (back, own) = (said("redirect_uri"), said("state"));
        let location = format!("Location: {back}?{answer}&state={own}&iss={issuer}\r\n");
        ("302 Found", location, String::new())
    }

    fn give(&self, request: &Request) -> (&'static str, String, String) {
        let refused = |code: &str| {
            let body = json!({ "error": code }).to_string();
            ("400 Bad Request", String::new(), body)
        };
        let mut state = self.state();
        state.shown.extend(request.authorization.clone());
        let said = |name: &str| request.form(name).unwrap_or_default();
        let is_good = match said("grant_type").as_str() {
            "authorization_code" => {
                let verifier = Sha256::digest(said("code_verifier"));
                let proven = Some(URL_SAFE_NO_PAD.encode(verifier)) == state.challenge.take();
                proven && said("code") == "sesame-code"
            }
            "refresh_token" => {
                let shown = said("refresh_token");
                let known = state.refresh.iter().position(|good| *good == shown);
                // Each is good once.
                known.map(|at| state.refresh.remove(at)).is_some()
            }
            // me:sesame
            "client_credentials" => request.authorization.as_deref() == Some("Basic bWU6c2VzYW1l"),
            "urn:ietf:params:oauth:grant-type:device_code" => match state.denies {
                true => return refused("access_denied"),
                false => said("device_code") == "sesame-device",
            },
            _ => false,
        };
        if !is_good {
            return refused("invalid_grant");
        }
        state.given += 1;
        let number = state.given;
        let claims = json!({ "sub": "user-1", "email": "ada@example.com", "n": number });
        let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
        let token = format!("e30.{claims}.sesame-access-{number}");
        let refresh = format!("sesame-refresh-{number}");
        state.good = vec![token.clone()];
        state.refresh.push(refresh.clone());
        found(&json!({
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": state.lifetime.unwrap_or(3600),
            "refresh_token": refresh,
            "scope": match state.scope.as_str() {
                "" => "weather:read",
                scope => scope,
            },
        }))
    }
}

impl State {
    /// Says whether a request has a token that is good.
    fn knows(&self, request: &Request) -> bool {
        let token = request.authorization.as_deref().unwrap_or_default();
        let token = token.strip_prefix("Bearer ").unwrap_or_default();
        self.good.iter().any(|good| good == token)
    }
}

impl Request {
    async fn read(stream: &mut TcpStream) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = find(&bytes, b"\r\n\r\n") {
                break end;
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let header = |name: &str| {
            head.lines().skip(1).find_map(|line| {
                let (own, value) = line.split_once(':')?;
                own.eq_ignore_ascii_case(name)
                    .then(|| value.trim().to_owned())
            })
        };
        let length = header("content-length").and_then(|length| length.parse().ok());
        let whole = end + 4 + length.unwrap_or(0);
        while bytes.len() < whole {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
        }
        let mut words = head.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Some(Self {
            method,
            path: path.to_owned(),
            query: pairs(query),
            authorization: header("authorization"),
            body: String::from_utf8_lossy(&bytes[end + 4..]).into_owned(),
            bytes,
        }))
    }

    fn said(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.iter();
        let pair = pairs.find(|(own, _)| own == name)?;
        Some(&pair.1)
    }

    fn form(&self, name: &str) -> Option<String> {
        let mut pairs = pairs(&self.body).into_iter();
        pairs.find(|(own, _)| own == name).map(|(_, value)| value)
    }
}

fn found(document: &Value) -> (&'static str, String, String) {
    ("200 OK", String::new(), document.to_string())
}

fn registered(request: &Request) -> String {
    let mut client: Value = serde_json::from_str(&request.body).unwrap();
    client["client_id"] = "client-1".into();
    client.to_string()
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

fn pairs(form: &str) -> Vec<(String, String)> {
    let pairs = form.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), plain(value)))
        .collect()
}

/// Undoes the escapes of a form.
fn plain(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let hex = [rest.next().unwrap(), rest.next().unwrap()];
                let hex = std::str::from_utf8(&hex).unwrap().to_owned();
                bytes.push(u8::from_str_radix(&hex, 16).unwrap());
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn escaped(value: &str) -> String {
    let byte = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    value.bytes().map(byte).collect()
}
