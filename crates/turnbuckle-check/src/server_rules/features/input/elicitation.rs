//! Questions to the user.

use serde_json::Value;

use crate::engine::{
    check_context::CheckContext,
    outcome::{Evidence, NotPassed, Outcome},
    transcript::Direction,
    transcript_query::{
        ObservedClientRequest, TranscriptMessage, client_requests, messages, received,
    },
};

/// The notification that the user is done with a page.
const COMPLETE: &str = "notifications/elicitation/complete";

pub(super) async fn flat_form(ctx: &CheckContext) -> Outcome {
    let forms = elicitations(ctx, "asks the user to fill in a form", |it| {
        it.get("requestedSchema").is_some()
    })
    .await?;
    for form in &forms {
        let schema = &form.params["requestedSchema"];
        let Some(properties) = schema["properties"].as_object() else {
            continue;
        };
        for (name, property) in properties {
            if let Some(observed) = beyond_flat(property) {
                return Err(NotPassed::violation(
                    format!("`{name}` {observed}"),
                    [form.at],
                ));
            }
        }
    }
    Evidence::from_entries(forms.iter().map(|form| form.at).take(3))
}

pub(super) async fn valid_url(ctx: &CheckContext) -> Outcome {
    let pages = pages(ctx).await?;
    for page in &pages {
        let url = page.params["url"].as_str().unwrap_or_default();
        if !is_url(url) {
            return Err(NotPassed::violation(
                format!("{url:?} is no URL"),
                [page.at],
            ));
        }
    }
    Evidence::from_entries(pages.iter().map(|page| page.at).take(3))
}

pub(super) async fn https(ctx: &CheckContext) -> Outcome {
    let pages = pages(ctx).await?;
    for page in &pages {
        let url = page.params["url"].as_str().unwrap_or_default();
        if let Some(rest) = url.strip_prefix("http://").filter(|rest| !is_near(rest)) {
            return Err(NotPassed::violation(format!("http://{rest}"), [page.at]));
        }
    }
    Evidence::from_entries(pages.iter().map(|page| page.at).take(3))
}

pub(super) fn complete_known(ctx: &CheckContext) -> Outcome {
    let complete = received(&ctx.transcript, COMPLETE);
    if complete.is_empty() {
        return Err(NotPassed::not_applicable(
            "the server told of no elicitation that is complete",
        ));
    }
    let elicitations = client_requests(&ctx.transcript).into_iter();
    let elicitations = elicitations.map(|client_request| {
        (
            client_request.at,
            client_request.params["elicitationId"].clone(),
        )
    });
    // An error may ask for pages to be visited before the request comes again.
    let required = required_errors(ctx).into_iter().flat_map(|error| {
        let pages = listed(&error).to_vec();
        let ids = pages.into_iter().map(|page| page["elicitationId"].clone());
        ids.map(move |id| (error.at, id))
    });
    let known: Vec<_> = elicitations.chain(required).collect();
    for message in &complete {
        let id = &message.value["params"]["elicitationId"];
        let is_known = |(at, known): &(usize, Value)| *at < message.at && known == id;
        if id.is_string() && !known.iter().any(is_known) {
            let observed = format!("the elicitation {id} is complete, and nobody has asked for it");
            return Err(NotPassed::violation(observed, [message.at]));
        }
    }
    Evidence::from_entries(complete.iter().map(|message| message.at).take(3))
}

pub(super) fn complete_is_gone(ctx: &CheckContext) -> Outcome {
    let elicitations = client_requests(&ctx.transcript);
    if let Some(message) = received(&ctx.transcript, COMPLETE).first() {
        return Err(NotPassed::violation(format!("`{COMPLETE}`"), [message.at]));
    }
    let pages = elicitations
        .iter()
        .filter(|client_request| client_request.params["mode"] == "url");
    match pages.map(|page| page.at).collect::<Vec<_>>() {
        pages if pages.is_empty() => Err(NotPassed::not_applicable("no page was to be visited")),
        pages => Evidence::from_entries(pages.into_iter().take(3)),
    }
}

pub(super) fn required_error(ctx: &CheckContext) -> Outcome {
    let errors = required_errors(ctx);
    if errors.is_empty() {
        return Err(NotPassed::not_applicable("the error -32042 was not seen"));
    }
    for error in &errors {
        let listed = listed(error);
        let whole = |it: &Value| it["mode"] == "url" && it["elicitationId"].is_string();
        if listed.is_empty() || !listed.iter().all(whole) {
            let observed = format!("`data` is {}", error.value["error"]["data"]);
            return Err(NotPassed::violation(observed, [error.at]));
        }
    }
    Evidence::from_entries(errors.iter().map(|error| error.at).take(3))
}

/// Returns the errors that ask for pages to be visited first.
fn required_errors(ctx: &CheckContext) -> Vec<TranscriptMessage> {
    messages(&ctx.transcript, Direction::Received)
        .filter(|message| message.value["error"]["code"] == -32042)
        .collect()
}

/// Returns the elicitations that such an error lists.
fn listed(error: &TranscriptMessage) -> &[Value] {
    let listed = error.value["error"]["data"]["elicitations"].as_array();
    listed.map(Vec::as_slice).unwrap_or_default()
}

async fn pages(ctx: &CheckContext) -> Result<Vec<ObservedClientRequest>, NotPassed> {
    elicitations(ctx, "asks the user to visit a page", |params| {
        params["mode"] == "url" && params["url"].is_string()
    })
    .await
}

/// Returns the elicitations of a kind.
async fn elicitations(
    ctx: &CheckContext,
    observed: &str,
    which: fn(&Value) -> bool,
) -> Result<Vec<ObservedClientRequest>, NotPassed> {
    let tool_runs = ctx.tool_runs().await?;
    let mut elicitations = client_requests(&ctx.transcript);
    elicitations.retain(|it| it.method == "elicitation/create" && which(&it.params));
    if elicitations.is_empty() {
        Err(tool_runs.none(observed))
    } else {
        Ok(elicitations)
    }
}

/// Says what a property has that a flat form has not.
fn beyond_flat(property: &Value) -> Option<String> {
    let nesting = ["properties", "$ref", "allOf", "additionalProperties"];
    if let Some(keyword) = nesting
        .iter()
        .find(|keyword| property.get(**keyword).is_some())
    {
        return Some(format!("has `{keyword}`"));
    }
    let plain = ["string", "number", "integer", "boolean", "array"];
    match property.get("type") {
        None => return Some("has no type".to_owned()),
        Some(kind) if !plain.iter().any(|it| kind == it) => {
            return Some(format!("has the type {kind}"));
        }
        Some(_) => {}
    }
    let items = &property["items"];
    let chosen = ["enum", "anyOf", "oneOf"]
        .iter()
        .any(|keyword| items.get(*keyword).is_some());
    if property["type"] == "array" && !chosen {
        Some("is a list of anything".to_owned())
    } else {
        None
    }
}

/// Says whether a text is an absolute URL.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let mut letters = scheme.chars();
    let scheme = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it));
    let printable = !text.chars().any(|it| it.is_whitespace() || it.is_control());
    scheme && printable && !rest.trim_start_matches('/').is_empty()
}

/// Says whether a URL without its scheme is on this machine, where https is not expected.
fn is_near(rest: &str) -> bool {
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    ["localhost", "127.", "[::1]"]
        .iter()
        .any(|near| host.starts_with(near))
}
