//! `turnbuckle call`.

use std::io;
use std::path::{Path, PathBuf};

use turnbuckle_client::{CallError, Client};
use turnbuckle_protocol::types::{CallToolResult, ContentBlock, JsonObject, Tool};

use super::tools;
use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::known_tools::KnownTools;
use crate::output::content;
use crate::pairs;
use crate::session;
use crate::target::{Target, Words};

/// Call a tool
///
/// KEY=VALUE is typed by the schema of the tool: `days=3` is a number where it asks for one, `tags=a,b` or
/// `tags=a tags=b` a list. KEY:=JSON is taken as it is: `days:=3`, `where:='{"lat": 60}'`. Both win over
/// what --args says.
///
/// A tool that has changed since it was first seen is shown, and asked for, before it is called; with --yes, or once you
/// agreed, it counts as known. What the tools of a server looked like is kept in the user's state folder.
///
/// A pipe gets text as it is, and a single picture, sound or file as its bytes.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle call [OPTIONS] <TARGET> <TOOL> [KEY=VALUE | KEY:=JSON]...\n       turnbuckle call [OPTIONS] <TOOL> [KEY=VALUE | KEY:=JSON]... -- <COMMAND>..."
)]
pub(crate) struct Call {
    #[command(flatten)]
    target: TargetWord,
    /// The tool
    tool: Option<String>,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// Arguments as one JSON object: the JSON itself, @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Write the bytes of the result to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) program: Program,
}

impl Call {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let words = self
            .target
            .target
            .into_iter()
            .chain(self.tool)
            .chain(self.pairs);
        let (target, mut words) = Words::split("call", words, &self.program.command)?;
        let tool = words.required("TOOL")?;
        let pairs = words.rest();
        let below = match &self.args {
            Some(text) => pairs::read_object(text, &context.environment.cwd, io::stdin())
                .map_err(|error| Failure::not_asked(error.to_string()))?,
            None => JsonObject::new(),
        };
        let outcome = session::with(&target, context, async |client| {
            let known = KnownTools::of(&target, context);
            let definition = definition(client, &tool, &known, &pairs).await?;
            if let Some(definition) = &definition {
                let shown = tools::full(definition, context.width());
                known.ensure(definition, &shown).await?;
            }
            let arguments = arguments(definition.as_ref(), &target, &tool, &pairs, below)?;
            let call = client.call_tool(&tool, arguments);
            Ok(session::patiently(call, context).await)
        });
        let output = self.output.as_deref();
        match outcome.await? {
            Ok(result) => show(&result, &target, &tool, output, context),
            Err(error) => {
                // What came is worth seeing, although it is not what was promised.
                if let CallError::InvalidOutput { output: result, .. } = &error {
                    show(result, &target, &tool, output, context)?;
                }
                let list = || format!("list the tools with `{}`", target.command_line("tools", ""));
                Err(Failure::from(error).or_hint(list))
            }
        }
    }
}

/// Looks a tool up, in one more request: what it says now may not be what the user knows.
///
/// A server without a list is only an obstacle if something depends on it: the types of arguments, or whether a tool
/// that was seen before is still the same.
async fn definition(
    client: &Client,
    name: &str,
    known: &KnownTools<'_>,
    pairs: &[String],
) -> Result<Option<Tool>> {
    match listed(client, name).await {
        Err(_) if pairs.is_empty() && !known.knows(name) => Ok(None),
        listed => Ok(listed?),
    }
}

pub(super) async fn listed(
    client: &Client,
    name: &str,
) -> std::result::Result<Option<Tool>, CallError> {
    let mut tools = client.tools();
    while let Some(tool) = tools.next().await {
        let tool = tool?;
        if tool.name == name {
            return Ok(Some(tool));
        }
    }
    Ok(None)
}

/// Makes the arguments; pairs are typed by the schema of the tool.
fn arguments(
    definition: Option<&Tool>,
    target: &Target,
    tool: &str,
    pairs: &[String],
    below: JsonObject,
) -> Result<JsonObject> {
    if pairs.is_empty() {
        return Ok(below);
    }
    let definition = definition.ok_or_else(|| tools::missing(tool, target))?;
    pairs::arguments(pairs, below, &definition.input_schema)
        .map_err(|error| Failure::not_asked(error.to_string()).hint(hint(target, tool)))
}

fn show(
    result: &CallToolResult,
    target: &Target,
    tool: &str,
    output: Option<&Path>,
    context: &Context,
) -> Result {
    if context.options.json {
        context.json(result)?;
    }
    if result.failed() {
        let told = content::of_blocks(&result.content);
        let failure = Failure::refused(format!("`{tool}` failed: {}", told.trim_end()));
        return Err(failure.hint(hint(target, tool)));
    }
    match output {
        Some(file) => context.save(file, &only_bytes(&result.content)?),
        None if context.options.json => Ok(()),
        None if !context.environment.terminal.reads => {
            context.bytes(&content::of_call_exact(result))
        }
        None => context.print(&content::of_call(result)),
    }
}

fn hint(target: &Target, tool: &str) -> String {
    format!(
        "show its arguments with `{}`",
        target.command_line("tools", tool)
    )
}

fn only_bytes(blocks: &[ContentBlock]) -> Result<Vec<u8>> {
    let bytes = match blocks {
        [block] => content::bytes_of_block(block),
        _ => None,
    };
    bytes.ok_or_else(|| {
        let message = format!(
            "the result has no bytes to write, but {} blocks",
            blocks.len()
        );
        Failure::not_asked(message).hint("see all of it with `--json`")
    })
}
