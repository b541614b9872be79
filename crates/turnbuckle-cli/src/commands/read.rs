//! `turnbuckle read`.

use std::path::PathBuf;

use turnbuckle_protocol::types::ResourceContents;

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::{content, plain, style};
use crate::session;
use crate::target::Words;

/// Read a resource
///
/// A terminal is shown text, and the size of everything else; a pipe or --output gets the exact bytes.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle read [OPTIONS] <TARGET> <URI>\n       turnbuckle read [OPTIONS] <URI> -- <COMMAND>..."
)]
pub(crate) struct Read {
    #[command(flatten)]
    target: TargetWord,
    /// The address of the resource
    uri: Option<String>,
    /// Write the bytes to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    program: Program,
}

impl Read {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let words = self.target.target.into_iter().chain(self.uri);
        let (target, mut words) = Words::split("read", words, &self.program.command)?;
        let uri = words.required("URI")?;
        words.end()?;
        let result = session::with(&target, context, async |client| {
            let call = session::patiently(client.read_resource(&uri), context);
            let hint = || {
                format!(
                    "list those that there are with `{}`",
                    target.command_line("resources", "")
                )
            };
            call.await
                .map_err(|error| Failure::from(error).or_hint(hint))
        });
        let result = result.await?;
        match &self.output {
            Some(file) => context.save(file, &bytes(&result.contents)?),
            None if context.options.json => context.json(&result),
            None if !context.environment.terminal.reads => context.bytes(&bytes(&result.contents)?),
            None => context.print(&shown(&result.contents)),
        }
    }
}

/// Returns contents for people; several have their addresses above them.
fn shown(contents: &[ResourceContents]) -> String {
    let one = |contents: &ResourceContents| content::of_contents(contents);
    match contents {
        [only] => one(only),
        several => several
            .iter()
            .map(|contents| {
                let uri = style::paint(style::NAME, &plain::line(contents.uri()));
                format!("{uri}\n{}", one(contents))
            })
            .collect(),
    }
}

/// Returns the bytes of all contents, one after the other.
fn bytes(contents: &[ResourceContents]) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for contents in contents {
        let bytes = content::bytes_of_contents(contents);
        all.extend(bytes.ok_or_else(|| {
            Failure::not_asked(format!("the bytes of `{}` are not Base64", contents.uri()))
        })?);
    }
    Ok(all)
}
