//! MCP headers since 2026-07-28.

use std::collections::HashSet;

use serde_json::Value;
use turnbuckle_protocol::codec::headers;

use crate::{
    engine::outcome::{NotPassed, Outcome},
    mock_server::scenario_run::{ClientMessage, ScenarioRuns, check_each},
    rule::{Area, Rule, Transports},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.http.method-header", Area::Http, &["http.header.mcp-method"])
        .requirement("`Mcp-Method` equals the method.")
        .hint("Send `Mcp-Method` with every POST, equal to `method` of the body.")
        .transports(Transports::Http)
        .scenarios(&[], method),
    Rule::client("client.http.name-header", Area::Http, &["http.header.mcp-name", "http.header.extract-from-body"])
        .requirement("`Mcp-Name` equals the name or URI of the tool, prompt or resource.")
        .hint("Send `Mcp-Name` with `tools/call`, `prompts/get` and `resources/read`, equal to the name or URI in the body.")
        .transports(Transports::Http)
        .scenarios(&[], name),
    Rule::client("client.http.name-header-encoded", Area::Http, &["http.header.mcp-name-encode", "http.value.markers"])
        .requirement("`Mcp-Name` with characters that headers do not allow is encoded as `=?base64?…?=`.")
        .hint("Encode names with characters other than visible ASCII in Base64, between `=?base64?` and `?=`.")
        .transports(Transports::Http)
        .scenarios(&[], name_encoded),
    Rule::client("client.http.param-headers", Area::Http, &[
        "http.param.client-support",
        "http.param.extract-path",
        "http.param.present",
        "http.value.types",
    ])
    .requirement("Arguments marked with `x-mcp-header` are sent as `Mcp-Param-*` headers.")
    .hint("Send `Mcp-Param-{name}` for every marked argument with a value: strings unchanged, integers in decimal, booleans as `true` or `false`.")
    .transports(Transports::Http)
    .scenarios(&[], params),
    Rule::client("client.http.param-headers-encoded", Area::Http, &["http.value.encode", "http.value.base64"])
        .requirement("`Mcp-Param-*` values that headers do not allow are encoded as `=?base64?…?=`.")
        .hint("Encode values with characters other than visible ASCII, or with leading or trailing spaces, in Base64.")
        .transports(Transports::Http)
        .scenarios(&[], params_encoded),
    Rule::client("client.http.param-headers-absent", Area::Http, &["http.param.null-omit", "http.param.absent-omit"])
        .requirement("Null and missing arguments are not sent as headers.")
        .hint("Send `Mcp-Param-{name}` only for arguments with a value.")
        .transports(Transports::Http)
        .scenarios(&[], params_absent),
    Rule::client("client.http.bad-marks-rejected", Area::Http, &["http.param.reject-tool"])
        .requirement("A tool with invalid `x-mcp-header` annotations is not called.")
        .hint("Reject tools with `x-mcp-header` values that are duplicates, invalid header names, or on types without a text form.")
        .transports(Transports::Http)
        .scenarios(&[], bad_marks),
];

/// The arguments of the tool `weather` with `x-mcp-header`, and their headers.
const PARAM_HEADERS: [(&str, &str); 3] = [
    ("city", "mcp-param-city"),
    ("days", "mcp-param-days"),
    ("exact", "mcp-param-exact"),
];

fn method(runs: &ScenarioRuns) -> Outcome {
    check_each(runs.requests(), "the client sent no request", |message| {
        let (header, body) = (message.header("mcp-method"), message.method());
        (header != body).then(|| match header {
            Some(header) => format!(
                "`Mcp-Method` is `{header}`, but the method is `{}`",
                body.unwrap_or_default()
            ),
            None => "`Mcp-Method` is missing".to_owned(),
        })
    })
}

/// Returns the name or URI that a request needs in a header.
fn subject(message: &ClientMessage) -> Option<&str> {
    match message.method()? {
        "tools/call" | "prompts/get" => message.params()["name"].as_str(),
        "resources/read" => message.params()["uri"].as_str(),
        _ => None,
    }
}

fn named(runs: &ScenarioRuns, plain: bool) -> impl Iterator<Item = &ClientMessage> {
    runs.requests().filter(move |message| {
        subject(message).is_some_and(|name| (headers::encode(name) == name) == plain)
    })
}

fn name(runs: &ScenarioRuns) -> Outcome {
    let none = "the client used no tool, prompt or resource";
    check_each(named(runs, true), none, |message| {
        let (header, body) = (message.header("mcp-name"), subject(message)?);
        let is_valid =
            header.is_some_and(|header| headers::decode(header).is_ok_and(|name| name == body));
        (!is_valid).then(|| match header {
            Some(header) => format!("`Mcp-Name` is `{header}`, but the body has `{body}`"),
            None => "`Mcp-Name` is missing".to_owned(),
        })
    })
}

/// Starts an encoded header value.
const MARKER: &str = "=?base64?";

fn name_encoded(runs: &ScenarioRuns) -> Outcome {
    let none = "the client requested nothing with such a name; the mock server has such a prompt";
    check_each(named(runs, false), none, |message| {
        let (header, body) = (message.header("mcp-name"), subject(message)?);
        let is_valid = header.is_some_and(|header| {
            header.starts_with(MARKER) && headers::decode(header).is_ok_and(|name| name == body)
        });
        let header = header.unwrap_or_default();
        let has_other_marker = !header.starts_with(MARKER)
            && header
                .get(..MARKER.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(MARKER));
        let requirement = if has_other_marker {
            "http.value.markers"
        } else {
            "http.header.mcp-name-encode"
        };
        let observed = format!("`Mcp-Name` is `{header}`, but the body has `{body}`");
        (!is_valid).then_some((requirement, observed))
    })
}

/// Returns each marked argument of a call, with its value as text and its header.
fn param_headers(
    message: &ClientMessage,
) -> impl Iterator<Item = (&'static str, Option<String>, Option<&str>)> {
    let arguments = &message.params()["arguments"];
    PARAM_HEADERS.into_iter().map(|(argument, header)| {
        let value = match &arguments[argument] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            // `3.0` is an integer and is written as `3`.
            Value::Number(number)
                if number.as_f64().is_some_and(|number| number.fract() == 0.0) =>
            {
                let text = number.to_string();
                Some(text.trim_end_matches(".0").to_owned())
            }
            other => Some(other.to_string()),
        };
        (argument, value, message.header(header))
    })
}

/// Returns the calls of the tool `weather` after the client has listed it.
fn weather(runs: &ScenarioRuns) -> impl Iterator<Item = &ClientMessage> {
    let calls = runs.all().flat_map(|run| {
        let listed = run.requests_for("tools/list").find_map(|list| {
            let (number, response) = run.response_to(list)?;
            let tools = response["result"]["tools"].as_array()?;
            let has_weather = tools.iter().any(|tool| tool["name"] == "weather");
            has_weather.then_some(number)
        });
        let calls = run.requests_for("tools/call");
        calls.filter(move |message| listed.is_some_and(|listed| message.number > listed))
    });
    calls.filter(|message| message.params()["name"] == "weather")
}

const NOT_CALLED: &str = "the client did not call the tool `weather` with such arguments";

fn params(runs: &ScenarioRuns) -> Outcome {
    let plain = |value: &str| headers::encode(value) == value;
    let calls = weather(runs).filter(|message| {
        param_headers(message).any(|(_, value, _)| value.is_some_and(|value| plain(&value)))
    });
    check_each(calls, NOT_CALLED, |message| {
        let violation = param_headers(message).find(|(_, value, header)| {
            let Some(value) = value.as_ref().filter(|value| plain(value)) else {
                return false;
            };
            !header.is_some_and(|header| headers::decode(header).is_ok_and(|given| given == *value))
        });
        let (argument, value, header) = violation?;
        let is_text = message.params()["arguments"][argument].is_string();
        let requirement = match header {
            Some(_) if is_text => "http.param.extract-path",
            Some(_) => "http.value.types",
            None => "http.param.present",
        };
        let header = header.map_or_else(|| "missing".to_owned(), |header| format!("`{header}`"));
        let value = value.unwrap_or_default();
        let observed = format!("`{argument}` is {value}, but its header is {header}");
        Some((requirement, observed))
    })
}

fn params_encoded(runs: &ScenarioRuns) -> Outcome {
    let unusual = |value: &str| headers::encode(value) != value;
    let calls = weather(runs).filter(|message| {
        param_headers(message).any(|(_, value, _)| value.is_some_and(|value| unusual(&value)))
    });
    check_each(calls, NOT_CALLED, |message| {
        let violation = param_headers(message).find(|(_, value, header)| {
            let Some(value) = value.as_ref().filter(|value| unusual(value)) else {
                return false;
            };
            !header.is_some_and(|header| {
                header.starts_with(MARKER)
                    && headers::decode(header).is_ok_and(|given| given == *value)
            })
        });
        let (argument, value, header) = violation?;
        let (value, header) = (value.unwrap_or_default(), header.unwrap_or_default());
        Some(format!(
            "`{argument}` is `{value}`, but its header is `{header}`"
        ))
    })
}

fn params_absent(runs: &ScenarioRuns) -> Outcome {
    let calls =
        weather(runs).filter(|message| param_headers(message).any(|(_, value, _)| value.is_none()));
    check_each(calls, NOT_CALLED, |message| {
        let violation =
            param_headers(message).find(|(_, value, header)| value.is_none() && header.is_some());
        let (argument, _, header) = violation?;
        let header = header.unwrap_or_default();
        Some(match message.params()["arguments"].get(argument) {
            Some(_) => (
                "http.param.null-omit",
                format!("`{argument}` is null, but its header is `{header}`"),
            ),
            None => (
                "http.param.absent-omit",
                format!("`{argument}` is missing, but its header is `{header}`"),
            ),
        })
    })
}

fn bad_marks(runs: &ScenarioRuns) -> Outcome {
    let calls: Vec<_> = runs
        .requests()
        .filter(|message| message.method() == Some("tools/call"))
        .collect();
    let violation = calls
        .iter()
        .find(|message| message.params()["name"] == "mislabelled");
    if let Some(message) = violation {
        return Err(NotPassed::violation(
            "the client called the tool `mislabelled`",
            [message.number],
        ));
    }
    // A client that calls few tools may not have noticed this one.
    let names = calls
        .iter()
        .filter_map(|message| message.params()["name"].as_str());
    let tools: HashSet<_> = names.collect();
    if tools.len() < 3 {
        Err(NotPassed::not_tested("the client does not call all tools"))
    } else {
        check_each(calls, "", |_| None::<String>)
    }
}
