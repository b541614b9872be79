//! `turnbuckle context`: what people do with the data of the context server.

mod export;
mod forget;
mod import;
mod stats;

use std::path::PathBuf;

use turnbuckle_context::transfer::Part;
use turnbuckle_context::{Library, Owner};

use super::serve;
use crate::context::Context;
use crate::failure::Result;
use crate::memory;

/// Take along, bring back, measure or forget what the context server remembers
///
/// Works on the files themselves; a server that runs meanwhile does not mind.
#[derive(Debug, clap::Args)]
pub(crate) struct Memory {
    /// The folder that everything is kept in, if it is not the usual one
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,

    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Export(export::Export),
    Import(import::Import),
    Stats(stats::Stats),
    Forget(forget::Forget),
}

impl Memory {
    pub(crate) fn run(self, context: &Context) -> Result {
        let folder = serve::data_folder(self.data, context)?;
        let shelf = Shelf {
            library: Library::new(folder),
            owner: memory::owner(&context.environment),
        };
        match self.action {
            Action::Export(action) => action.run(&shelf, context),
            Action::Import(action) => action.run(&shelf, context),
            Action::Stats(action) => action.run(&shelf, context),
            Action::Forget(action) => action.run(&shelf, context),
        }
    }
}

/// The user's data.
struct Shelf {
    library: Library,
    owner: Owner,
}

impl Shelf {
    /// Everything, or the project of a folder.
    fn part(&self, project: Option<&PathBuf>, context: &Context) -> Result<Part> {
        let Some(path) = project else {
            return Ok(Part::Everything);
        };
        let path = context.environment.cwd.join(path);
        let project = self.library.project(&self.owner, &path.to_string_lossy())?;
        Ok(Part::Project(project.id().to_owned()))
    }
}

/// A number of things.
fn count(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}
