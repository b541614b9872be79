//! Skills: folders of instructions and files that a model reads when it needs them.
//!
//! The extension `io.modelcontextprotocol/skills`. A skill is a folder with a `SKILL.md`, whose head says what the skill
//! is called and when to use it. Its files are resources under `skill://`; three methods say which there are.

mod address;
mod error;
mod folder;
mod library;
mod media;
mod methods;
mod open;
mod shelf;
mod skill;
mod stamp;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

pub use error::SkillError;
pub use skill::Skill;

use crate::{CacheHint, Server, source::Source};
use library::Library;

/// Files that one skill may have, and bytes that they may have together: more than that, clients need not accept.
const MOST_FILES: usize = 512;
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// The skills of a server: those below some folders, and those given by hand.
///
/// ```no_run
/// use turnbuckle_server::{Server, Skills};
///
/// let server = Server::new("cook", "1.0.0").skills(Skills::folder("./skills"));
/// ```
///
/// Every folder with a `SKILL.md` is a skill, and everything below it belongs to it: `skills/drinks/tea/SKILL.md` is
/// `skill://drinks/tea/SKILL.md`, and its head says `name: tea`. Files that change are noticed. What is broken, has more
/// than 512 files or more than 16 MiB is left out, and the log says why. So are files whose name begins with a dot and
/// links that lead to other folders.
#[derive(Debug, Clone)]
pub struct Skills {
    folders: Vec<PathBuf>,
    skills: Vec<Skill>,
    look_every: Duration,
    cache: CacheHint,
}

impl Skills {
    /// The skills below a folder. It need not exist yet.
    pub fn folder(path: impl AsRef<Path>) -> Self {
        Self::of([]).and_folder(path)
    }

    /// Skills that are given by hand; none is fine, if more come [while the server runs](Server::add_skill).
    pub fn of(skills: impl IntoIterator<Item = Skill>) -> Self {
        Self {
            folders: Vec::new(),
            skills: skills.into_iter().collect(),
            look_every: Duration::from_secs(3),
            cache: CacheHint::NONE,
        }
    }

    /// Adds the skills below another folder. Where two have the same address, the first is served.
    #[must_use]
    pub fn and_folder(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        // The folder stays the same when the process moves to another.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.folders.push(path);
        self
    }

    /// Adds a skill.
    #[must_use]
    pub fn and(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// Looks for changes this often while clients are there who may want to be told. By default every three seconds.
    ///
    /// Whoever asks gets what is there now, or was a second ago at most, whatever is set here.
    #[must_use]
    pub fn look_every(mut self, period: Duration) -> Self {
        self.look_every = period.max(Duration::from_millis(10));
        self
    }

    /// Says for how long and by whom the contents of files may be kept. By default they are asked for anew each time.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
        self
    }
}

impl Server {
    /// Offers skills, in place of those of an earlier call. Folders are looked at before this returns.
    #[must_use]
    pub fn skills(self, skills: Skills) -> Self {
        let library = Arc::new(Library::open(skills));
        let extension = methods::extension(&library);
        self.extension(extension).register(|catalog| {
            catalog
                .sources
                .retain(|source| library_of(source).is_none());
            catalog.sources.push(library);
        })
    }

    /// Offers a skill from now on, while the server runs, and tells every client that wants to know.
    ///
    /// One with the same address is replaced.
    ///
    /// # Panics
    ///
    /// If the server was built without [`skills`](Self::skills): clients have been told what it can do.
    pub fn add_skill(&self, skill: Skill) {
        self.library().add(skill, self);
    }

    /// Offers a skill no longer that was given by hand; says whether there was one. Its address is that of its
    /// `SKILL.md`, as [`Skill::uri`] says it.
    ///
    /// # Panics
    ///
    /// As [`add_skill`](Self::add_skill).
    pub fn remove_skill(&self, uri: &str) -> bool {
        self.library().remove(uri, self)
    }

    /// Says whether skills can be added: whether the server was built with [`skills`](Self::skills).
    pub fn has_skills(&self) -> bool {
        self.catalog()
            .sources
            .iter()
            .any(|source| library_of(source).is_some())
    }

    fn library(&self) -> Arc<Library> {
        let catalog = self.catalog();
        let library = catalog.sources.iter().find_map(library_of);
        library.expect("a server that skills are added to is built with `Server::skills`")
    }
}

fn library_of(source: &Arc<dyn Source>) -> Option<Arc<Library>> {
    let source: Arc<dyn std::any::Any + Send + Sync> = source.clone();
    source.downcast().ok()
}
