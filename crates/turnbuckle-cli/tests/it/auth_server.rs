//! An MCP server that requires authorization, and its authorization server, behind one port.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use turnbuckle_server::http;

use crate::{sandbox::Sandbox, weather};

/// Both servers.
#[derive(Clone)]
pub(crate) struct AuthServer {
    /// `http://127.0.0.1:PORT`
    pub(crate) origin: String,
    behind: SocketAddr,
    state: Arc<Mutex<AuthServerState>>,
}

/// The behavior of both servers, and the recorded requests.
#[derive(Default)]
pub(crate) struct AuthServerState {
    /// The user denies access.
    pub(crate) denies: bool,
    /// The metadata has another issuer.
    pub(crate) wrong_issuer: bool,
    /// The metadata does not list PKCE.
    pub(crate) lacks_pkce: bool,
    /// The authorization server supports the device flow.
    pub(crate) supports_device_flow: bool,
    /// The authorization server does not support dynamic registration.
    pub(crate) lacks_registration: bool,
    /// The status of the revocation endpoint, if there is one.
    pub(crate) revocation_status: Option<&'static str>,
    /// The MCP server does not use authorization.
    pub(crate) is_public: bool,
    /// The MCP server accepts requests with and without a token.
    pub(crate) has_optional_auth: bool,
    /// The MCP server rejects every token.
    pub(crate) rejects_all_tokens: bool,
    /// The scope that the MCP server requires.
    pub(crate) required_scope: Option<&'static str>,
    /// The lifetime of tokens in seconds; an hour by default.
    pub(crate) lifetime: Option<u64>,
    /// Method, path and grant of every request that is not forwarded.
    pub(crate) log: Vec<String>,
    /// The client credentials at the token endpoint.
    pub(crate) client_credentials: Vec<String>,
    issued_count: u64,
    valid_tokens: Vec<String>,
    refresh_tokens: Vec<String>,
    challenge: Option<String>,
    scope: String,
}

/// A complete request.
struct HttpRequest {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    authorization: Option<String>,
    body: String,
    bytes: Vec<u8>,
}

impl AuthServer {
    /// Listens on a free port, in front of the weather server.
    pub(crate) fn new(sandbox: &Sandbox) -> Self {
        let bind = || sandbox.runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let (front, back) = (bind().unwrap(), bind().unwrap());
        let auth_server = Self {
            origin: format!("http://{}", front.local_addr().unwrap()),
            behind: back.local_addr().unwrap(),
            state: Arc::default(),
        };
        sandbox.runtime.spawn(http::serve(back, weather::server()));
        let all = auth_server.clone();
        sandbox.runtime.spawn(async move {
            while let Ok((stream, _)) = front.accept().await {
                let one = all.clone();
                tokio::spawn(async move { one.serve(stream).await });
            }
        });
        auth_server
    }

    /// Returns the URL of the MCP server.
    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// Returns the behavior and the recorded requests.
    pub(crate) fn state(&self) -> MutexGuard<'_, AuthServerState> {
        self.state.lock().unwrap()
    }

    /// Invalidates all access tokens.
    pub(crate) fn revoke_access_tokens(&self) {
        self.state().valid_tokens.clear();
    }

    /// Invalidates all access and refresh tokens.
    pub(crate) fn revoke_all_tokens(&self) {
        self.state().refresh_tokens.clear();
        self.revoke_access_tokens();
    }

    /// Returns the number of requests that start with a text.
    pub(crate) fn count(&self, begin: &str) -> usize {
        let state = self.state();
        let asked = state.log.iter();
        asked.filter(|asked| asked.starts_with(begin)).count()
    }

    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let Some(request) = HttpRequest::read(&mut stream).await? else {
            return Ok(());
        };
        if request.path == "/mcp" && self.is_authorized(&request) {
            let mut behind = TcpStream::connect(self.behind).await?;
            behind.write_all(&request.bytes).await?;
            copy_bidirectional(&mut stream, &mut behind).await?;
            return Ok(());
        }
        let (status, headers, body) = self.respond(&request);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    }

    fn is_authorized(&self, request: &HttpRequest) -> bool {
        let state = self.state();
        let has_scope = state
            .required_scope
            .is_none_or(|needed| state.scope.contains(needed));
        let has_token = state.has_valid_token(request) && !state.rejects_all_tokens && has_scope;
        state.is_public || state.has_optional_auth || has_token
    }

    fn respond(&self, request: &HttpRequest) -> (&'static str, String, String) {
        let grant = request.form("grant_type").unwrap_or_default();
        let asked = format!("{} {} {grant}", request.method, request.path);
        self.state().log.push(asked.trim_end().to_owned());
        match request.path.as_str() {
            "/mcp" => self.challenge(request),
            "/.well-known/oauth-protected-resource/mcp" if !self.state().is_public => {
                json_response(&json!({
                    "resource": self.url(),
                    "authorization_servers": [self.origin],
                }))
            }
            "/.well-known/oauth-authorization-server" if !self.state().is_public => {
                json_response(&self.metadata())
            }
            "/register" => ("201 Created", String::new(), registration_response(request)),
            "/authorize" => self.authorize(request),
            "/device" => json_response(&json!({
                "device_code": "sesame-device",
                "user_code": "WDJB-MJHT",
                "verification_uri": format!("{}/type", self.origin),
                "expires_in": 600,
                "interval": 1,
            })),
            "/token" => self.issue_token(request),
            "/revoke" => self.revoke(request),
            _ => ("404 Not Found", String::new(), String::new()),
        }
    }

    fn challenge(&self, request: &HttpRequest) -> (&'static str, String, String) {
        let state = self.state();
        let place = format!("{}/.well-known/oauth-protected-resource/mcp", self.origin);
        let (status, more) = match state
            .required_scope
            .filter(|_| state.has_valid_token(request))
        {
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
        let issuer = if state.wrong_issuer {
            "https://accounts.example"
        } else {
            &self.origin
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
        if !state.lacks_registration {
            metadata["registration_endpoint"] = format!("{}/register", self.origin).into();
        }
        if state.revocation_status.is_some() {
            metadata["revocation_endpoint"] = format!("{}/revoke", self.origin).into();
        }
        if state.supports_device_flow {
            metadata["device_authorization_endpoint"] = format!("{}/device", self.origin).into();
        }
        metadata
    }

    /// Redirects immediately, as if the user had responded.
    fn authorize(&self, request: &HttpRequest) -> (&'static str, String, String) {
        let value = |name: &str| request.query_value(name).unwrap_or_default();
        assert_eq!(value("code_challenge_method"), "S256");
        assert_eq!(value("resource"), self.url());
        let mut state = self.state();
        let answer = if state.denies {
            "error=access_denied&error_description=Ada+said+no".to_owned()
        } else {
            state.challenge = Some(value("code_challenge").to_owned());
            state.scope = value("scope").to_owned();
            "code=sesame-code".to_owned()
        };
        let issuer = percent_encode(&self.origin);
        let (back, own) = (value("redirect_uri"), value("state"));
        let location = format!("Location: {back}?{answer}&state={own}&iss={issuer}\r\n");
        ("302 Found", location, String::new())
    }

    fn revoke(&self, request: &HttpRequest) -> (&'static str, String, String) {
        let mut state = self.state();
        let token = request.form("token").unwrap_or_default();
        let status = state.revocation_status.unwrap_or("404 Not Found");
        if status.starts_with("200") {
            state.valid_tokens.retain(|valid| *valid != token);
            state.refresh_tokens.retain(|valid| *valid != token);
        }
        (status, String::new(), String::new())
    }

    /// Returns the number of access and refresh tokens that are valid.
    pub(crate) fn valid_token_count(&self) -> usize {
        let state = self.state();
        state.valid_tokens.len() + state.refresh_tokens.len()
    }

    fn issue_token(&self, request: &HttpRequest) -> (&'static str, String, String) {
        let error = |code: &str| {
            let body = json!({ "error": code }).to_string();
            ("400 Bad Request", String::new(), body)
        };
        let mut state = self.state();
        state
            .client_credentials
            .extend(request.authorization.clone());
        let value = |name: &str| request.form(name).unwrap_or_default();
        let is_good = match value("grant_type").as_str() {
            "authorization_code" => {
                let verifier = Sha256::digest(value("code_verifier"));
                let proven = Some(URL_SAFE_NO_PAD.encode(verifier)) == state.challenge.take();
                proven && value("code") == "sesame-code"
            }
            "refresh_token" => {
                let shown = value("refresh_token");
                let known = state
                    .refresh_tokens
                    .iter()
                    .position(|token| *token == shown);
                // Each can be used once.
                known.map(|at| state.refresh_tokens.remove(at)).is_some()
            }
            // me:sesame
            "client_credentials" => request.authorization.as_deref() == Some("Basic bWU6c2VzYW1l"),
            "urn:ietf:params:oauth:grant-type:device_code" => {
                if state.denies {
                    return error("access_denied");
                } else {
                    value("device_code") == "sesame-device"
                }
            }
            _ => false,
        };
        if !is_good {
            return error("invalid_grant");
        }
        state.issued_count += 1;
        let number = state.issued_count;
        let claims = json!({ "sub": "user-1", "email": "ada@example.com", "n": number });
        let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
        let token = format!("e30.{claims}.sesame-access-{number}");
        let refresh = format!("sesame-refresh-{number}");
        state.valid_tokens = vec![token.clone()];
        state.refresh_tokens.push(refresh.clone());
        json_response(&json!({
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

impl AuthServerState {
    /// Returns whether a request has a valid token.
    fn has_valid_token(&self, request: &HttpRequest) -> bool {
        let token = request.authorization.as_deref().unwrap_or_default();
        let token = token.strip_prefix("Bearer ").unwrap_or_default();
        self.valid_tokens.iter().any(|valid| valid == token)
    }
}

impl HttpRequest {
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

    fn query_value(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.iter();
        let pair = pairs.find(|(own, _)| own == name)?;
        Some(&pair.1)
    }

    fn form(&self, name: &str) -> Option<String> {
        let mut pairs = pairs(&self.body).into_iter();
        pairs.find(|(own, _)| own == name).map(|(_, value)| value)
    }
}

fn json_response(document: &Value) -> (&'static str, String, String) {
    ("200 OK", String::new(), document.to_string())
}

fn registration_response(request: &HttpRequest) -> String {
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
        .map(|(name, value)| (name.to_owned(), decode_form(value)))
        .collect()
}

/// Decodes a form value.
fn decode_form(value: &str) -> String {
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

fn percent_encode(value: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    value.bytes().map(byte).collect()
}
