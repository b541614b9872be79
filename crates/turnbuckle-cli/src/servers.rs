//! Servers in the configurations that people already have.
//!
//! [`places`] knows which files there are, [`owner`] whose they are, [`read`] what is in them, [`entry`] what a server looks
//! like, [`expand`] what its variables stand for, and [`program`] which file a command runs. Nothing is changed, and nothing is expanded before a server is used.

mod entry;
mod expand;
mod owner;
mod places;
mod program;
mod read;
mod source;

use std::path::{Path, PathBuf};

pub(crate) use entry::{Entry, Remote, Start};
pub(crate) use source::{Scope, Source};

use crate::environment::Environment;

/// Everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The servers; of two with the same name, the one that counts comes first.
    pub(crate) servers: Vec<Server>,
    /// What could not be read, and where.
    pub(crate) warnings: Vec<String>,
}

/// A server of a configuration.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Its name there.
    pub(crate) name: String,
    /// Whose configuration it is.
    pub(crate) source: Source,
    /// Who wrote it.
    pub(crate) scope: Scope,
    /// The file it stands in.
    pub(crate) file: PathBuf,
    /// The folder of the project that the file belongs to; where we are for a file of the user.
    pub(crate) folder: PathBuf,
    /// How to reach it, as it stands there.
    pub(crate) entry: Entry,
}

/// Looks for servers: in one file, or in all places that are known.
pub(crate) fn find(environment: &Environment, given: Option<&Path>) -> Found {
    let places = match given {
        Some(file) => places::given(environment, file),
        None => places::all(environment),
    };
    let mut reader = read::Reader::new(environment.user_id);
    for place in &places {
        reader.read(place);
    }
    reader.found
}

impl Found {
    /// Returns the server that a name means: `name`, or `name@source` for one that is hidden by another.
    pub(crate) fn pick(&self, name: &str) -> Option<&Server> {
        let named = |name: &str, source: Option<&str>| {
            let mut servers = self.servers.iter();
            servers.find(|server| {
                server.name == name && source.is_none_or(|source| server.source.id() == source)
            })
        };
        // Names may have an `@` of their own; but a project does not take the name of a server of the user by one.
        let whole = named(name, None);
        let with_source = || {
            let (name, source) = name.rsplit_once('@')?;
            named(name, Some(source))
        };
        match whole {
            Some(server) if server.scope == Scope::User => whole,
            Some(_) => with_source()
                .filter(|server| server.scope == Scope::User)
                .or(whole),
            None => with_source(),
        }
    }

    /// Says whether another server of the same name comes before this one.
    pub(crate) fn is_hidden(&self, server: &Server) -> bool {
        self.pick(&server.name)
            .is_some_and(|first| !std::ptr::eq(first, server))
    }
}

#[cfg(test)]
pub(crate) mod tests;
