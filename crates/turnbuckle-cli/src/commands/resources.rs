//! `turnbuckle resources`.

use serde_json::json;
use turnbuckle_protocol::types::{Resource, ResourceTemplate};

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::Result;
use crate::output::table::Table;
use crate::output::{content, plain};
use crate::session;
use crate::target::Words;

/// List the resources of a server, and the templates of their addresses
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle resources [OPTIONS] <TARGET>\n       turnbuckle resources [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct Resources {
    #[command(flatten)]
    target: TargetWord,
    #[command(flatten)]
    program: Program,
}

impl Resources {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let (target, words) = Words::split("resources", self.target.target, &self.program.command)?;
        words.end()?;
        let lists = session::with(&target, context, async |client| {
            let resources = client.resources().all().await?;
            // Some servers know resources and no templates, and say so only when they are asked.
            let templates = client.resource_templates().all().await;
            let templates = match templates {
                Err(error) if error.rpc().is_some() => Vec::new(),
                templates => templates?,
            };
            Ok((resources, templates))
        });
        let (resources, templates) = lists.await?;
        match context.options.json {
            true => context.json(&json!({
                "resources": resources,
                "resourceTemplates": templates,
            })),
            false => context.print_list(
                "resources",
                &tables(&resources, &templates, context.width()),
            ),
        }
    }
}

/// Returns resources and templates as tables.
fn tables(resources: &[Resource], templates: &[ResourceTemplate], width: usize) -> String {
    let mut parts = Vec::new();
    if !resources.is_empty() {
        let mut table = Table::new(&["resource", "type", "size", "description"]);
        for resource in resources {
            let told = resource
                .description
                .as_deref()
                .or(resource.title.as_deref());
            table.row([
                plain::line(&resource.uri),
                plain::line(resource.mime_type.as_deref().unwrap_or_default()),
                resource.size.map(content::size).unwrap_or_default(),
                plain::first_line(told.unwrap_or(&resource.name)),
            ]);
        }
        parts.push(table.render(width));
    }
    if !templates.is_empty() {
        let mut table = Table::new(&["template", "type", "description"]);
        for template in templates {
            let told = template
                .description
                .as_deref()
                .or(template.title.as_deref());
            table.row([
                plain::line(&template.uri_template),
                plain::line(template.mime_type.as_deref().unwrap_or_default()),
                plain::first_line(told.unwrap_or(&template.name)),
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

        insta::assert_snapshot!(style::without(&tables(&resources, &templates, 80)), @r"
        resource        type        size    description
        note://1        text/plain  1.2 kB  first
        note://2\u{1b}                      The second note

        template     type  description
        note://{id}        Any note
        ");
    }
}
