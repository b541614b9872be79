//! Elicitation requests.

use serde_json::Value;
use turnbuckle_text::url::is_plain_http_over_network;

use crate::engine::{
    check_context::CheckContext,
    outcome::{Evidence, NotPassed, Outcome},
    transcript::Direction,
    transcript_query::{
        ObservedClientRequest, TranscriptMessage, client_requests, messages, received,
    },
};

/// The notification that a URL elicitation is complete.
const COMPLETE: &str = "notifications/elicitation/complete";

pub(super) async fn flat_form(ctx: &CheckContext) -> Outcome {
    let forms = elicitations(ctx, "sends a form elicitation", |it| {
        it.get("requestedSchema").is_some()
    })
    .await?;
    for form in &forms {
        let schema = &form.params["requestedSchema"];
        let Some(properties) = schema["properties"].as_object() else {
            continue;
        };
        for (name, property) in properties {
            if let Some(observed) = nesting_violation(property) {
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
    let url_elicitations = url_elicitations(ctx).await?;
    for page in &url_elicitations {
        let url = page.params["url"].as_str().unwrap_or_default();
        if !is_url(url) {
            return Err(NotPassed::violation(
                format!("{url:?} is not a URL"),
                [page.at],
            ));
        }
    }
    Evidence::from_entries(url_elicitations.iter().map(|page| page.at).take(3))
}

pub(super) async fn https(ctx: &CheckContext) -> Outcome {
    let url_elicitations = url_elicitations(ctx).await?;
    for page in &url_elicitations {
        let url = page.params["url"].as_str().unwrap_or_default();
        if is_plain_http_over_network(url) {
            return Err(NotPassed::violation(url, [page.at]));
        }
    }
    Evidence::from_entries(url_elicitations.iter().map(|page| page.at).take(3))
}

pub(super) fn complete_known(ctx: &CheckContext) -> Outcome {
    let complete = received(&ctx.transcript, COMPLETE);
    if complete.is_empty() {
        return Err(NotPassed::not_applicable(
            "the server sent no completion notification",
        ));
    }
    let elicitations = client_requests(&ctx.transcript).into_iter();
    let elicitations = elicitations.map(|client_request| {
        (
            client_request.at,
            client_request.params["elicitationId"].clone(),
        )
    });
    // Error -32042 also lists elicitations.
    let required = required_errors(ctx).into_iter().flat_map(|error| {
        let listed = listed(&error).to_vec();
        let ids = listed.into_iter().map(|page| page["elicitationId"].clone());
        ids.map(move |id| (error.at, id))
    });
    let requested: Vec<_> = elicitations.chain(required).collect();
    for message in &complete {
        let id = &message.value["params"]["elicitationId"];
        let matches = |(at, requested): &(usize, Value)| *at < message.at && requested == id;
        if id.is_string() && !requested.iter().any(matches) {
            let observed =
                format!("a completion of the elicitation {id}, which the server did not request");
            return Err(NotPassed::violation(observed, [message.at]));
        }
    }
    Evidence::from_entries(complete.iter().map(|message| message.at).take(3))
}

pub(super) fn complete_removed(ctx: &CheckContext) -> Outcome {
    let elicitations = client_requests(&ctx.transcript);
    if let Some(message) = received(&ctx.transcript, COMPLETE).first() {
        return Err(NotPassed::violation(format!("`{COMPLETE}`"), [message.at]));
    }
    let url_elicitations = elicitations
        .iter()
        .filter(|client_request| client_request.params["mode"] == "url");
    match url_elicitations.map(|page| page.at).collect::<Vec<_>>() {
        url_elicitations if url_elicitations.is_empty() => Err(NotPassed::not_applicable(
            "the server sent no URL elicitation",
        )),
        url_elicitations => Evidence::from_entries(url_elicitations.into_iter().take(3)),
    }
}

pub(super) fn required_error(ctx: &CheckContext) -> Outcome {
    let errors = required_errors(ctx);
    if errors.is_empty() {
        return Err(NotPassed::not_applicable(
            "the server did not return error -32042",
        ));
    }
    for error in &errors {
        let listed = listed(error);
        let is_valid = |it: &Value| it["mode"] == "url" && it["elicitationId"].is_string();
        if listed.is_empty() || !listed.iter().all(is_valid) {
            let observed = format!("`data` is {}", error.value["error"]["data"]);
            let violation = NotPassed::violation(observed, [error.at]);
            return Err(if listed.is_empty() {
                violation.for_requirement("elicitation.url.required-error-list")
            } else {
                violation.for_requirement("elicitation.url.required-error-mode")
            });
        }
    }
    Evidence::from_entries(errors.iter().map(|error| error.at).take(3))
}

/// Returns the errors that require URL elicitations.
fn required_errors(ctx: &CheckContext) -> Vec<TranscriptMessage> {
    messages(&ctx.transcript, Direction::Received)
        .filter(|message| message.value["error"]["code"] == -32042)
        .collect()
}

/// Returns the elicitations of an error.
fn listed(error: &TranscriptMessage) -> &[Value] {
    let listed = error.value["error"]["data"]["elicitations"].as_array();
    listed.map(Vec::as_slice).unwrap_or_default()
}

async fn url_elicitations(ctx: &CheckContext) -> Result<Vec<ObservedClientRequest>, NotPassed> {
    elicitations(ctx, "sends a URL elicitation", |params| {
        params["mode"] == "url" && params["url"].is_string()
    })
    .await
}

/// Returns the selected elicitations.
async fn elicitations(
    ctx: &CheckContext,
    activity: &str,
    selects: fn(&Value) -> bool,
) -> Result<Vec<ObservedClientRequest>, NotPassed> {
    let tool_runs = ctx.tool_runs().await?;
    let mut elicitations = client_requests(&ctx.transcript);
    elicitations.retain(|it| it.method == "elicitation/create" && selects(&it.params));
    if elicitations.is_empty() {
        Err(tool_runs.none(activity))
    } else {
        Ok(elicitations)
    }
}

/// Returns the violation of a property that is not allowed in a flat form.
fn nesting_violation(property: &Value) -> Option<String> {
    let nesting = ["properties", "$ref", "allOf", "additionalProperties"];
    if let Some(keyword) = nesting
        .iter()
        .find(|keyword| property.get(**keyword).is_some())
    {
        return Some(format!("has `{keyword}`"));
    }
    let allowed = ["string", "number", "integer", "boolean", "array"];
    match property.get("type") {
        None => return Some("lacks a type".to_owned()),
        Some(kind) if !allowed.iter().any(|it| kind == it) => {
            return Some(format!("has the type {kind}"));
        }
        Some(_) => {}
    }
    let items = &property["items"];
    let is_enumeration = ["enum", "anyOf", "oneOf"]
        .iter()
        .any(|keyword| items.get(*keyword).is_some());
    if property["type"] == "array" && !is_enumeration {
        Some("is an array without an enumeration".to_owned())
    } else {
        None
    }
}

/// Returns whether a text is an absolute URL.
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
