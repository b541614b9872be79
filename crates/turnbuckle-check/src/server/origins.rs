//! Web pages and names that have no business here: `Origin` and `Host`.

mod bound_address;

use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::session::Answer;
use crate::visit::Visit;

/// A web page that no server knows, and its host.
pub(super) const STRANGER: &str = "https://turnbuckle-check.invalid";
const STRANGERS_HOST: &str = "turnbuckle-check.invalid";

pub(crate) const RULES: &[Rule] = &[
    Rule::server("origins.stranger-refused", Area::Origins, &["http.origin.validate"])
        .says("A request from a web page that the server does not know is refused.")
        .cure("Compare `Origin`, if there is one, with a list of those that may; on a local server, with `localhost`.")
        .on(On::Http)
        .ask(|visit| Box::pin(refused(visit))),
    Rule::server("origins.stranger-403", Area::Origins, &["http.origin.403"])
        .says("An `Origin` that is not welcome is answered with 403.")
        .cure("Answer a request with an unknown `Origin` with 403.")
        .on(On::Http)
        .ask(|visit| Box::pin(forbidden(visit))),
    Rule::server("origins.host-checked", Area::Origins, &[])
        .says("A server on this machine answers only to names of this machine in `Host`.")
        .cure("Compare `Host` with `localhost` and the address: a web page can lead any other name here.")
        .on(On::Http)
        .ask(|visit| Box::pin(host(visit))),
    Rule::server("origins.loopback-only", Area::Origins, &["http.bind.localhost"])
        .says("A server on this machine is reached at loopback addresses only.")
        .cure("Bind to 127.0.0.1 or ::1 instead of 0.0.0.0 or ::.")
        .on(On::Http)
        .ask(|visit| Box::pin(bound_address::loopback_only(visit))),
    Rule::server("origins.preflight", Area::Origins, &[])
        .says("A preflight request of an unknown web page is not answered with its origin as allowed.")
        .cure("Send `Access-Control-Allow-Origin` only for origins that are on your list.")
        .on(On::Http)
        .ask(|visit| Box::pin(preflight(visit))),
];

async fn refused(visit: &Visit) -> Outcome {
    let answer = stranger(visit).await?;
    match answer.status {
        Some(400..) => answer.seen(),
        _ if !is_local(visit)? => Err(Unmet::not_tested(
            "only its operator knows which web pages a public server is for",
        )),
        _ => Err(answer.broken(format!("a request from {STRANGER} is answered"))),
    }
}

async fn forbidden(visit: &Visit) -> Outcome {
    let answer = stranger(visit).await?;
    match answer.status {
        Some(403) => answer.seen(),
        Some(status @ 400..) => Err(answer.broken(format!("the status {status}"))),
        _ => Err(Unmet::not_tested("the server does not refuse it")),
    }
}

async fn stranger(visit: &Visit) -> Result<Answer, Unmet> {
    let session = visit.session().await?;
    let draft = session.harmless()?.header("origin", STRANGER);
    session.exchange(draft.deliberate()).await
}

async fn host(visit: &Visit) -> Outcome {
    if !is_local(visit)? {
        return Err(Unmet::not_applicable("the server is not on this machine"));
    }
    let session = visit.session().await?;
    let draft = session.harmless()?.header("host", STRANGERS_HOST);
    let answer = session.exchange(draft.deliberate()).await?;
    match answer.status {
        Some(400..) => answer.seen(),
        _ => Err(answer.broken(format!("a request to `{STRANGERS_HOST}` is answered"))),
    }
}

async fn preflight(visit: &Visit) -> Outcome {
    let draft = visit.caller()?.request("OPTIONS").without_credentials();
    let draft = draft
        .header("origin", STRANGER)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type");
    let reply = draft.deliberate().send().await.map_err(Unmet::aside)?;
    let allowed = reply.all("access-control-allow-origin");
    match allowed.first().map(String::as_str) {
        Some(origin @ (STRANGER | "*")) if is_local(visit)? => {
            let what = format!("`Access-Control-Allow-Origin: {origin}` for {STRANGER}");
            Err(Unmet::broken(what, reply.entries()))
        }
        Some(STRANGER | "*") => Err(Unmet::not_applicable(
            "only its operator knows which web pages a public server is for",
        )),
        _ => Seen::at(reply.entries()),
    }
}

/// Says whether the server is on this machine.
pub(super) fn is_local(visit: &Visit) -> Result<bool, Unmet> {
    let caller = visit.caller()?;
    let host = caller.host();
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
