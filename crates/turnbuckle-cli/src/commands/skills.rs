//! `turnbuckle skills`.

use serde_json::json;
use turnbuckle_client::Client;
use turnbuckle_protocol::types::skills::{SkillEntry, SkillResources};

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::table::Table;
use crate::output::{content, plain};
use crate::session;
use crate::target::{Target, Words};

/// List the skills of a server, or show the instructions of one
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle skills [OPTIONS] <TARGET> [NAME]\n       turnbuckle skills [OPTIONS] [NAME] -- <COMMAND>..."
)]
pub(crate) struct Skills {
    #[command(flatten)]
    target: TargetWord,
    /// Show the instructions of this skill
    name: Option<String>,
    #[command(flatten)]
    program: Program,
}

impl Skills {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let words = self.target.target.into_iter().chain(self.name);
        let (target, mut words) = Words::split("skills", words, &self.program.command)?;
        let name = words.optional();
        words.end()?;
        session::with(&target, context, async |client| {
            let skills = client.skills().all().await?;
            match &name {
                Some(name) => show(client, find(&skills, name, &target)?, context).await,
                None if context.options.json => context.json(&json!({ "skills": skills })),
                None => context.print(&table(&skills, context.width())),
            }
        })
        .await
    }
}

/// Shows the instructions of a skill, which are checked against what was listed.
async fn show(client: &Client, entry: &SkillEntry, context: &Context) -> Result {
    if context.options.json {
        return context.json(entry);
    }
    let skill = client.read_skill(entry).await?;
    match context.environment.terminal.reads {
        true => context.print(&plain::block(skill.text())),
        false => context.bytes(skill.text().as_bytes()),
    }
}

fn find<'a>(skills: &'a [SkillEntry], name: &str, target: &Target) -> Result<&'a SkillEntry> {
    let mut known = skills.iter();
    let skill = known.find(|skill| skill.name() == Some(name) || skill.uri == name);
    skill.ok_or_else(|| {
        let command = target.command_line("skills", "");
        Failure::refused(format!("there is no skill `{name}`"))
            .hint(format!("list those that there are with `{command}`"))
    })
}

/// Returns skills as a table.
fn table(skills: &[SkillEntry], width: usize) -> String {
    let mut table = Table::new(&["skill", "files", "size", "description"]);
    for skill in skills {
        let (files, size) = match &skill.resources {
            SkillResources::Files(files) => {
                let size = files
                    .iter()
                    .map(|file| file.size)
                    .fold(0, u64::saturating_add);
                (files.len().to_string(), content::size(size))
            }
            _ => ("dynamic".to_owned(), String::new()),
        };
        table.row([
            plain::line(skill.name().unwrap_or(&skill.uri)),
            files,
            size,
            plain::first_line(skill.description().unwrap_or_default()),
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

        insta::assert_snapshot!(style::without(&table(&skills, 80)), @r"
        skill               files    size    description
        release             1        1.5 kB  How to release
        skill://x/SKILL.md  dynamic
        ");
    }
}
