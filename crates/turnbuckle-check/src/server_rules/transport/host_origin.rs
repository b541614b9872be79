//! Web pages and names that have no business here: `Origin` and `Host`.

use std::net::{IpAddr, UdpSocket};

use turnbuckle_client::http::HttpTarget;

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

/// A web page that no server knows, and its host.
pub(super) const STRANGER: &str = "https://turnbuckle-check.invalid";
const STRANGERS_HOST: &str = "turnbuckle-check.invalid";

pub(crate) const RULES: &[Rule] = &[
    Rule::server("origins.stranger-refused", Area::Origins, &["http.origin.validate"])
        .requirement("A request from a web page that the server does not know is refused.")
        .fix("Compare `Origin`, if there is one, with a list of those that may; on a local server, with `localhost`.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(refused(ctx))),
    Rule::server("origins.stranger-403", Area::Origins, &["http.origin.403"])
        .requirement("An `Origin` that is not welcome is answered with 403.")
        .fix("Answer a request with an unknown `Origin` with 403.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(forbidden(ctx))),
    Rule::server("origins.host-checked", Area::Origins, &[])
        .requirement("A server on this machine answers only to names of this machine in `Host`.")
        .fix("Compare `Host` with `localhost` and the address: a web page can lead any other name here.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(host(ctx))),
    Rule::server("origins.loopback-only", Area::Origins, &["http.bind.localhost"])
        .requirement("A server on this machine is reached at loopback addresses only.")
        .fix("Bind to 127.0.0.1 or ::1 instead of 0.0.0.0 or ::.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(loopback_only(ctx))),
    Rule::server("origins.preflight", Area::Origins, &[])
        .requirement("A preflight request of an unknown web page is not answered with its origin as allowed.")
        .fix("Send `Access-Control-Allow-Origin` only for origins that are on your list.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(preflight(ctx))),
];

async fn refused(ctx: &CheckContext) -> Outcome {
    let response = stranger(ctx).await?;
    match response.status {
        Some(400..) => response.evidence(),
        _ if !is_local(ctx)? => Err(NotPassed::not_tested(
            "only its operator knows which web pages a public server is for",
        )),
        _ => Err(response.violation(format!("a request from {STRANGER} is answered"))),
    }
}

async fn forbidden(ctx: &CheckContext) -> Outcome {
    let response = stranger(ctx).await?;
    match response.status {
        Some(403) => response.evidence(),
        Some(status @ 400..) => Err(response.violation(format!("the status {status}"))),
        _ => Err(NotPassed::not_tested("the server does not refuse it")),
    }
}

async fn stranger(ctx: &CheckContext) -> Result<ProbeResponse, NotPassed> {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.header("origin", STRANGER);
    session.send_raw(raw_request.deliberately_invalid()).await
}

async fn host(ctx: &CheckContext) -> Outcome {
    if !is_local(ctx)? {
        return Err(NotPassed::not_applicable(
            "the server is not on this machine",
        ));
    }
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.header("host", STRANGERS_HOST);
    let response = session.send_raw(raw_request.deliberately_invalid()).await?;
    match response.status {
        Some(400..) => response.evidence(),
        _ => Err(response.violation(format!("a request to `{STRANGERS_HOST}` is answered"))),
    }
}

async fn preflight(ctx: &CheckContext) -> Outcome {
    let raw_request = ctx.http_client()?.request("OPTIONS").without_credentials();
    let raw_request = raw_request
        .header("origin", STRANGER)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type");
    let reply = raw_request
        .deliberately_invalid()
        .send()
        .await
        .map_err(NotPassed::as_not_tested)?;
    let allowed = reply.all("access-control-allow-origin");
    match allowed.first().map(String::as_str) {
        Some(origin @ (STRANGER | "*")) if is_local(ctx)? => {
            let observed = format!("`Access-Control-Allow-Origin: {origin}` for {STRANGER}");
            Err(NotPassed::violation(observed, reply.entries()))
        }
        Some(STRANGER | "*") => Err(NotPassed::not_applicable(
            "only its operator knows which web pages a public server is for",
        )),
        _ => Evidence::from_entries(reply.entries()),
    }
}

/// Says whether the server is on this machine.
pub(super) fn is_local(ctx: &CheckContext) -> Result<bool, NotPassed> {
    let http_client = ctx.http_client()?;
    let host = http_client.host();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_matches(['[', ']']);
    let address = name.parse::<std::net::IpAddr>();
    Ok(
        name.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.is_loopback()),
    )
}

/// Addresses for documentation (RFC 5737, RFC 3849): which of its own this machine would use to reach them is known without
/// a packet being sent.
const ELSEWHERE: [(&str, &str); 2] = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];

async fn loopback_only(ctx: &CheckContext) -> Outcome {
    if !is_local(ctx)? {
        return Err(NotPassed::not_applicable(
            "the server is not on this machine",
        ));
    }
    let session = ctx.session().await?;
    let http_client = ctx.http_client()?;
    let Some(port) = http_client.port_on_network() else {
        return Err(NotPassed::not_applicable(
            "the server is not reached by the network, or by TLS",
        ));
    };
    let addresses = other_addresses();
    if addresses.is_empty() {
        return Err(NotPassed::not_tested(
            "this machine has no address beside loopback",
        ));
    }
    for address in addresses {
        if let Some(entries) = answers_at(ctx, &http_client, address, port).await {
            let observed = format!("the server answers at {address}, too");
            return Err(NotPassed::violation(observed, entries));
        }
    }
    let opening = session.opening.iter();
    Evidence::from_entries(opening.flat_map(crate::session::ProbeResponse::entries))
}

/// Returns the addresses of this machine that are not loopback, as far as routes lead there.
fn other_addresses() -> Vec<IpAddr> {
    let address = |(bind, elsewhere): (&str, &str)| {
        let socket = UdpSocket::bind(bind).ok()?;
        socket.connect(elsewhere).ok()?;
        let address = socket.local_addr().ok()?.ip();
        (!address.is_loopback() && !address.is_unspecified()).then_some(address)
    };
    ELSEWHERE.into_iter().filter_map(address).collect()
}

/// Asks at another address; whatever answers there by HTTP shows that the port is open. No credentials are sent.
async fn answers_at(
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
    let other = RawHttpClient::new(&endpoint, &ctx.transcript, ctx.options.response_timeout);
    let raw_request = other
        .request("POST")
        .headers(request_builder.headers(&message, None))
        .body(message.to_string());
    let reply = raw_request.deliberately_invalid().send().await.ok()?;
    Some(reply.entries())
}
