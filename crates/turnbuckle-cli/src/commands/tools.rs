//! `turnbuckle tools`.

use serde_json::json;
use turnbuckle_protocol::types::{Tool, ToolAnnotations};

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::known_tools::KnownTools;
use crate::output::signature::{self, Kinds};
use crate::output::table::Table;
use crate::output::{plain, style, wrap};
use crate::session;
use crate::target::{Target, Words};

/// List the tools of a server, or show one in full
///
/// Each tool is shown as a function: what it takes, and what it gives back.
///
/// Tools that have changed since they were first seen are named on stderr, once; --yes agrees to them as they are.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle tools [OPTIONS] <TARGET> [NAME]\n       turnbuckle tools [OPTIONS] [NAME] -- <COMMAND>..."
)]
pub(crate) struct Tools {
    #[command(flatten)]
    target: TargetWord,
    /// Show this tool in full
    name: Option<String>,
    #[command(flatten)]
    program: Program,
}

impl Tools {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let words = self.target.target.into_iter().chain(self.name);
        let (target, mut words) = Words::split("tools", words, &self.program.command)?;
        let name = words.optional();
        words.end()?;
        let tools = session::with(&target, context, async |client| {
            Ok(client.tools().all().await?)
        });
        let tools = tools.await?;
        KnownTools::of(&target, context).look_at(&tools);
        let Some(name) = name else {
            return match context.options.json {
                true => context.json(&json!({ "tools": tools })),
                false => context.print_list("tools", &list(&tools, context.width())),
            };
        };
        let tool = find(&tools, &name, &target)?;
        match context.options.json {
            true => context.json(tool),
            false => context.print(&full(tool, context.width())),
        }
    }
}

/// Finds a tool by name; who asks for another one learns where the names are.
fn find<'a>(tools: &'a [Tool], name: &str, target: &Target) -> Result<&'a Tool> {
    let tool = tools.iter().find(|tool| tool.name == name);
    tool.ok_or_else(|| missing(name, target))
}

/// There is no such tool.
pub(super) fn missing(name: &str, target: &Target) -> Failure {
    let command = target.command_line("tools", "");
    Failure::refused(format!("there is no tool `{name}`"))
        .hint(format!("list those that there are with `{command}`"))
}

/// Returns tools as signatures, each with the first line of its description.
fn list(tools: &[Tool], width: usize) -> String {
    let mut text = String::new();
    for tool in tools {
        text += &format!("{}{}\n", signature::of_tool(tool, width), hints(tool));
        let description = tool.description.as_deref().or(tool.title.as_deref());
        if let Some(description) = description {
            text += &wrap::indented(&plain::first_line(description), 4, width);
        }
    }
    text
}

/// Returns everything about a tool.
pub(super) fn full(tool: &Tool, width: usize) -> String {
    let mut text = format!("{}{}\n", signature::of_tool(tool, width), hints(tool));
    let title = tool.title.as_ref().map(|title| plain::line(title));
    let description = tool.description.as_ref().map(|text| plain::block(text));
    for paragraph in [title, description].into_iter().flatten() {
        text += &format!("\n{}", wrap::indented(paragraph.trim(), 0, width));
    }
    text + &arguments(tool, width)
}

fn arguments(tool: &Tool, width: usize) -> String {
    let kinds = Kinds::of(&tool.input_schema);
    let mut table = Table::new(&["argument", "type", "description"]);
    let mut parameters = signature::parameters(&tool.input_schema).peekable();
    if parameters.peek().is_none() {
        return String::new();
    }
    for parameter in parameters {
        let mark = if parameter.required { "" } else { "?" };
        table.row([
            format!("{}{mark}", plain::line(parameter.name)),
            kinds.of_value(parameter.schema) + &parameter.default(),
            plain::block(parameter.description()),
        ]);
    }
    format!("\n{}", table.render(width))
}

/// Returns what a tool says about itself, which nobody has checked.
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
    let said = hints.iter().filter(|(hint, _)| **hint == Some(true));
    let said: Vec<_> = said.map(|(_, word)| *word).collect();
    match said.is_empty() {
        true => String::new(),
        false => style::paint(style::DIM, &format!("  [{}]", said.join(", "))),
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
        insta::assert_snapshot!(style::without(&list(&tools(), 80)), @r"
        forecast(city: string, days?: integer 1..7 = 3)  [read-only, open world]
            Says what the weather will be like.
        reset()
        ");
    }

    #[test]
    fn one_tool_is_shown_in_full() {
        insta::assert_snapshot!(style::without(&full(&tools()[0], 80)), @r#"
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
