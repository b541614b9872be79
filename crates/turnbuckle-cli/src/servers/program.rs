//! Which file a configured command runs.

use std::path::{Path, PathBuf};

use super::{Server, Start};
use crate::environment::{Environment, Platform};

impl Start {
    /// Returns the absolute path of the program, looked up as it would be for the child: a path from the folder that the
    /// child is started in, a name in the child's `PATH`. `None` if no file of that name is there.
    pub(super) fn find_program(
        &self,
        server: &Server,
        environment: &Environment,
    ) -> Option<PathBuf> {
        let folder = self.folder(server);
        let program = Path::new(&self.program);
        // Without `.` in the middle, which only makes it harder to read.
        let tidy = |path: PathBuf| path.components().collect::<PathBuf>();
        if program.components().count() > 1 {
            return Some(tidy(folder.join(program)));
        }
        let path = self.search_path(environment)?;
        // An entry that is relative or empty is meant from the child's folder, too.
        let folders = std::env::split_paths(path).map(|entry| folder.join(entry));
        let mut files = folders.flat_map(|entry| candidates(&entry.join(program)));
        files.find(|file| is_program(file)).map(tidy)
    }

    /// Returns the `PATH` of the child: its own, or else the user's.
    fn search_path<'a>(&'a self, environment: &'a Environment) -> Option<&'a str> {
        let users = environment.vars.iter();
        let mut users = users.filter(|(name, _)| is_path(name, environment));
        let users = users.next().map(|(_, value)| value.as_str());
        self.own_search_path(environment).or(users)
    }

    /// Returns the `PATH` that the definition sets.
    pub(super) fn own_search_path(&self, environment: &Environment) -> Option<&str> {
        let own = self.variables();
        let own = own.filter(|(name, _)| is_path(name, environment));
        own.last().map(|(_, value)| value)
    }
}

fn is_path(name: &str, environment: &Environment) -> bool {
    match environment.platform {
        Platform::Windows => name.eq_ignore_ascii_case("PATH"),
        Platform::Linux | Platform::MacOs => name == "PATH",
    }
}

#[cfg(unix)]
fn candidates(file: &Path) -> [PathBuf; 1] {
    [file.to_owned()]
}

/// A name without ending means the program, as for the system.
#[cfg(not(unix))]
fn candidates(file: &Path) -> [PathBuf; 1] {
    match file.extension() {
        Some(_) => [file.to_owned()],
        None => [file.with_extension("exe")],
    }
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    let metadata = std::fs::metadata(file);
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}
