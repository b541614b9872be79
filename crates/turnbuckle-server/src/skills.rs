//! Skills: folders of instructions and files that a model reads on demand.
//!
//! The extension `io.modelcontextprotocol/skills`. A skill is a folder with a `SKILL.md`. The frontmatter contains
//! the name of the skill and when to use it. Its files are resources under `skill://`; three methods list them.

mod index;
mod methods;
mod open;
mod scan;
mod skill;
mod snapshot;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use index::SkillIndex;
pub use skill::{Skill, SkillError};

use crate::{CacheHint, Server, resources::ResourceProvider};

/// Maximum number of files and total bytes of one skill. Clients need not accept more.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The skills of a server: from folders, and added in code.
///
/// ```no_run
/// use turnbuckle_server::{Server, Skills};
///
/// let server = Server::new("cook", "1.0.0").skills(Skills::from_folder("./skills"));
/// ```
///
/// Every folder with a `SKILL.md` is a skill and includes everything below it: `skills/drinks/tea/SKILL.md` becomes
/// `skill://drinks/tea/SKILL.md`, with `name: tea` in its frontmatter. Changes of files are detected. Invalid skills
/// and those with more than 512 files or 16 MiB are left out, with a warning. Files with a name that starts with a dot and
/// links to other folders are ignored.
#[derive(Debug, Clone)]
pub struct Skills {
    folders: Vec<PathBuf>,
    skills: Vec<Skill>,
    refresh_interval: Duration,
    cache: CacheHint,
}

impl Skills {
    /// Creates the skills of a folder. It need not exist yet.
    pub fn from_folder(path: impl AsRef<Path>) -> Self {
        Self::new([]).folder(path)
    }

    /// Creates skills from code. The list may be empty, to add skills [while the server runs](Server::add_skill).
    pub fn new(skills: impl IntoIterator<Item = Skill>) -> Self {
        Self {
            folders: Vec::new(),
            skills: skills.into_iter().collect(),
            refresh_interval: Duration::from_secs(3),
            cache: CacheHint::NONE,
        }
    }

    /// Adds the skills of another folder. Of two skills with the same URI, the first is served.
    #[must_use]
    pub fn folder(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        // Made absolute, so that a change of the working directory has no effect.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.folders.push(path);
        self
    }

    /// Adds a skill.
    #[must_use]
    pub fn skill(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// Sets how often folders are scanned for changes while clients are connected. Three seconds by default.
    ///
    /// Requests always see a state that is at most one second old.
    #[must_use]
    pub fn refresh_interval(mut self, period: Duration) -> Self {
        self.refresh_interval = period.max(Duration::from_millis(10));
        self
    }

    /// Sets the cache hint of file contents. Not cached by default.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
        self
    }
}

impl Server {
    /// Serves skills. Replaces those of an earlier call. Folders are scanned before this returns.
    #[must_use]
    pub fn skills(self, skills: Skills) -> Self {
        let index = Arc::new(SkillIndex::open(skills));
        let extension = methods::extension(&index);
        self.extension(extension).register(|catalog| {
            catalog
                .providers
                .retain(|source| skill_index(source).is_none());
            catalog.providers.push(index);
        })
    }

    /// Adds a skill while the server runs, and notifies clients.
    ///
    /// A skill with the same URI is replaced.
    ///
    /// # Panics
    ///
    /// If the server was built without [`skills`](Self::skills): the capabilities are already known to clients.
    pub fn add_skill(&self, skill: Skill) {
        self.index().add(skill, self);
    }

    /// Removes a skill that was added in code. Returns whether it existed. `uri` is that of its `SKILL.md`; see
    /// [`Skill::uri`].
    ///
    /// # Panics
    ///
    /// As [`add_skill`](Self::add_skill).
    pub fn remove_skill(&self, uri: &str) -> bool {
        self.index().remove(uri, self)
    }

    /// Returns whether the server was built with [`skills`](Self::skills), so that skills can be added.
    pub fn has_skills(&self) -> bool {
        self.catalog()
            .providers
            .iter()
            .any(|source| skill_index(source).is_some())
    }

    fn index(&self) -> Arc<SkillIndex> {
        let catalog = self.catalog();
        let index = catalog.providers.iter().find_map(skill_index);
        index.expect("a server that skills are added to is built with `Server::skills`")
    }
}

fn skill_index(source: &Arc<dyn ResourceProvider>) -> Option<Arc<SkillIndex>> {
    let source: Arc<dyn std::any::Any + Send + Sync> = source.clone();
    source.downcast().ok()
}
