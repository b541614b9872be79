//! `turnbuckle resources`.

use serde_json::json;
use turnbuckle_protocol::types::{Resource, ResourceTemplate};

use crate::{
    cli::{CommandArg, TargetArg},
    connection,
    context::CommandContext,
    error::Result,
    output::{content, sanitize, table::TextTable},
    target::PositionalArgs,
};

/// List the resources and resource templates of a server
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle resources [OPTIONS] <TARGET>\n       turnbuckle resources [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct ResourcesCommand {
    #[command(flatten)]
    target: TargetArg,
    #[command(flatten)]
    program: CommandArg,
}

impl ResourcesCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let (target, args) =
            PositionalArgs::split("resources", self.target.target, &self.program.command)?;
        args.finish()?;
        let lists = connection::with_client(&target, context, async |client| {
            let resources = client.resources().all().await?;
            // Some servers have resources and return an error for templates.
            let templates = client.resource_templates().all().await;
            let templates = match templates {
                Err(error) if error.rpc().is_some() => Vec::new(),
                templates => templates?,
            };
            Ok((resources, templates))
        });
        let (resources, templates) = lists.await?;
        if context.options.json {
            context.print_json(&json!({
                "resources": resources,
                "resourceTemplates": templates,
            }))
        } else {
            context.print_list(
                "resources",
                &tables(&resources, &templates, context.width()),
            )
        }
    }
}

/// Returns resources and templates as tables.
fn tables(resources: &[Resource], templates: &[ResourceTemplate], width: usize) -> String {
    let mut parts = Vec::new();
    if !resources.is_empty() {
        let mut table = TextTable::new(&["resource", "type", "size", "description"]);
        for resource in resources {
            let description = resource
                .description
                .as_deref()
                .or(resource.title.as_deref());
            table.row([
                sanitize::line(&resource.uri),
                sanitize::line(resource.mime_type.as_deref().unwrap_or_default()),
                resource.size.map(content::format_size).unwrap_or_default(),
                sanitize::first_line(description.unwrap_or(&resource.name)),
            ]);
        }
        parts.push(table.render(width));
    }
    if !templates.is_empty() {
        let mut table = TextTable::new(&["template", "type", "description"]);
        for template in templates {
            let description = template
                .description
                .as_deref()
                .or(template.title.as_deref());
            table.row([
                sanitize::line(&template.uri_template),
                sanitize::line(template.mime_type.as_deref().unwrap_or_default()),
                sanitize::first_line(description.unwrap_or(&template.name)),
            ]);
        }
        parts.push(table.render(width));
    }
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::style;

    #[test]
    fn resources_and_templates_are_tables() {
        let resources = [
            Resource::new("note://1", "first")
                .mime_type("text/plain")
                .size(1200u64),
            Resource::new("note://2\u{1b}", "second").description("The second note\nand more"),
        ];
        let templates = [ResourceTemplate::new("note://{id}", "notes").description("Any note")];

        insta::assert_snapshot!(style::strip(&tables(&resources, &templates, 80)), @r"
        resource        type        size    description
        note://1        text/plain  1.2 kB  first
        note://2\u{1b}                      The second note

        template     type  description
        note://{id}        Any note
        ");
    }
}
