//! `turnbuckle skills`.

use turnbuckle_protocol::types::skills::{SkillEntry, SkillResources};

use crate::arguments::{Program, TargetWord};
use crate::output::table::Table;
use crate::output::{content, plain};

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
    pub(crate) async fn run(self, context: &crate::context::Context) -> crate::failure::Result {
        let _ = (self.target, self.name, self.program, context);
        Ok(())
    }
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
