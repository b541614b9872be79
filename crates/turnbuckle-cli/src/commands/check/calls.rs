//! Calls that the user allows: `--call TOOL ARGS`.

use serde_json::Value;
use turnbuckle_client::Client;
use turnbuckle_protocol::types::JsonObject;

use crate::commands::call;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::pairs;
use crate::session;
use crate::target::Target;

/// A call as it stands on the command line.
#[derive(Debug, Default, PartialEq)]
struct Wanted {
    tool: String,
    below: JsonObject,
    pairs: Vec<String>,
}

/// Returns the calls; the server is asked only if arguments are to be typed by the schemas of its tools.
pub(super) async fn prepare(
    words: &[String],
    target: &Target,
    context: &Context,
) -> Result<Vec<(String, Value)>> {
    let wanted = wanted(words)?;
    if wanted.iter().all(|call| call.pairs.is_empty()) {
        let call = |call: Wanted| (call.tool, Value::Object(call.below));
        return Ok(wanted.into_iter().map(call).collect());
    }
    session::with(target, context, async |client| {
        let mut calls = Vec::new();
        for call in wanted {
            calls.push(typed(call, client, target).await?);
        }
        Ok(calls)
    })
    .await
}

async fn typed(call: Wanted, client: &Client, target: &Target) -> Result<(String, Value)> {
    let tool = call::listed(client, &call.tool).await?;
    // The answer that was asked for is not this one.
    let missing = || {
        let list = target.command_line("tools", "");
        Failure::not_asked(format!("there is no tool `{}`", call.tool))
            .hint(format!("list those that there are with `{list}`"))
    };
    let tool = tool.ok_or_else(missing)?;
    let arguments = pairs::arguments(&call.pairs, call.below, &tool.input_schema)
        .map_err(|error| Failure::not_asked(error.to_string()))?;
    Ok((call.tool, Value::Object(arguments)))
}

/// Tells the calls apart: each begins with a name, and what has a `=` or begins with a brace belongs to it.
fn wanted(words: &[String]) -> Result<Vec<Wanted>> {
    let mut calls: Vec<Wanted> = Vec::new();
    for word in words {
        let is_object = word.starts_with('{');
        match calls.last_mut() {
            Some(call) if is_object => call.below = object(word)?,
            Some(call) if word.contains('=') && !word.contains("://") => {
                call.pairs.push(word.clone());
            }
            _ if word.contains("://") || word.starts_with("unix:") => {
                let message = format!("`{word}` is taken for a tool to call");
                return Err(Failure::not_asked(message).hint("TARGET stands before --call"));
            }
            _ if is_object || word.contains('=') => {
                let message = format!("`{word}` belongs to no tool");
                return Err(Failure::not_asked(message).hint("write it as --call TOOL ARGS"));
            }
            _ => calls.push(Wanted {
                tool: word.clone(),
                ..Wanted::default()
            }),
        }
    }
    Ok(calls)
}

fn object(word: &str) -> Result<JsonObject> {
    serde_json::from_str(word).map_err(|error| {
        Failure::not_asked(format!(
            "the arguments of a call are no JSON object: {error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::style;

    fn calls(words: &[&str]) -> Result<Vec<Wanted>> {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        wanted(&words)
    }

    #[test]
    fn calls_are_told_apart() {
        let calls = calls(&[
            "forecast",
            "city=Oslo",
            "days:=3",
            "add",
            r#"{"a": 1}"#,
            "list",
        ]);

        let calls = calls.unwrap();
        assert_eq!(calls.len(), 3);
        assert_eq!(calls[0].pairs, ["city=Oslo", "days:=3"]);
        assert_eq!(calls[1].below["a"], 1);
        assert_eq!((&*calls[2].tool, calls[2].pairs.len()), ("list", 0));
    }

    #[test]
    fn a_target_at_the_wrong_place_is_no_tool() {
        let failure = |words: &[&str]| style::without(&calls(words).unwrap_err().render());

        insta::assert_snapshot!(failure(&["forecast", "city=Oslo", "https://a.example/mcp"]), @r"
        error: `https://a.example/mcp` is taken for a tool to call

        hint: TARGET stands before --call
        ");
        insta::assert_snapshot!(failure(&["city=Oslo"]), @r"
        error: `city=Oslo` belongs to no tool

        hint: write it as --call TOOL ARGS
        ");
        insta::assert_snapshot!(failure(&["add", "{"]), @"error: the arguments of a call are no JSON object: EOF while parsing an object at line 1 column 1");
    }
}
