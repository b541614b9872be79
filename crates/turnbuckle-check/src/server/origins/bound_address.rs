//! To which addresses of this machine a local server is bound.

use std::net::{IpAddr, UdpSocket};

use turnbuckle_client::http::Http;

use super::is_local;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::speech::Speech;
use crate::target::{Target, Web};
use crate::visit::Visit;
use crate::wire::http::Caller;

/// Addresses for documentation (RFC 5737, RFC 3849): which of its own this machine would use to reach them is known without
/// a packet being sent.
const ELSEWHERE: [(&str, &str); 2] = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];

pub(super) async fn loopback_only(visit: &Visit) -> Outcome {
    if !is_local(visit)? {
        return Err(Unmet::not_applicable("the server is not on this machine"));
    }
    let session = visit.session().await?;
    let caller = visit.caller()?;
    let Some(port) = caller.port_on_network() else {
        return Err(Unmet::not_applicable(
            "the server is not reached by the network, or by TLS",
        ));
    };
    let addresses = other_addresses();
    if addresses.is_empty() {
        return Err(Unmet::not_tested(
            "this machine has no address beside loopback",
        ));
    }
    for address in addresses {
        if let Some(entries) = answers_at(visit, &caller, address, port).await {
            let what = format!("the server answers at {address}, too");
            return Err(Unmet::broken(what, entries));
        }
    }
    let opening = session.opening.iter();
    Seen::at(opening.flat_map(crate::session::Answer::entries))
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
    visit: &Visit,
    caller: &Caller,
    address: IpAddr,
    port: u16,
) -> Option<[usize; 2]> {
    let host = match address {
        IpAddr::V4(address) => format!("{address}:{port}"),
        IpAddr::V6(address) => format!("[{address}]:{port}"),
    };
    let url = format!("http://{host}{}", caller.path());
    let web: Web = Target::http(&url, Http::new(&url), Vec::new()).into_web()?;
    let speech = Speech::new(visit.revision);
    let message = speech.request(1, speech.harmless(), serde_json::Value::Null);
    let other = Caller::new(&web, &visit.tape, visit.options.patience);
    let draft = other
        .request("POST")
        .headers(speech.headers(&message, None))
        .body(message.to_string());
    let reply = draft.deliberate().send().await.ok()?;
    Some(reply.entries())
}
