//! `turnbuckle skills`.

use serde_json::json;
use turnbuckle_client::Client;
use turnbuckle_protocol::types::skills::{SkillEntry, SkillResources};

use crate::{
    cli::{CommandArg, TargetArg},
    connection,
    context::CommandContext,
    error::{CliError, Result},
    output::{content, sanitize, table::TextTable},
    target::{CliTarget, PositionalArgs},
};

/// List the skills of a server, or show one
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle skills [OPTIONS] <TARGET> [NAME]\n       turnbuckle skills [OPTIONS] [NAME] -- <COMMAND>..."
)]
pub(crate) struct SkillsCommand {
    #[command(flatten)]
    target: TargetArg,
    /// Show the instructions of this skill
    name: Option<String>,
    #[command(flatten)]
    program: CommandArg,
}

impl SkillsCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let args = self.target.target.into_iter().chain(self.name);
        let (target, mut args) = PositionalArgs::split("skills", args, &self.program.command)?;
        let name = args.optional();
        args.finish()?;
        connection::with_client(&target, context, async |client| {
            let skills = client.skills().all().await?;
            match &name {
                Some(name) => show(client, find(&skills, name, &target)?, context).await,
                None if context.options.json => context.print_json(&json!({ "skills": skills })),
                None => context.print(&table(&skills, context.width())),
            }
        })
        .await
    }
}

/// Shows the instructions of a skill, after checking them against the listed digest.
async fn show(client: &Client, entry: &SkillEntry, context: &CommandContext) -> Result {
    if context.options.json {
        return context.print_json(entry);
    }
    let skill = client.read_skill(entry).await?;
    if context.environment.terminal.stdout_is_terminal {
        context.print(&sanitize::block(skill.text()))
    } else {
        context.write_bytes(skill.text().as_bytes())
    }
}

fn find<'a>(skills: &'a [SkillEntry], name: &str, target: &CliTarget) -> Result<&'a SkillEntry> {
    let mut entries = skills.iter();
    let skill = entries.find(|skill| skill.name() == Some(name) || skill.uri == name);
    skill.ok_or_else(|| {
        let command = target.command_line("skills", "");
        CliError::negative_result(format!("unknown skill `{name}`"))
            .hint(format!("list the skills with `{command}`"))
    })
}

/// Returns skills as a table.
fn table(skills: &[SkillEntry], width: usize) -> String {
    let mut table = TextTable::new(&["skill", "files", "size", "description"]);
    for skill in skills {
        let (files, size) = match &skill.resources {
            SkillResources::Files(files) => {
                let size = files
                    .iter()
                    .map(|file| file.size)
                    .fold(0, u64::saturating_add);
                (files.len().to_string(), content::format_size(size))
            }
            _ => ("dynamic".to_owned(), String::new()),
        };
        table.row([
            sanitize::line(skill.name().unwrap_or(&skill.uri)),
            files,
            size,
            sanitize::first_line(skill.description().unwrap_or_default()),
        ]);
    }
    table.render(width)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnbuckle_protocol::types::skills::SkillResource;

    use super::*;
    use crate::output::style;

    #[test]
    fn skills_are_a_table() {
        let head = json!({"name": "release", "description": "How to release"});
        let files = vec![SkillResource::new(
            "skill://release/SKILL.md",
            "sha256:0",
            1500,
        )];
        let skills = [
            SkillEntry::new(
                "skill://release/SKILL.md",
                head.as_object().cloned().unwrap(),
                files,
            ),
            SkillEntry::new(
                "skill://x/SKILL.md",
                Default::default(),
                SkillResources::Dynamic,
            ),
        ];

        insta::assert_snapshot!(style::strip(&table(&skills, 80)), @r"
        skill               files    size    description
        release             1        1.5 kB  How to release
        skill://x/SKILL.md  dynamic
        ");
    }
}
