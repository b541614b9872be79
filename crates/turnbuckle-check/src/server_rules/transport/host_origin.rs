//! `Origin` and `Host` checks of a server.

use std::net::{IpAddr, UdpSocket};

use turnbuckle_client::http::HttpTarget;
use turnbuckle_text::url::HostPort;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    rule::{Area, Rule, Transports},
    session::{ProbeResponse, request_builder::RequestBuilder},
    target::{HttpEndpoint, ServerTarget},
    wire::http::RawHttpClient,
};

/// An origin that no server allows, and its host.
pub(super) const UNKNOWN_ORIGIN: &str = "https://turnbuckle-check.invalid";
const UNKNOWN_HOST: &str = "turnbuckle-check.invalid";

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "origins.stranger-refused", // quoted
        Area::Origins,
        &["http.origin.validate"],
    )
        .requirement("The server rejects a request with an unknown `Origin`.")
        .hint("Compare `Origin`, if present, with a list of allowed origins; on a local server, with `localhost`.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(rejected(ctx))),
    Rule::server(
        "origins.stranger-403", // quoted
        Area::Origins,
        &["http.origin.403"],
    )
        .requirement("The server responds with 403 to an `Origin` that is not allowed.")
        .hint("Respond with 403 to a request with an unknown `Origin`.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(forbidden(ctx))),
    Rule::server("origins.host-checked", Area::Origins, &[])
        .requirement("A local server accepts only local names in `Host`.")
        .hint("Compare `Host` with `localhost` and the address: DNS rebinding can point any other name to this server.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(host(ctx))),
    Rule::server("origins.loopback-only", Area::Origins, &["http.bind.localhost"])
        .requirement("A local server listens on loopback addresses only.")
        .hint("Bind to 127.0.0.1 or ::1 instead of 0.0.0.0 or ::.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(loopback_only(ctx))),
    Rule::server("origins.preflight", Area::Origins, &[])
        .requirement("The server does not allow an unknown origin in the response to a preflight request.")
        .hint("Send `Access-Control-Allow-Origin` only for allowed origins.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(preflight(ctx))),
];

async fn rejected(ctx: &CheckContext) -> Outcome {
    let response = request_from_unknown_origin(ctx).await?;
    match response.status {
        Some(400..) => response.evidence(),
        _ if !is_local(ctx)? => Err(NotPassed::not_tested(
            "the allowed origins of a public server are unknown",
        )),
        _ => Err(response.violation(format!("a request from {UNKNOWN_ORIGIN} is accepted"))),
    }
}

async fn forbidden(ctx: &CheckContext) -> Outcome {
    let response = request_from_unknown_origin(ctx).await?;
    match response.status {
        Some(403) => response.evidence(),
        Some(status @ 400..) => Err(response.violation(format!("HTTP status {status}"))),
        _ => Err(NotPassed::not_tested("the server accepts the request")),
    }
}

async fn request_from_unknown_origin(ctx: &CheckContext) -> Result<ProbeResponse, NotPassed> {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.header("origin", UNKNOWN_ORIGIN);
    session.send_raw(raw_request.deliberately_invalid()).await
}

async fn host(ctx: &CheckContext) -> Outcome {
    if !is_local(ctx)? {
        return Err(NotPassed::not_applicable("the server is not local"));
    }
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.header("host", UNKNOWN_HOST);
    let response = session.send_raw(raw_request.deliberately_invalid()).await?;
    match response.status {
        Some(400..) => response.evidence(),
        _ => Err(response.violation(format!("a request to `{UNKNOWN_HOST}` is accepted"))),
    }
}

async fn preflight(ctx: &CheckContext) -> Outcome {
    let raw_request = ctx.http_client()?.request("OPTIONS").without_credentials();
    let raw_request = raw_request
        .header("origin", UNKNOWN_ORIGIN)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type");
    let response = raw_request
        .deliberately_invalid()
        .send()
        .await
        .map_err(NotPassed::into_not_tested)?;
    let allowed = response.all("access-control-allow-origin");
    match allowed.first().map(String::as_str) {
        Some(origin @ (UNKNOWN_ORIGIN | "*")) if is_local(ctx)? => {
            let observed = format!("`Access-Control-Allow-Origin: {origin}` for {UNKNOWN_ORIGIN}");
            Err(NotPassed::violation(observed, response.entries()))
        }
        Some(UNKNOWN_ORIGIN | "*") => Err(NotPassed::not_applicable(
            "the allowed origins of a public server are unknown",
        )),
        _ => Evidence::from_entries(response.entries()),
    }
}

/// Returns whether the server is local.
pub(super) fn is_local(ctx: &CheckContext) -> Result<bool, NotPassed> {
    let host = ctx.http_client()?.host().parse::<HostPort>();
    Ok(host.is_ok_and(|host| host.host.is_loopback()))
}

/// Documentation addresses (RFC 5737, RFC 3849): connecting a UDP socket to them selects the local address without sending a packet.
const REMOTE_ADDRESSES: [(&str, &str); 2] =
    [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];

async fn loopback_only(ctx: &CheckContext) -> Outcome {
    if !is_local(ctx)? {
        return Err(NotPassed::not_applicable("the server is not local"));
    }
    let session = ctx.session().await?;
    let http_client = ctx.http_client()?;
    let Some(port) = http_client.port_on_network() else {
        return Err(NotPassed::not_applicable(
            "the server is not reached over plain TCP",
        ));
    };
    let addresses = other_addresses();
    if addresses.is_empty() {
        return Err(NotPassed::not_tested(
            "this machine only has loopback addresses",
        ));
    }
    for address in addresses {
        if let Some(entries) = probe_address(ctx, &http_client, address, port).await {
            let observed = format!("the server also responds at {address}");
            return Err(NotPassed::violation(observed, entries));
        }
    }
    let opening = session.opening.iter();
    Evidence::from_entries(opening.flat_map(crate::session::ProbeResponse::entries))
}

/// Returns the addresses of this machine other than loopback, as far as there are routes.
fn other_addresses() -> Vec<IpAddr> {
    let address = |(bind, remote): (&str, &str)| {
        let socket = UdpSocket::bind(bind).ok()?;
        socket.connect(remote).ok()?;
        let address = socket.local_addr().ok()?.ip();
        (!address.is_loopback() && !address.is_unspecified()).then_some(address)
    };
    REMOTE_ADDRESSES.into_iter().filter_map(address).collect()
}

/// Sends a request without credentials to another address; any HTTP response shows that the port is open.
async fn probe_address(
    ctx: &CheckContext,
    http_client: &RawHttpClient,
    address: IpAddr,
    port: u16,
) -> Option<[usize; 2]> {
    let host = match address {
        IpAddr::V4(address) => format!("{address}:{port}"),
        IpAddr::V6(address) => format!("[{address}]:{port}"),
    };
    let url = format!("http://{host}{}", http_client.path());
    let endpoint: HttpEndpoint =
        ServerTarget::http(&url, HttpTarget::new(&url), Vec::new()).into_http_endpoint()?;
    let request_builder = RequestBuilder::new(ctx.revision);
    let message =
        request_builder.request(1, request_builder.noop_method(), serde_json::Value::Null);
    let other = RawHttpClient::new(&endpoint, &ctx.transcript, &ctx.pace);
    let raw_request = other
        .request("POST")
        .headers(request_builder.headers(&message, None))
        .body(message.to_string());
    let response = raw_request.deliberately_invalid().send().await.ok()?;
    Some(response.entries())
}
