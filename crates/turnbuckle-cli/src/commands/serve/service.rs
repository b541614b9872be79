//! `--install-service` and `--uninstall-service`: a definition for the service manager of the user.
//!
//! A systemd user unit on Linux, a launchd agent on macOS, a scheduled task on Windows. The command only writes or
//! removes the file and prints the commands that start and stop the service; it does not run them. The crate
//! `service-manager` was not used: it runs the commands itself, and pulls in an XML writer and a program search for
//! three templates.

mod launchd;
mod scheduled_task;
mod systemd;
#[cfg(test)]
mod tests;

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    context::CommandContext,
    environment::{Environment, Platform},
    error::{CliError, Result},
    output::sanitize,
};

/// The text by which a file is recognized as written by this command. A comment in XML must not contain `--`.
const MARKER: &str = "Written by `turnbuckle serve` (option install-service)";

/// The options of the service.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Service")]
pub(super) struct ServiceFlags {
    /// Write a service that runs with the other options
    ///
    /// A systemd user unit on Linux, a launchd agent on macOS, a scheduled task on Windows. Prints the file, and the
    /// commands that start and stop the service.
    #[arg(long, conflicts_with = "stdio")]
    install_service: bool,

    /// Remove the service that --install-service wrote
    #[arg(long, conflicts_with_all = ["stdio", "install_service"])]
    uninstall_service: bool,

    /// Print what would be written or removed
    #[arg(long)]
    dry_run: bool,
}

/// What to do with the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceAction {
    /// Write its file.
    Install,
    /// Remove its file.
    Uninstall,
}

impl ServiceFlags {
    /// Returns the requested action, if there is one.
    pub(super) fn action(&self) -> Result<Option<ServiceAction>> {
        match (self.install_service, self.uninstall_service) {
            (true, _) => Ok(Some(ServiceAction::Install)),
            (_, true) => Ok(Some(ServiceAction::Uninstall)),
            _ if self.dry_run => Err(CliError::could_not_run(
                "--dry-run needs --install-service or --uninstall-service",
            )),
            _ => Ok(None),
        }
    }

    /// Runs the action, and prints what it did.
    pub(super) fn run(&self, action: ServiceAction, context: &CommandContext) -> Result {
        let service = Service::new(&context.environment, &ServiceProgram::current()?)?;
        let text = match action {
            ServiceAction::Install => service.install(self.dry_run)?,
            ServiceAction::Uninstall => service.uninstall(self.dry_run)?,
        };
        context.print(&sanitize::block(&text))
    }
}

/// The program of the service, with its arguments.
#[derive(Debug)]
struct ServiceProgram {
    path: PathBuf,
    arguments: Vec<String>,
}

impl ServiceProgram {
    /// Returns this process, without the options that manage the service.
    fn current() -> Result<Self> {
        let words = std::env::args_os().skip(1).map(|word| {
            word.into_string().map_err(|word| {
                let word = word.display();
                CliError::could_not_run(format!(
                    "`{word}` is not Unicode, so a service cannot have it"
                ))
            })
        });
        let words = words.collect::<Result<Vec<_>>>()?;
        let path = std::env::current_exe().map_err(|error| {
            CliError::could_not_run(format!("cannot find this program: {error}"))
        })?;
        let is_kept = |word: &String| {
            !["--install-service", "--uninstall-service", "--dry-run"].contains(&word.as_str())
        };
        Ok(Self {
            path,
            arguments: words.into_iter().filter(is_kept).collect(),
        })
    }

    /// Returns the program and its arguments.
    fn words(&self) -> Vec<String> {
        let path = self.path.display().to_string();
        [path].into_iter().chain(self.arguments.clone()).collect()
    }
}

/// The file of the service, and the commands for it.
#[derive(Debug)]
struct Service {
    file: PathBuf,
    definition: String,
    /// What a command does, and the command.
    commands: Vec<(&'static str, String)>,
    /// The commands before the file is removed.
    removal: Vec<(&'static str, String)>,
}

impl Service {
    fn new(environment: &Environment, program: &ServiceProgram) -> Result<Self> {
        let service = match environment.platform {
            Platform::Linux => systemd::service(environment, program),
            Platform::MacOs => launchd::service(environment, program),
            Platform::Windows => scheduled_task::service(environment, program),
        };
        service
            .ok_or_else(|| CliError::could_not_run("the home directory of the user is not known"))
    }

    fn install(&self, dry_run: bool) -> Result<String> {
        let file = &self.file;
        self.check_file()?;
        if !dry_run {
            let folder = file.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(file, &self.definition))
                .map_err(|error| self.error("write", &error))?;
        }
        let verb = if dry_run { "Would write" } else { "Wrote" };
        let mut text = format!("{verb} {}:\n\n", file.display());
        for line in self.definition.lines() {
            let indented = format!("  {line}");
            let _ = writeln!(text, "{}", indented.trim_end());
        }
        text.push('\n');
        write_commands(&mut text, &self.commands);
        Ok(text)
    }

    fn uninstall(&self, dry_run: bool) -> Result<String> {
        if !self.check_file()? {
            let file = self.file.display();
            return Err(CliError::negative_result(format!("{file} does not exist")));
        }
        if !dry_run {
            fs::remove_file(&self.file).map_err(|error| self.error("remove", &error))?;
        }
        let verb = if dry_run { "Would remove" } else { "Removed" };
        let mut text = format!("{verb} {}.\n\n", self.file.display());
        write_commands(&mut text, &self.removal);
        Ok(text)
    }

    /// Returns whether the file exists, or an error if another program wrote it.
    fn check_file(&self) -> Result<bool> {
        match fs::read(&self.file) {
            Ok(bytes) if contains(&bytes, MARKER) => Ok(true),
            Ok(_) => {
                let file = self.file.display();
                let message = format!("{file} exists, and `turnbuckle` did not write it");
                Err(CliError::could_not_run(message)
                    .hint("move it away, then run this command again"))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.error("read", &error)),
        }
    }

    fn error(&self, verb: &str, error: &io::Error) -> CliError {
        CliError::could_not_run(format!("cannot {verb} {}: {error}", self.file.display()))
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

fn write_commands(text: &mut String, commands: &[(&str, String)]) {
    let width = commands.iter().map(|(label, _)| label.len()).max();
    let width = width.unwrap_or_default();
    for (label, command) in commands {
        let _ = writeln!(text, "{label:<width$}  {command}");
    }
}

fn xml_text(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
