//! `turnbuckle read`.

use std::path::PathBuf;

use turnbuckle_protocol::types::ResourceContents;

use crate::{
    cli::{CommandArg, TargetArg},
    connection,
    context::CommandContext,
    error::{CliError, Result},
    output::{content, sanitize, style},
    target::PositionalArgs,
};

/// Read a resource
///
/// A terminal shows text, and the size of other content; a pipe or --output gets the raw bytes.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle read [OPTIONS] <TARGET> <URI>\n       turnbuckle read [OPTIONS] <URI> -- <COMMAND>..."
)]
pub(crate) struct ReadCommand {
    #[command(flatten)]
    target: TargetArg,
    /// URI of the resource
    uri: Option<String>,
    /// Write the raw bytes to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    program: CommandArg,
}

impl ReadCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let args = self.target.target.into_iter().chain(self.uri);
        let (target, mut args) = PositionalArgs::split("read", args, &self.program.command)?;
        let uri = args.required("URI")?;
        args.finish()?;
        let result = connection::with_client(&target, context, async |client| {
            let call = connection::with_progress_and_timeout(client.read_resource(&uri), context);
            let hint = || {
                format!(
                    "list the resources with `{}`",
                    target.command_line("resources", "")
                )
            };
            call.await
                .map_err(|error| CliError::from(error).or_hint(hint))
        });
        let result = result.await?;
        match &self.output {
            Some(file) => context.write_file(file, &bytes(&result.contents)?),
            None if context.options.json => context.print_json(&result),
            None if !context.environment.terminal.stdout_is_terminal => {
                context.write_bytes(&bytes(&result.contents)?)
            }
            None => context.print(&render(&result.contents)),
        }
    }
}

/// Returns contents for people; if there are several, each has its URI above it.
fn render(contents: &[ResourceContents]) -> String {
    let one = |contents: &ResourceContents| content::resource_contents(contents);
    match contents {
        [only] => one(only),
        several => several
            .iter()
            .map(|contents| {
                let uri = style::styled(style::NAME, &sanitize::line(contents.uri()));
                format!("{uri}\n{}", one(contents))
            })
            .collect(),
    }
}

/// Returns the concatenated bytes of all contents.
fn bytes(contents: &[ResourceContents]) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for contents in contents {
        let bytes = content::contents_bytes(contents);
        all.extend(bytes.ok_or_else(|| {
            CliError::could_not_run(format!(
                "the content of `{}` is not valid Base64",
                contents.uri()
            ))
        })?);
    }
    Ok(all)
}
