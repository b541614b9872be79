//! `turnbuckle tools`.

use serde_json::json;
use turnbuckle_protocol::types::{Tool, ToolAnnotations};

use crate::{
    cli::{CommandArg, TargetArg},
    connection,
    context::CommandContext,
    error::{CliError, Result},
    output::{
        sanitize,
        signature::{self, TypeText},
        style,
        table::TextTable,
        wrap,
    },
    target::{CliTarget, PositionalArgs},
    tool_pins::ToolPins,
};

/// List the tools of a server, or show one in full
///
/// Each tool is shown as a function with its arguments and result.
///
/// Tools that have changed since they were first seen are reported once on stderr; --yes approves them.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle tools [OPTIONS] <TARGET> [NAME]\n       turnbuckle tools [OPTIONS] [NAME] -- <COMMAND>..."
)]
pub(crate) struct ToolsCommand {
    #[command(flatten)]
    target: TargetArg,
    /// Show this tool in full
    name: Option<String>,
    #[command(flatten)]
    program: CommandArg,
}

impl ToolsCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let args = self.target.target.into_iter().chain(self.name);
        let (target, mut args) = PositionalArgs::split("tools", args, &self.program.command)?;
        let name = args.optional();
        args.finish()?;
        let tools = connection::with_client(&target, context, async |client| {
            Ok(client.tools().all().await?)
        });
        let tools = tools.await?;
        ToolPins::new(&target, context).report_changes(&tools);
        let Some(name) = name else {
            return if context.options.json {
                context.print_json(&json!({ "tools": tools }))
            } else {
                context.print_list("tools", &list(&tools, context.width()))
            };
        };
        let tool = find(&tools, &name, &target)?;
        if context.options.json {
            context.print_json(tool)
        } else {
            context.print(&full(tool, context.width()))
        }
    }
}

/// Finds a tool by name; the error has the command that lists the tools.
fn find<'a>(tools: &'a [Tool], name: &str, target: &CliTarget) -> Result<&'a Tool> {
    let tool = tools.iter().find(|tool| tool.name == name);
    tool.ok_or_else(|| missing(name, target))
}

/// Returns the error for an unknown tool.
pub(super) fn missing(name: &str, target: &CliTarget) -> CliError {
    let command = target.command_line("tools", "");
    CliError::negative_result(format!("unknown tool `{name}`"))
        .hint(format!("list the tools with `{command}`"))
}

/// Returns tools as signatures, each with the first line of its description.
fn list(tools: &[Tool], width: usize) -> String {
    let mut text = String::new();
    for tool in tools {
        text += &format!("{}{}\n", signature::for_tool(tool, width), hints(tool));
        let description = tool.description.as_deref().or(tool.title.as_deref());
        if let Some(description) = description {
            text += &wrap::indented(&sanitize::first_line(description), 4, width);
        }
    }
    text
}

/// Returns the full description of a tool.
pub(super) fn full(tool: &Tool, width: usize) -> String {
    let mut text = format!("{}{}\n", signature::for_tool(tool, width), hints(tool));
    let title = tool.title.as_ref().map(|title| sanitize::line(title));
    let description = tool.description.as_ref().map(|text| sanitize::block(text));
    for paragraph in [title, description].into_iter().flatten() {
        text += &format!("\n{}", wrap::indented(paragraph.trim(), 0, width));
    }
    text + &arguments(tool, width)
}

fn arguments(tool: &Tool, width: usize) -> String {
    let types = TypeText::new(&tool.input_schema);
    let mut table = TextTable::new(&["argument", "type", "description"]);
    let mut parameters = signature::parameters(&tool.input_schema).peekable();
    if parameters.peek().is_none() {
        return String::new();
    }
    for parameter in parameters {
        let suffix = if parameter.required { "" } else { "?" };
        table.row([
            format!("{}{suffix}", sanitize::line(parameter.name)),
            types.value(parameter.schema) + &parameter.default(),
            sanitize::block(parameter.description()),
        ]);
    }
    format!("\n{}", table.render(width))
}

/// Returns the annotations of a tool, which are not verified.
fn hints(tool: &Tool) -> String {
    let Some(annotations) = &tool.annotations else {
        return String::new();
    };
    let ToolAnnotations {
        read_only_hint,
        destructive_hint,
        idempotent_hint,
        open_world_hint,
        ..
    } = annotations;
    let hints = [
        (read_only_hint, "read-only"),
        (destructive_hint, "destructive"),
        (idempotent_hint, "idempotent"),
        (open_world_hint, "open world"),
    ];
    let names = hints.iter().filter(|(hint, _)| **hint == Some(true));
    let names: Vec<_> = names.map(|(_, word)| *word).collect();
    if names.is_empty() {
        String::new()
    } else {
        style::styled(style::DIM, &format!("  [{}]", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> Vec<Tool> {
        let schema = json!({
            "properties": {
                "city": {"type": "string", "description": "City name, for example \"Oslo\"."},
                "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 3, "description": "Days ahead."},
            },
            "required": ["city"],
        });
        let forecast = Tool::new("forecast", schema.as_object().cloned().unwrap())
            .title("Weather forecast")
            .description("Says what the weather will be like.\n\nOnly for European cities.\u{7}")
            .annotations(
                ToolAnnotations::new()
                    .read_only_hint(true)
                    .open_world_hint(true),
            );
        vec![forecast, Tool::new("reset", Default::default())]
    }

    #[test]
    fn a_list_shows_signatures() {
        insta::assert_snapshot!(style::strip(&list(&tools(), 80)), @r"
        forecast(city: string, days?: integer 1..7 = 3)  [read-only, open world]
            Says what the weather will be like.
        reset()
        ");
    }

    #[test]
    fn one_tool_is_shown_in_full() {
        insta::assert_snapshot!(style::strip(&full(&tools()[0], 80)), @r#"
        forecast(city: string, days?: integer 1..7 = 3)  [read-only, open world]

        Weather forecast

        Says what the weather will be like.

        Only for European cities.\u{7}

        argument  type              description
        city      string            City name, for example "Oslo".
        days?     integer 1..7 = 3  Days ahead.
        "#);
    }
}
