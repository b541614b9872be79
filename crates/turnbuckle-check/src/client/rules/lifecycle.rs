//! How a session begins, and what is agreed upon.

use serde_json::Value;
use turnbuckle_protocol::method::Method;
use turnbuckle_protocol::revision::Revision;

use crate::client::Scene;
use crate::client::take::{Said, Take, Takes, every};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.lifecycle.initialize-first", Area::Lifecycle, &[
        "lifecycle.init.first",
        "lifecycle.init.request",
    ])
    .says("A session begins with `initialize`.")
    .cure("Send `initialize` before any other request.")
    .watch(&[], initialize_first),
    Rule::client("client.lifecycle.introduces-itself", Area::Lifecycle, &["lifecycle.init.client-fields"])
    .says("`initialize` says which revision the client wants, what it can do and who it is.")
    .cure("Send `protocolVersion`, `capabilities` and a `clientInfo` with name and version.")
    .watch(&[], introduces_itself),
    Rule::client("client.lifecycle.initialized", Area::Lifecycle, &["lifecycle.init.initialized"])
        .says("The client says `notifications/initialized` once the server has answered `initialize`, before it goes on.")
        .cure("Send `notifications/initialized` as the first message after the answer to `initialize`.")
        .watch(&[], initialized),
    Rule::client("client.lifecycle.waits", Area::Lifecycle, &["lifecycle.init.client-wait"])
        .says("Nothing but pings is said before `initialize` is answered.")
        .cure("Wait for the answer to `initialize` before you send anything else.")
        .watch(&[], waits),
    Rule::client("client.lifecycle.initialize-not-cancelled", Area::Lifecycle, &["lifecycle.init.no-cancel"])
        .says("`initialize` is never cancelled.")
        .cure("When `initialize` takes too long, close the connection instead of cancelling.")
        .watch(&[], not_cancelled),
    Rule::client("client.lifecycle.leaves-unknown-version", Area::Lifecycle, &[
        "lifecycle.version.client-disconnect",
        "lifecycle.version.client-disconnect-schema",
    ])
    .says("A client leaves when the server chooses a revision that it does not know.")
    .cure("Compare the server's `protocolVersion` with those that you speak, and disconnect if it is none of them.")
    .watch(&[Scene::Strange], leaves),
    Rule::client("client.lifecycle.capabilities", Area::Lifecycle, &[
        "lifecycle.operation.capabilities-should",
        "lifecycle.operation.capabilities-must",
        "base.capabilities.respect",
    ])
    .says("Only what the server has declared is asked for.")
    .cure("Look at the server's capabilities before you ask for resources, prompts, completion or logging.")
    .watch(&[Scene::Bare], capabilities),
    Rule::client("client.lifecycle.offers-a-revision", Area::Lifecycle, &["lifecycle.version.client-offers"])
        .says("The version that `initialize` offers is a revision of the specification.")
        .cure("Send the date of a revision that you speak as `protocolVersion`.")
        .watch(&[], offers_a_revision),
    Rule::client("client.lifecycle.newest-offered", Area::Lifecycle, &["lifecycle.version.client-latest"])
        .says("The version that `initialize` offers is the newest that the client speaks.")
        .cure("Offer the newest revision that you speak; the server chooses an older one if it has to.")
        .watch(&[], newest_offered),
    Rule::client("client.lifecycle.version-kept", Area::Lifecycle, &["lifecycle.operation.version-must"])
        .says("The client sends only requests and notifications that the negotiated revision defines.")
        .cure("Look at the negotiated revision before you send a method that another revision introduced or removed.")
        .watch(&[], version_kept),
    Rule::client("client.lifecycle.no-shutdown-message", Area::Lifecycle, &["lifecycle.shutdown.no-message"])
        .says("The client ends a connection by closing it, without a message.")
        .cure("Close the input of the server, or the connections of HTTP; there is no method `shutdown`, `exit` or `close`.")
        .watch(&[], no_shutdown_message),
];

/// Returns the requests for a handshake, each with the take that it belongs to.
fn handshakes(takes: &Takes) -> impl Iterator<Item = (&Take, &Said)> {
    takes
        .all()
        .flat_map(|take| take.asked("initialize").map(move |said| (take, said)))
}

fn initialize_first(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    for take in takes.all() {
        // Whoever speaks newer revisions too may try one first; and a ping asks for nothing.
        let first = take.said().iter().find(|said| {
            !matches!(
                said.method(),
                Some("server/discover" | "ping" | "notifications/cancelled") | None
            ) && said.meta("protocolVersion").is_none()
        });
        let Some(first) = first else { continue };
        if first.method() != Some("initialize") {
            let what = format!("`{}` comes first", first.method().unwrap_or_default());
            return Err(Unmet::broken(what, [first.number]));
        }
        seen.push(first.number);
    }
    Seen::at(seen.into_iter().take(3))
}

fn introduces_itself(takes: &Takes) -> Outcome {
    let hellos = handshakes(takes).map(|(_, said)| said);
    every(hellos, "the client never said `initialize`", |said| {
        let params = said.params();
        let info = &params["clientInfo"];
        let missing = [
            ("protocolVersion", params["protocolVersion"].is_string()),
            ("capabilities", params["capabilities"].is_object()),
            ("clientInfo", info.is_object()),
            ("clientInfo.name", info["name"].is_string()),
            ("clientInfo.version", info["version"].is_string()),
        ];
        let missing = missing.into_iter().find(|(_, there)| !there);
        missing.map(|(name, _)| format!("`{name}` is missing, or is not what it should be"))
    })
}

fn initialized(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    for (take, hello) in handshakes(takes) {
        if take.scene == Scene::Strange {
            continue;
        }
        let Some((answered, _)) = take.answer(hello) else {
            continue;
        };
        // Whoever has several sessions at a time begins the others meanwhile.
        let session = take.given(hello, "mcp-session-id");
        let same = |said: &&Said| {
            let other = matches!(
                said.method(),
                Some("initialize" | "server/discover" | "notifications/cancelled")
            );
            let named = said.header("mcp-session-id");
            said.is_beside(hello) && !other && named.is_none_or(|id| Some(id) == session)
        };
        let said = take.said().iter().filter(same);
        let mut after = said.filter(|said| said.number > answered);
        let next = after.find(|said| {
            said.is_notification() || (said.is_request() && said.method() != Some("ping"))
        });
        match next {
            Some(next) if next.method() == Some("notifications/initialized") => {
                seen.push(next.number);
            }
            Some(next) => {
                let what = format!("`{}` comes first", next.method().unwrap_or_default());
                return Err(Unmet::broken(what, [hello.number, answered, next.number]));
            }
            None => {}
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested(
            "the client says nothing after the handshake",
        )),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

fn waits(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    for (take, hello) in handshakes(takes) {
        let Some((answered, _)) = take.answer(hello) else {
            continue;
        };
        let early = take.said().iter().find(|said| {
            said.number > hello.number
                && said.number < answered
                && said.is_beside(hello)
                && !matches!(said.method(), Some("ping") | None)
        });
        if let Some(early) = early {
            let what = format!(
                "`{}` came before the answer",
                early.method().unwrap_or_default()
            );
            return Err(Unmet::broken(what, [hello.number, early.number, answered]));
        }
        seen.extend([hello.number, answered]);
    }
    Seen::at(seen.into_iter().take(4))
}

fn not_cancelled(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    for (take, hello) in handshakes(takes) {
        let cancels = |said: &&Said| {
            said.method() == Some("notifications/cancelled")
                && said.params().get("requestId") == hello.id()
                && said.number > hello.number
                && said.is_beside(hello)
        };
        if let Some(cancel) = take.said().iter().find(cancels) {
            let what = "the client cancelled `initialize`";
            return Err(Unmet::broken(what, [hello.number, cancel.number]));
        }
        seen.push(hello.number);
    }
    Seen::at(seen.into_iter().take(3))
}

fn leaves(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Strange)?;
    let mut hellos = take.asked("initialize");
    let answered = hellos.find_map(|hello| Some((hello, take.answer(hello)?.0)));
    let Some((hello, answered)) = answered else {
        return Err(Unmet::not_tested(
            "the client did not wait for the answer to `initialize`",
        ));
    };
    let stays = take.said().iter().find(|said| {
        let method = said.method();
        let leaving = matches!(
            method,
            Some("initialize" | "server/discover" | "notifications/cancelled")
        );
        said.number > answered && method.is_some() && !leaving
    });
    match stays {
        None => Seen::at([hello.number, answered]),
        Some(stays) => {
            let what = format!(
                "`{}` after a revision that nobody knows",
                stays.method().unwrap_or_default()
            );
            Err(Unmet::broken(what, [hello.number, answered, stays.number]))
        }
    }
}

/// Which capability a method needs that a server with tools alone does not have.
fn needs(method: &str, revision: Revision) -> Option<&'static str> {
    let (area, _) = method.split_once('/')?;
    match area {
        // Before, nobody could declare it.
        "completion" if revision >= Revision::V2025_03_26 => Some("completions"),
        "resources" => Some("resources"),
        "prompts" => Some("prompts"),
        "logging" => Some("logging"),
        "tasks" => Some("tasks"),
        _ => None,
    }
}

fn capabilities(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Bare)?;
    let modern = takes.revision >= Revision::MODERN;
    if modern && take.asked("server/discover").next().is_none() {
        let why = "the client never asked what the server can do, and nobody has to";
        return Err(Unmet::not_applicable(why));
    }
    let beyond = take
        .requests()
        .find_map(|said| Some((said, needs(said.method()?, takes.revision)?)));
    if let Some((said, capability)) = beyond {
        let method = said.method().unwrap_or_default();
        let what = format!("`{method}`, but the server does not declare `{capability}`");
        return Err(Unmet::broken(what, [said.number]));
    }
    let opened = |said: &&Said| !matches!(said.message["method"], Value::Null);
    let seen = take
        .requests()
        .filter(opened)
        .map(|said| said.number)
        .take(3);
    Seen::at(seen.collect::<Vec<_>>())
}

fn offers_a_revision(takes: &Takes) -> Outcome {
    let hellos = handshakes(takes).map(|(_, said)| said);
    let hellos = hellos.filter(|said| said.params()["protocolVersion"].is_string());
    every(hellos, "the client offered no version", |said| {
        let offered = said.params()["protocolVersion"].as_str()?;
        let known = offered.parse::<Revision>().is_ok() || is_later_date(offered);
        (!known).then(|| format!("`initialize` offers {offered:?}, which is no revision"))
    })
}

/// Says whether a version is a date after all that this checker knows.
fn is_later_date(version: &str) -> bool {
    let date = version.len() == 10
        && version.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    date && version > Revision::MODERN.as_str()
}

fn newest_offered(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    for (take, hello) in handshakes(takes) {
        let offered = hello.params()["protocolVersion"].as_str();
        let (Some(offered), Some((answered, answer))) = (offered, take.answer(hello)) else {
            continue;
        };
        let chosen = answer["result"]["protocolVersion"].as_str();
        let (Ok(offered), Some(Ok(chosen))) = (
            offered.parse::<Revision>(),
            chosen.map(str::parse::<Revision>),
        ) else {
            continue;
        };
        let goes_on = take.said().iter().find(|said| {
            said.number > answered
                && said.is_beside(hello)
                && said.method() == Some("notifications/initialized")
        });
        match goes_on {
            Some(next) if offered < chosen => {
                let what = format!("the client offers {offered}, and goes on with {chosen}");
                return Err(Unmet::broken(what, [hello.number, answered, next.number]));
            }
            _ => seen.push(hello.number),
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested("the client offered no known revision")),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

fn version_kept(takes: &Takes) -> Outcome {
    // A client that tries newer revisions first says so in `_meta`.
    let said = takes
        .said()
        .filter(|said| said.meta("protocolVersion").is_none());
    let known = said.filter(|said| said.method().and_then(Method::named).is_some());
    every(known, "the client sent no method of the protocol", |said| {
        let method = said.method().and_then(Method::named)?;
        let wrong = !method.is_in(takes.revision);
        wrong.then(|| format!("`{}` is no method of {}", method.name, takes.revision))
    })
}

/// Names of messages by which other protocols end a connection.
const SHUTDOWN: [&str; 4] = ["shutdown", "exit", "close", "disconnect"];

fn no_shutdown_message(takes: &Takes) -> Outcome {
    every(takes.said(), "the client said nothing", |said| {
        let method = said.method()?;
        let name = method.strip_prefix("notifications/").unwrap_or(method);
        let wrong = SHUTDOWN.contains(&name);
        wrong.then(|| format!("`{method}`"))
    })
}
