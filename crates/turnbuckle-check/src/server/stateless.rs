//! Requests that say by themselves all that there is to know.

use serde_json::Value;

use super::meta::is_well_formed;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::session::{Answer, Session};
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "lifecycle.discover",
        Area::Lifecycle,
        &["versioning.discover.implement"],
    )
    .says("`server/discover` is answered.")
    .cure("Answer `server/discover` with your versions and capabilities.")
    .ask(|visit| Box::pin(discover(visit))),
    Rule::server(
        "lifecycle.discover-names-version",
        Area::Lifecycle,
        &["versioning.discover.result"],
    )
    .says("`server/discover` names the version in which it is answered.")
    .cure("List every version that you serve in `supportedVersions`.")
    .ask(|visit| Box::pin(discover_names_version(visit))),
    Rule::server(
        "lifecycle.unsupported-version",
        Area::Lifecycle,
        &["versioning.unsupported.error"],
    )
    .says("A request in a version that the server does not support gets the error -32022.")
    .cure("Answer with the error -32022 when you do not serve the version that `_meta` names.")
    .ask(|visit| Box::pin(unsupported_version(visit))),
    Rule::server(
        "lifecycle.unsupported-version-data",
        Area::Lifecycle,
        &["versioning.unsupported.data"],
    )
    .says("The error -32022 says which versions are supported, and which was requested.")
    .cure("Fill `data.supported` with your versions and `data.requested` with the one of the request.")
    .ask(|visit| Box::pin(unsupported_version_data(visit))),
    Rule::server(
        "lifecycle.unsupported-version-status",
        Area::Lifecycle,
        &["versioning.unsupported.http-400"],
    )
    .says("The error -32022 comes with the status 400.")
    .cure("Send the error -32022 with the status 400.")
    .on(On::Http)
    .ask(|visit| Box::pin(unsupported_version_status(visit))),
    Rule::server(
        "lifecycle.required-meta",
        Area::Lifecycle,
        &["meta.request.missing-field-error"],
    )
    .says("A request that does not say what the client can do gets the error -32602.")
    .cure("Answer with the error -32602 when a required field of `_meta` is missing.")
    .ask(|visit| Box::pin(required_meta(visit))),
    Rule::server(
        "lifecycle.required-meta-status",
        Area::Lifecycle,
        &["meta.request.missing-field-status"],
    )
    .says("The refusal of a request that lacks a required field of `_meta` has the status 400.")
    .cure("Send the error for a missing field of `_meta` with the status 400.")
    .on(On::Http)
    .ask(|visit| Box::pin(required_meta_status(visit))),
    Rule::server(
        "lifecycle.nothing-remembered",
        Area::Lifecycle,
        &["stateless.no-prior-context"],
    )
    .says("What a request does not say is not taken from an earlier one.")
    .cure("Take version, capabilities and identity from the `_meta` of the request alone.")
    .on(On::Lines)
    .ask(|visit| Box::pin(nothing_remembered(visit))),
    Rule::server(
        "lifecycle.extension-names",
        Area::Lifecycle,
        &["versioning.extension.id-format"],
    )
    .says("Extensions are declared by names with a prefix.")
    .cure("Name extensions like `com.example/extension`.")
    .ask(|visit| Box::pin(extension_names(visit))),
    Rule::server(
        "lifecycle.no-opening",
        Area::Lifecycle,
        &["stateless.no-prior-context"],
    )
    .says("A request is answered though nothing was asked before it.")
    .cure("Do not wait for `server/discover` or `initialize`: any request may be the first.")
    .ask(|visit| Box::pin(no_opening(visit))),
    Rule::server(
        "lifecycle.undeclared-refused",
        Area::Lifecycle,
        &["base.error.method-not-found"],
    )
    .says("A list that belongs to a capability which is not declared gets the error -32601.")
    .cure("Answer methods of capabilities that you do not declare with the error -32601, not with an empty list.")
    .gently()
    .ask(|visit| Box::pin(undeclared_refused(visit))),
];

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What is listed, by the capability that it belongs to.
const LISTS: [(&str, &str); 3] = [
    ("tools", "tools/list"),
    ("resources", "resources/list"),
    ("prompts", "prompts/list"),
];

/// A version that nobody will ever speak.
const UNKNOWN: &str = "1999-01-01";

async fn discover(visit: &Visit) -> Outcome {
    let answer = opening(visit).await?;
    answer.result()?;
    answer.seen()
}

async fn discover_names_version(visit: &Visit) -> Outcome {
    let answer = opening(visit).await?;
    let result = answer.result().map_err(Unmet::aside)?;
    let Some(versions) = result["supportedVersions"].as_array() else {
        return Err(Unmet::not_tested("`supportedVersions` is no list"));
    };
    match versions
        .iter()
        .any(|version| version == visit.revision.as_str())
    {
        true => answer.seen(),
        false => {
            let versions = Value::from(versions.clone());
            Err(answer.broken(format!("`supportedVersions` is {versions}")))
        }
    }
}

async fn opening(visit: &Visit) -> Result<&Answer, Unmet> {
    let session = visit.session().await?;
    let nothing = || Unmet::not_tested("`server/discover` was not asked");
    session.opening.as_ref().ok_or_else(nothing)
}

async fn unsupported_version(visit: &Visit) -> Outcome {
    in_unknown_version(visit).await?.expect_error(&[-32022])
}

async fn unsupported_version_data(visit: &Visit) -> Outcome {
    let answer = in_unknown_version(visit).await?;
    answer.expect_error(&[-32022]).map_err(Unmet::aside)?;
    let data = &answer.value["error"]["data"];
    let supported = data["supported"].as_array();
    if !supported.is_some_and(|all| all.iter().any(|version| version == visit.revision.as_str())) {
        let what = format!("`data.supported` is {}", data["supported"]);
        return Err(answer.broken(what));
    }
    match &data["requested"] {
        Value::String(requested) if requested == UNKNOWN => answer.seen(),
        other => Err(answer.broken(format!("`data.requested` is {other}"))),
    }
}

async fn unsupported_version_status(visit: &Visit) -> Outcome {
    let answer = in_unknown_version(visit).await?;
    answer.expect_error(&[-32022]).map_err(Unmet::aside)?;
    has_status_400(&answer)
}

/// Asks something harmless in a version that nobody speaks.
async fn in_unknown_version(visit: &Visit) -> Result<Answer, Unmet> {
    let session = visit.session().await?;
    let mut request =
        session
            .speech
            .request("unknown-version", session.speech.harmless(), Value::Null);
    request["params"]["_meta"][VERSION] = UNKNOWN.into();
    let headers = session.speech.headers(&request, None);
    let headers = headers.into_iter().map(|(name, value)| match &*name {
        "mcp-protocol-version" => (name, UNKNOWN.to_owned()),
        _ => (name, value),
    });
    let id = request.get("id").cloned();
    let text = request.to_string();
    let pending = session
        .send_text(id, &text, headers.collect(), true)
        .await?;
    session.answer(pending).await
}

async fn required_meta(visit: &Visit) -> Outcome {
    let session = visit.silent().await?;
    let answer = without_capabilities(&session, "first").await?;
    answer.expect_error(&[-32602])
}

async fn required_meta_status(visit: &Visit) -> Outcome {
    let session = visit.silent().await?;
    let answer = without_capabilities(&session, "first").await?;
    answer.error().map_err(Unmet::aside)?;
    has_status_400(&answer)
}

async fn nothing_remembered(visit: &Visit) -> Outcome {
    let session = visit.silent().await?;
    let first = without_capabilities(&session, "before").await?;
    first.error().map_err(Unmet::aside)?;
    let whole = session.ask(session.speech.harmless(), Value::Null).await;
    whole
        .and_then(|answer| answer.result().map(drop))
        .map_err(Unmet::aside)?;
    let second = without_capabilities(&session, "after").await?;
    match second.error() {
        Ok(_) => Seen::at(first.entries().chain(second.entries())),
        Err(_) => Err(second.broken(
            "what was refused before is answered after a request that says what the client can do",
        )),
    }
}

/// Asks something harmless, and does not say what the client can do.
async fn without_capabilities(session: &Session, id: &str) -> Result<Answer, Unmet> {
    let method = session.speech.harmless();
    let mut request = session.speech.request(id, method, Value::Null);
    let meta = request["params"]["_meta"].as_object_mut();
    meta.expect("requests without handshake have it")
        .remove(CAPABILITIES);
    let pending = session.send(request, true).await?;
    session.answer(pending).await
}

fn has_status_400(answer: &Answer) -> Outcome {
    match answer.status {
        Some(400) => answer.seen(),
        Some(status) => Err(answer.broken(format!("the status {status} instead of 400"))),
        None => Err(Unmet::not_tested("there is no status")),
    }
}

async fn extension_names(visit: &Visit) -> Outcome {
    let extensions = visit.capability("/extensions").await?;
    let answer = opening(visit).await?;
    let Some(extensions) = extensions.as_object().filter(|all| !all.is_empty()) else {
        return Err(Unmet::not_applicable("the server declares no extension"));
    };
    let mut names = extensions.keys();
    match names.find(|name| !name.contains('/') || !is_well_formed(name)) {
        Some(name) => Err(answer.broken(format!("the extension `{name}`"))),
        None => answer.seen(),
    }
}

async fn no_opening(visit: &Visit) -> Outcome {
    let capabilities = visit.session().await?.capabilities();
    let declared = |(capability, _): &&(&str, &str)| capabilities.get(capability).is_some();
    let Some((_, method)) = LISTS.iter().find(declared) else {
        return Err(Unmet::not_applicable("the server declares no lists"));
    };
    let session = visit.silent().await?;
    let first = session.ask(method, Value::Null).await?;
    if first.value.get("result").is_some() {
        return first.seen();
    }
    // Whether it is there at all is the business of others.
    let later = visit.session().await?.ask(method, Value::Null).await?;
    later.result().map_err(Unmet::aside)?;
    Err(first.broken(format!("`{method}`: {}", first.describe())))
}

async fn undeclared_refused(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let capabilities = session.capabilities();
    if session.speech.has_handshake() || !capabilities.is_object() {
        return Err(Unmet::not_applicable("only later revisions say so"));
    }
    let mut entries = Vec::new();
    for (capability, method) in LISTS {
        if capabilities.get(capability).is_some() {
            continue;
        }
        let answer = session.ask(method, Value::Null).await?;
        let result = answer.value.get("result").and_then(Value::as_object);
        let has_entries = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
        // What is offered and not declared is the business of others.
        if !result.is_some_and(|result| result.values().any(has_entries)) {
            answer
                .expect_error(&[-32601])
                .map_err(|unmet| unmet.at(method))?;
        }
        entries.extend(answer.entries());
    }
    match entries.is_empty() {
        true => Err(Unmet::not_applicable("the server declares all lists")),
        false => Seen::at(entries),
    }
}
