//! The schemas of tools and their `x-mcp-header` annotations.

use serde_json::Value;
use turnbuckle_protocol::codec::headers::{
    InvalidParamHeader, param_headers as find_param_headers,
};
use turnbuckle_schema::{SchemaError, SchemaValidator};

use crate::engine::{
    check_context::CheckContext,
    outcome::{Evidence, NotPassed, Outcome},
};

/// Parts of the names of dialects before 2020-12.
const OLDER_DIALECTS: &[&str] = &["draft-03", "draft-04", "draft-06", "draft-07", "2019-09"];

/// Words that indicate a secret.
const SECRET_WORDS: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "apikey",
    "api_key",
    "access_token",
    "credential",
    "private_key",
    "ssn",
];

pub(super) async fn valid(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    for (name, field, schema) in schemas(tools) {
        let Some(schema) = schema.as_object() else {
            continue;
        };
        // A schema that is too complex or has external references is not invalid for that.
        if let Err(SchemaError::Invalid { pointer, reason }) = SchemaValidator::lenient(schema) {
            // JavaScript patterns may use lookaround, which this validator does not support.
            if pointer.ends_with("/pattern") || reason.contains("\"regex\"") {
                continue;
            }
            let observed = format!("the `{field}` of `{name}` at `{pointer}`: {reason}");
            let violation = NotPassed::violation(observed, tools.entries());
            return Err(if field == "inputSchema" {
                violation.for_requirement("tools.input-schema.object")
            } else {
                violation.for_requirement("schema.valid")
            });
        }
    }
    Evidence::from_entries(tools.entries())
}

pub(super) async fn dialect(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let dialect_of = |schema: &Value| schema["$schema"].as_str().map(str::to_owned);
    let older: Vec<_> = schemas(tools)
        .filter_map(|(name, _, schema)| Some((name, dialect_of(schema)?)))
        .filter(|(_, dialect)| OLDER_DIALECTS.iter().any(|older| dialect.contains(older)))
        .collect();
    match older.as_slice() {
        [] => Evidence::from_entries(tools.entries()),
        [(name, dialect)] => {
            let observed = format!("a schema of `{name}` uses the dialect {dialect}");
            Err(NotPassed::violation(observed, tools.entries()))
        }
        [(name, dialect), more @ ..] => {
            let observed = format!(
                "a schema of `{name}` uses the dialect {dialect}, and so do {} more",
                more.len()
            );
            Err(NotPassed::violation(observed, tools.entries()))
        }
    }
}

pub(super) async fn annotations(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let mut any = false;
    for tool in tools {
        match find_param_headers(&tool["inputSchema"]) {
            // The specification sets no limit on their number.
            Ok(_) | Err(InvalidParamHeader::TooMany) => {}
            Err(error) => {
                let observed = format!("in the input schema of {}, {error}", tool["name"]);
                let violation = NotPassed::violation(observed, tools.entries());
                return Err(match violated_annotation(&error, &tool["inputSchema"]) {
                    Some(requirement) => violation.for_requirement(requirement),
                    None => violation,
                });
            }
        }
        any |= is_annotated(tool);
    }
    require_annotations(any)?;
    Evidence::from_entries(tools.entries())
}

/// Returns the requirement that an `x-mcp-header` annotation violates.
fn violated_annotation(error: &InvalidParamHeader, schema: &Value) -> Option<&'static str> {
    match error {
        InvalidParamHeader::Name { pointer } => {
            let name = schema.pointer(pointer).map(|it| &it["x-mcp-header"]);
            let name = name.and_then(Value::as_str).unwrap_or("not a string");
            Some(if name.is_empty() {
                "http.param.name.non-empty"
            } else if name.chars().any(char::is_control) {
                "http.param.name.no-control"
            } else {
                "http.param.name.token"
            })
        }
        InvalidParamHeader::Repeated { .. } => Some("http.param.name.unique"),
        InvalidParamHeader::Kind { .. } => Some("http.param.type.primitive"),
        InvalidParamHeader::Unreachable { pointer } => Some(if pointer.starts_with("/$defs") {
            "http.param.path.static"
        } else {
            "http.param.path.no-composition"
        }),
        _ => None,
    }
}

pub(super) async fn no_secrets(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    require_annotations(tools.iter().any(is_annotated))?;
    for tool in tools {
        for param_header in find_param_headers(&tool["inputSchema"]).unwrap_or_default() {
            let name = param_header
                .path
                .last()
                .map(String::as_str)
                .unwrap_or_default();
            let plain = name.to_ascii_lowercase().replace('-', "_");
            if SECRET_WORDS.iter().any(|secret| plain.contains(secret)) {
                let observed = format!("`{name}` of {} is sent as a header", tool["name"]);
                return Err(NotPassed::violation(observed, tools.entries()));
            }
        }
    }
    Evidence::from_entries(tools.entries())
}

fn require_annotations(any: bool) -> Result<(), NotPassed> {
    if any {
        Ok(())
    } else {
        Err(NotPassed::not_applicable(
            "no tool has an argument with `x-mcp-header`",
        ))
    }
}

fn is_annotated(tool: &Value) -> bool {
    find_param_headers(&tool["inputSchema"]).is_ok_and(|annotations| !annotations.is_empty())
}

fn schemas(tools: &[Value]) -> impl Iterator<Item = (&str, &'static str, &Value)> {
    tools.iter().flat_map(|tool| {
        let name = tool["name"].as_str().unwrap_or_default();
        ["inputSchema", "outputSchema"].map(|field| (name, field, &tool[field]))
    })
}
