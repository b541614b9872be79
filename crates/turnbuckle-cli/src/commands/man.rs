//! `turnbuckle man`.

use crate::{cli::Cli, context::CommandContext, error::Result};

/// Print the manual page
///
/// All commands are on one page: turnbuckle man | man -l -
#[derive(Debug, clap::Args)]
pub(crate) struct ManCommand {}

impl ManCommand {
    pub(crate) fn run(&self, context: &CommandContext) -> Result {
        context.write_bytes(&page()?)
    }
}

/// Returns one page for all commands, so that it can be read without being installed.
fn page() -> Result<Vec<u8>> {
    let mut command = Cli::definition().disable_help_subcommand(true);
    command.build();
    let main = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    main.render_title(&mut page)?;
    main.render_name_section(&mut page)?;
    main.render_synopsis_section(&mut page)?;
    page.extend(description(&command).bytes());
    main.render_options_section(&mut page)?;
    for command in command.get_subcommands() {
        page.extend(format!(".SH \"{}\"\n", command.get_name().to_uppercase()).bytes());
        page.extend(section(command)?);
    }
    main.render_extra_section(&mut page)?;
    Ok(page)
}

/// Keeps the line breaks of the description.
fn description(command: &clap::Command) -> String {
    let about = command.get_long_about().map(ToString::to_string);
    format!(
        ".SH DESCRIPTION\n.nf\n{}\n.fi\n",
        escaped(&about.unwrap_or_default())
    )
}

/// Returns the section of one command, with its own options only.
fn section(command: &clap::Command) -> Result<Vec<u8>> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").lines().map(str::trim);
    let usage = usage.collect::<Vec<_>>().join("\n");
    let about = command.get_long_about().or(command.get_about());
    let mut text = format!(".nf\n{}\n.fi\n.PP\n", escaped(&usage));
    text += &escaped(&about.map(ToString::to_string).unwrap_or_default());
    text.push('\n');
    for argument in command
        .get_arguments()
        .filter(|argument| !argument.is_global_set())
    {
        let names = argument.get_value_names().unwrap_or_default();
        let names: Vec<_> = names.iter().map(AsRef::<str>::as_ref).collect();
        let label = match argument.get_long() {
            Some("help") => continue,
            Some(long) => format!("--{long} {}", names.join(" ")),
            None => names.join(" "),
        };
        let help = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        text += &format!(".TP\n\\fB{}\\fR\n{}\n", escaped(&label), escaped(&help));
    }
    Ok(text.into_bytes())
}

/// Escapes text for roff.
fn escaped(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace('\\', "\\\\").replace('-', "\\-");
        if line.starts_with(['.', '\'']) {
            format!("\\&{line}")
        } else {
            line
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_section_for_every_command() {
        let page = String::from_utf8(page().unwrap()).unwrap();

        for command in Cli::definition().get_subcommands() {
            let head = format!(".SH \"{}\"", command.get_name().to_uppercase());
            assert!(page.contains(&head), "{head}");
        }
        assert!(page.contains("\\-\\-args"), "{page}");
    }
}
