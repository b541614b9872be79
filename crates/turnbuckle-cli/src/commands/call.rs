//! `turnbuckle call`.

use std::{
    io,
    path::{Path, PathBuf},
};

use turnbuckle_client::{CallError, Client};
use turnbuckle_protocol::types::{CallToolResult, ContentBlock, JsonObject, Tool};

use super::tools;
use crate::{
    cli::{CommandArg, TargetArg},
    connection,
    context::CommandContext,
    error::{CliError, Result},
    output::content,
    target::{CliTarget, PositionalArgs},
    tool_args,
    tool_args::{ToolArgError, UnknownArguments},
    tool_pins::ToolPins,
};

/// Call a tool
///
/// KEY=VALUE is converted to the type in the tool's schema: `days=3` is a number if the schema has a number,
/// `tags=a,b` or `tags=a tags=b` a list. KEY:=JSON is sent as JSON: `days:=3`, `where:='{"lat": 60}'`. Both override
/// --args. An argument that the tool's schema does not have is an error, unless the schema allows others with
/// `additionalProperties`; --force sends it.
///
/// If a tool has changed since it was first used, its definition is shown and you are asked before it is called;
/// --yes approves it. Digests of tool definitions are stored in the state directory.
///
/// On a pipe, text is written unchanged, and a single image, audio or file as its bytes.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle call [OPTIONS] <TARGET> <TOOL> [KEY=VALUE | KEY:=JSON]...\n       turnbuckle call [OPTIONS] <TOOL> [KEY=VALUE | KEY:=JSON]... -- <COMMAND>..."
)]
pub(crate) struct CallCommand {
    #[command(flatten)]
    target: TargetArg,
    /// Name of the tool
    tool: Option<String>,
    /// Arguments of the tool
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// Pass arguments as JSON: an object, @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Send arguments that the tool's schema does not have
    #[arg(long)]
    force: bool,
    /// Write the bytes of the only content block to FILE
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) program: CommandArg,
}

impl CallCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let args = self
            .target
            .target
            .into_iter()
            .chain(self.tool)
            .chain(self.pairs);
        let (target, mut args) = PositionalArgs::split("call", args, &self.program.command)?;
        let tool = args.required("TOOL")?;
        let pairs = args.rest();
        let defaults = match &self.args {
            Some(text) => tool_args::read_args_object(text, &context.environment.cwd, io::stdin())
                .map_err(|error| CliError::could_not_run(error.to_string()))?,
            None => JsonObject::new(),
        };
        let unknown = if self.force {
            UnknownArguments::Send
        } else {
            UnknownArguments::Refuse
        };
        let outcome = connection::with_client(&target, context, async |client| {
            let pins = ToolPins::new(&target, context);
            let definition = tool_definition(client, &tool, &pins, &pairs).await?;
            if let Some(definition) = &definition {
                let shown = tools::full(definition, context.width());
                pins.ensure_approved(definition, &shown).await?;
            }
            let arguments = match &definition {
                None if pairs.is_empty() => defaults,
                None => return Err(tools::missing(&tool, &target)),
                Some(definition) => {
                    let schema = &definition.input_schema;
                    tool_args::tool_arguments(&pairs, defaults, schema, unknown)
                        .map_err(|error| argument_error(&error, &target, &tool))?
                }
            };
            let call = client.call_tool(&tool, arguments);
            Ok(connection::with_progress_and_timeout(call, context).await)
        });
        let output = self.output.as_deref();
        match outcome.await? {
            Ok(result) => show(&result, &target, &tool, output, context),
            Err(error) => {
                // The result is shown, although it does not match the output schema.
                if let CallError::InvalidOutput { output: result, .. } = &error {
                    show(result, &target, &tool, output, context)?;
                }
                let list = || format!("list the tools with `{}`", target.command_line("tools", ""));
                Err(CliError::from(error).or_hint(list))
            }
        }
    }
}

/// Fetches the current definition of a tool.
///
/// An error of `tools/list` is ignored, unless the definition is needed: for the types of arguments, or to compare it
/// with a stored one.
async fn tool_definition(
    client: &Client,
    name: &str,
    pins: &ToolPins<'_>,
    pairs: &[String],
) -> Result<Option<Tool>> {
    match find_tool(client, name).await {
        Err(_) if pairs.is_empty() && !pins.contains(name) => Ok(None),
        listed => Ok(listed?),
    }
}

pub(super) async fn find_tool(
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

fn argument_error(error: &ToolArgError, target: &CliTarget, tool: &str) -> CliError {
    let hint = arguments_hint(target, tool);
    CliError::could_not_run(error.to_string()).hint(match error {
        ToolArgError::Unknown { .. } => format!("{hint}; `--force` sends it anyway"),
        _ => hint,
    })
}

fn show(
    result: &CallToolResult,
    target: &CliTarget,
    tool: &str,
    output: Option<&Path>,
    context: &CommandContext,
) -> Result {
    if context.options.json {
        context.print_json(result)?;
    }
    if result.failed() {
        let message = content::content_blocks(&result.content);
        let failure = CliError::negative_result(format!("`{tool}` failed: {}", message.trim_end()));
        return Err(failure.hint(arguments_hint(target, tool)));
    }
    match output {
        Some(file) => context.write_file(file, &single_block_bytes(&result.content)?),
        None if context.options.json => Ok(()),
        None if !context.environment.terminal.stdout_is_terminal => {
            context.write_bytes(&content::call_result_bytes(result))
        }
        None => context.print(&content::call_result(result)),
    }
}

fn arguments_hint(target: &CliTarget, tool: &str) -> String {
    format!(
        "show its arguments with `{}`",
        target.command_line("tools", tool)
    )
}

fn single_block_bytes(blocks: &[ContentBlock]) -> Result<Vec<u8>> {
    let bytes = match blocks {
        [block] => content::block_bytes(block),
        _ => None,
    };
    bytes.ok_or_else(|| {
        let message = format!(
            "--output needs one content block with bytes; the result has {}",
            if blocks.len() == 1 {
                "one without bytes".to_owned()
            } else {
                blocks.len().to_string()
            }
        );
        CliError::could_not_run(message).hint("print the whole result with `--json`")
    })
}
