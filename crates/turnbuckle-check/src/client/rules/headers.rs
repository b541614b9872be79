//! What the headers of HTTP repeat of a request, since 2026-07-28.

use std::collections::HashSet;

use serde_json::Value;
use turnbuckle_protocol::codec::headers;

use crate::client::take::{Said, Takes, every};
use crate::outcome::{Outcome, Unmet};
use crate::rule::{Area, On, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.http.method-header", Area::Http, &["http.header.mcp-method"])
        .says("The header `Mcp-Method` names the method of the request.")
        .cure("Send `Mcp-Method` with every POST, equal to `method` of the body.")
        .on(On::Http)
        .watch(&[], method),
    Rule::client("client.http.name-header", Area::Http, &["http.header.mcp-name", "http.header.extract-from-body"])
        .says("The header `Mcp-Name` names the tool, the prompt or the resource that the request is about.")
        .cure("Send `Mcp-Name` with `tools/call`, `prompts/get` and `resources/read`, equal to the name or URI in the body.")
        .on(On::Http)
        .watch(&[], name),
    Rule::client("client.http.name-header-encoded", Area::Http, &["http.header.mcp-name-encode", "http.value.markers"])
        .says("A name that a header cannot carry as it is comes as `=?base64?…?=`.")
        .cure("Encode names that have other than visible ASCII characters in Base64, between `=?base64?` and `?=`.")
        .on(On::Http)
        .watch(&[], name_encoded),
    Rule::client("client.http.param-headers", Area::Http, &[
        "http.param.client-support",
        "http.param.extract-path",
        "http.param.present",
        "http.value.types",
    ])
    .says("An argument that the tool marks with `x-mcp-header` goes along as a header.")
    .cure("Send `Mcp-Param-{name}` for every marked argument that has a value: strings as they are, integers in decimal, booleans as `true` or `false`.")
    .on(On::Http)
    .watch(&[], params),
    Rule::client("client.http.param-headers-encoded", Area::Http, &["http.value.encode", "http.value.base64"])
        .says("A value that a header cannot carry as it is comes as `=?base64?…?=`.")
        .cure("Encode values that have other than visible ASCII characters, or spaces at an end, in Base64.")
        .on(On::Http)
        .watch(&[], params_encoded),
    Rule::client("client.http.param-headers-absent", Area::Http, &["http.param.null-omit", "http.param.absent-omit"])
        .says("An argument that is null, or is not there, has no header.")
        .cure("Send `Mcp-Param-{name}` only for arguments that have a value.")
        .on(On::Http)
        .watch(&[], params_absent),
    Rule::client("client.http.bad-marks-rejected", Area::Http, &["http.param.reject-tool"])
        .says("A tool whose marks for headers are wrong is not called.")
        .cure("Leave a tool out whose `x-mcp-header` marks are not unique, not names of headers, or on values that have no text.")
        .on(On::Http)
        .watch(&[], bad_marks),
];

/// The arguments of the tool `weather` that are marked, and the headers that they are marked with.
const MARKED: [(&str, &str); 3] = [
    ("city", "mcp-param-city"),
    ("days", "mcp-param-days"),
    ("exact", "mcp-param-exact"),
];

fn method(takes: &Takes) -> Outcome {
    every(takes.requests(), "the client posted no request", |said| {
        let (header, body) = (said.header("mcp-method"), said.method());
        (header != body).then(|| match header {
            Some(header) => format!(
                "`Mcp-Method` is `{header}`, and the method `{}`",
                body.unwrap_or_default()
            ),
            None => "`Mcp-Method` is missing".to_owned(),
        })
    })
}

/// Returns what a request is about, if it is one that says so in a header.
fn subject(said: &Said) -> Option<&str> {
    match said.method()? {
        "tools/call" | "prompts/get" => said.params()["name"].as_str(),
        "resources/read" => said.params()["uri"].as_str(),
        _ => None,
    }
}

fn named(takes: &Takes, plain: bool) -> impl Iterator<Item = &Said> {
    takes.requests().filter(move |said| {
        subject(said).is_some_and(|name| (headers::encode(name) == name) == plain)
    })
}

fn name(takes: &Takes) -> Outcome {
    let none = "the client called no tool, got no prompt and read no resource";
    every(named(takes, true), none, |said| {
        let (header, body) = (said.header("mcp-name"), subject(said)?);
        let right =
            header.is_some_and(|header| headers::decode(header).is_ok_and(|name| name == body));
        (!right).then(|| match header {
            Some(header) => format!("`Mcp-Name` is `{header}`, and the body says `{body}`"),
            None => "`Mcp-Name` is missing".to_owned(),
        })
    })
}

fn name_encoded(takes: &Takes) -> Outcome {
    let none = "the client asked for nothing with such a name; there is a prompt with one";
    every(named(takes, false), none, |said| {
        let (header, body) = (said.header("mcp-name"), subject(said)?);
        let right = header.is_some_and(|header| {
            header.starts_with("=?base64?")
                && headers::decode(header).is_ok_and(|name| name == body)
        });
        (!right).then(|| {
            format!(
                "`Mcp-Name` is `{}`, and the body says `{body}`",
                header.unwrap_or_default()
            )
        })
    })
}

/// Returns each marked argument of each call, with its value as text and its header.
fn marked(said: &Said) -> impl Iterator<Item = (&'static str, Option<String>, Option<&str>)> {
    let arguments = &said.params()["arguments"];
    MARKED.into_iter().map(|(argument, header)| {
        let value = match &arguments[argument] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            // `3.0` is an integer, and is written like one.
            Value::Number(number)
                if number.as_f64().is_some_and(|number| number.fract() == 0.0) =>
            {
                let text = number.to_string();
                Some(text.trim_end_matches(".0").to_owned())
            }
            other => Some(other.to_string()),
        };
        (argument, value, said.header(header))
    })
}

/// Returns the calls of the tool `weather` by a client that has seen the tool's marks.
fn weather(takes: &Takes) -> impl Iterator<Item = &Said> {
    let calls = takes.all().flat_map(|take| {
        let listed = take.asked("tools/list").find_map(|list| {
            let (number, answer) = take.answer(list)?;
            let tools = answer["result"]["tools"].as_array()?;
            let shown = tools.iter().any(|tool| tool["name"] == "weather");
            shown.then_some(number)
        });
        let calls = take.asked("tools/call");
        calls.filter(move |said| listed.is_some_and(|listed| said.number > listed))
    });
    calls.filter(|said| said.params()["name"] == "weather")
}

const NOT_CALLED: &str = "the client did not call the tool `weather` with such arguments";

fn params(takes: &Takes) -> Outcome {
    let plain = |value: &str| headers::encode(value) == value;
    let calls = weather(takes)
        .filter(|said| marked(said).any(|(_, value, _)| value.is_some_and(|value| plain(&value))));
    every(calls, NOT_CALLED, |said| {
        let wrong = marked(said).find(|(_, value, header)| {
            let Some(value) = value.as_ref().filter(|value| plain(value)) else {
                return false;
            };
            !header.is_some_and(|header| headers::decode(header).is_ok_and(|given| given == *value))
        });
        let (argument, value, header) = wrong?;
        let header = header.map_or_else(|| "missing".to_owned(), |header| format!("`{header}`"));
        Some(format!(
            "`{argument}` is {}, and its header is {header}",
            value.unwrap_or_default()
        ))
    })
}

fn params_encoded(takes: &Takes) -> Outcome {
    let odd = |value: &str| headers::encode(value) != value;
    let calls = weather(takes)
        .filter(|said| marked(said).any(|(_, value, _)| value.is_some_and(|value| odd(&value))));
    every(calls, NOT_CALLED, |said| {
        let wrong = marked(said).find(|(_, value, header)| {
            let Some(value) = value.as_ref().filter(|value| odd(value)) else {
                return false;
            };
            !header.is_some_and(|header| {
                header.starts_with("=?base64?")
                    && headers::decode(header).is_ok_and(|given| given == *value)
            })
        });
        let (argument, value, header) = wrong?;
        let (value, header) = (value.unwrap_or_default(), header.unwrap_or_default());
        Some(format!(
            "`{argument}` is `{value}`, and its header `{header}`"
        ))
    })
}

fn params_absent(takes: &Takes) -> Outcome {
    let calls = weather(takes).filter(|said| marked(said).any(|(_, value, _)| value.is_none()));
    every(calls, NOT_CALLED, |said| {
        let wrong = marked(said).find(|(_, value, header)| value.is_none() && header.is_some());
        let (argument, _, header) = wrong?;
        Some(format!(
            "`{argument}` has no value, and its header is `{}`",
            header.unwrap_or_default()
        ))
    })
}

fn bad_marks(takes: &Takes) -> Outcome {
    let calls: Vec<_> = takes
        .requests()
        .filter(|said| said.method() == Some("tools/call"))
        .collect();
    let wrong = calls
        .iter()
        .find(|said| said.params()["name"] == "mislabelled");
    if let Some(said) = wrong {
        return Err(Unmet::broken(
            "the client called the tool `mislabelled`",
            [said.number],
        ));
    }
    // Whoever calls one tool only has not shown that it would leave this one out.
    let names = calls
        .iter()
        .filter_map(|said| said.params()["name"].as_str());
    let tools: HashSet<_> = names.collect();
    match tools.len() < 3 {
        true => Err(Unmet::not_tested(
            "the client does not call all tools that it is offered",
        )),
        false => every(calls, "", |_| None),
    }
}
