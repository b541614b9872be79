//! `turnbuckle context`: manages the data of the context server.

mod export;
mod forget;
mod import;

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use turnbuckle_context::{
    ContextError, DataDir, Owner,
    transfer::{self, DataLocation, DataSelection, DatabaseStats},
};
use turnbuckle_text::error_chain;

use super::{
    database::{Database, DatabaseFlags},
    serve,
};
use crate::{
    context::CommandContext,
    environment::Environment,
    error::{CliError, Result},
    output::{sanitize, table::TextTable},
};

/// Export, import, inspect or delete context server data
///
/// Works on the data files, or on the database of --database; a running server does not have to be stopped.
#[derive(Debug, clap::Args)]
pub(crate) struct ContextCommand {
    /// Use this data directory
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,

    #[command(flatten)]
    database: DatabaseFlags,

    #[command(subcommand)]
    action: ContextSubcommand,
}

#[derive(Debug, clap::Subcommand)]
enum ContextSubcommand {
    Export(export::ExportCommand),
    Import(import::ImportCommand),
    Stats(StatsCommand),
    Forget(forget::ForgetCommand),
}

impl ContextCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let (folder, database) = serve::data_source(self.data, self.database, context)?;
        let data = OwnedData {
            library: DataDir::new(folder),
            database: database.map(|url| url.open(context)).transpose()?,
            owner: owner(&context.environment),
        };
        match self.action {
            ContextSubcommand::Export(action) => action.run(&data, context),
            ContextSubcommand::Import(action) => action.run(&data, context),
            ContextSubcommand::Stats(action) => action.run(&data, context),
            ContextSubcommand::Forget(action) => action.run(&data, context),
        }
    }
}

/// The data directory and the owner of the data in it.
struct OwnedData {
    library: DataDir,
    /// The database of memory; `None` if it is in the data directory.
    database: Option<Database>,
    owner: Owner,
}

impl OwnedData {
    /// Returns where the data is.
    fn location(&self) -> DataLocation<'_> {
        match &self.database {
            Some(database) => DataLocation::with_memory(&self.library, &*database.store),
            None => DataLocation::from(&self.library),
        }
    }

    /// Returns the selection of all data, or for the project of a directory.
    fn selection(
        &self,
        project: Option<&PathBuf>,
        context: &CommandContext,
    ) -> Result<DataSelection> {
        let Some(path) = project else {
            return Ok(DataSelection::Everything);
        };
        let path = project_path(path, context);
        let project = self.library.project(&self.owner, &path)?;
        Ok(DataSelection::Project(project.id().to_owned()))
    }
}

/// Returns the path of a project: `project:` and a key as it is, and a directory as an absolute path.
fn project_path(path: &Path, context: &CommandContext) -> String {
    let text = path.to_string_lossy();
    if text.starts_with("project:") {
        return text.into_owned();
    }
    let path = context.environment.cwd.join(path);
    path.to_string_lossy().into_owned()
}

/// Returns a count with its noun.
fn pluralize(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

/// Returns the data directory: the named one, or else the user's.
pub(super) fn data_dir(named: Option<PathBuf>, environment: &Environment) -> Result<PathBuf> {
    let default = || Some(environment.data_dir()?.join("turnbuckle"));
    named.or_else(default).ok_or_else(|| {
        CliError::could_not_run("the data directory is unknown").hint("set one with --data DIR")
    })
}

/// Returns the owner of the user's data.
pub(super) fn owner(environment: &Environment) -> Owner {
    Owner::for_user(&environment.user)
}

/// Show the amount of data of each project
#[derive(Debug, clap::Args)]
struct StatsCommand {}

impl StatsCommand {
    fn run(&self, data: &OwnedData, context: &CommandContext) -> Result {
        let stats = transfer::stats(data.location(), &data.owner)?;
        if context.options.json {
            return context.print_json(&stats);
        }
        for damaged in &stats.damaged {
            context.ui.print(&format!("{}\n", sanitize::line(damaged)));
        }
        if stats.databases.is_empty() {
            context.ui.print("no data yet\n");
            return Ok(());
        }
        let head = [
            "project",
            "checkpoints",
            "remediations",
            "skills",
            "files",
            "size",
            "last saved",
        ];
        let mut table = TextTable::new(&head);
        for database in &stats.databases {
            table.row(row(database));
        }
        context.print(&table.render(context.width()))
    }
}

fn row(database: &DatabaseStats) -> [String; 7] {
    let items = |kind: &str| database.items.get(kind).copied().unwrap_or(0).to_string();
    let root = database.root.as_deref().or(database.project.as_deref());
    [
        sanitize::line(root.unwrap_or("(all projects)")),
        items("checkpoint"),
        items("remediation"),
        items("skill"),
        database.files.to_string(),
        size(database.bytes),
        database.newest.map_or_else(String::new, time),
    ]
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

fn time(milliseconds: i64) -> String {
    let since = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
    let time = humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + since).to_string();
    // To the minute.
    time.get(..16)
        .map_or(time.clone(), |minute| minute.replace('T', " "))
}

impl From<ContextError> for CliError {
    fn from(error: ContextError) -> Self {
        let message = error_chain(&error);
        match error {
            ContextError::InvalidRequest(_) | ContextError::NotFound(_) => {
                Self::negative_result(message)
            }
            _ => Self::could_not_run(message),
        }
    }
}
