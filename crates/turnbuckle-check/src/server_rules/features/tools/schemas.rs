//! The schemas of tools, and the marks in them.

use serde_json::Value;
use turnbuckle_protocol::codec::headers::{InvalidParamHeader, param_headers as find_marks};
use turnbuckle_schema::{SchemaError, SchemaValidator};

use crate::engine::{
    check_context::CheckContext,
    outcome::{Evidence, NotPassed, Outcome},
};

/// How a dialect is named that is not the newest.
const OLDER: &[&str] = &["draft-03", "draft-04", "draft-06", "draft-07", "2019-09"];

/// Words that tell a secret.
const SECRETS: &[&str] = &[
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
        // What takes too much work to check, or refers to something elsewhere, is not wrong for that.
        if let Err(SchemaError::Invalid { pointer, reason }) = SchemaValidator::lenient(schema) {
            // Patterns may look ahead and back, as those of JavaScript do; what reads them here cannot.
            if pointer.ends_with("/pattern") || reason.contains("\"regex\"") {
                continue;
            }
            let observed = format!("the `{field}` of `{name}` at `{pointer}`: {reason}");
            return Err(NotPassed::violation(observed, tools.entries()));
        }
    }
    Evidence::from_entries(tools.entries())
}

pub(super) async fn dialect(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let named = |schema: &Value| schema["$schema"].as_str().map(str::to_owned);
    let older: Vec<_> = schemas(tools)
        .filter_map(|(name, _, schema)| Some((name, named(schema)?)))
        .filter(|(_, dialect)| OLDER.iter().any(|older| dialect.contains(older)))
        .collect();
    match older.as_slice() {
        [] => Evidence::from_entries(tools.entries()),
        [(name, dialect)] => {
            let observed = format!("a schema of `{name}` is of the dialect {dialect}");
            Err(NotPassed::violation(observed, tools.entries()))
        }
        [(name, dialect), more @ ..] => {
            let observed = format!(
                "a schema of `{name}` is of the dialect {dialect}, and so are {} more",
                more.len()
            );
            Err(NotPassed::violation(observed, tools.entries()))
        }
    }
}

pub(super) async fn marks(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let mut any = false;
    for tool in tools {
        match find_marks(&tool["inputSchema"]) {
            // How many there may be is nobody's rule.
            Ok(_) | Err(InvalidParamHeader::TooMany) => {}
            Err(error) => {
                let observed = format!("in the input schema of {}, {error}", tool["name"]);
                return Err(NotPassed::violation(observed, tools.entries()));
            }
        }
        any |= is_marked(tool);
    }
    marked(any)?;
    Evidence::from_entries(tools.entries())
}

pub(super) async fn no_secrets(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    marked(tools.iter().any(is_marked))?;
    for tool in tools {
        for mark in find_marks(&tool["inputSchema"]).unwrap_or_default() {
            let name = mark.path.last().map(String::as_str).unwrap_or_default();
            let plain = name.to_ascii_lowercase().replace('-', "_");
            if SECRETS.iter().any(|secret| plain.contains(secret)) {
                let observed = format!("`{name}` of {} is repeated in a header", tool["name"]);
                return Err(NotPassed::violation(observed, tools.entries()));
            }
        }
    }
    Evidence::from_entries(tools.entries())
}

fn marked(any: bool) -> Result<(), NotPassed> {
    if any {
        Ok(())
    } else {
        Err(NotPassed::not_applicable(
            "no tool has an argument marked with `x-mcp-header`",
        ))
    }
}

fn is_marked(tool: &Value) -> bool {
    find_marks(&tool["inputSchema"]).is_ok_and(|marks| !marks.is_empty())
}

fn schemas(tools: &[Value]) -> impl Iterator<Item = (&str, &'static str, &Value)> {
    tools.iter().flat_map(|tool| {
        let name = tool["name"].as_str().unwrap_or_default();
        ["inputSchema", "outputSchema"].map(|field| (name, field, &tool[field]))
    })
}
