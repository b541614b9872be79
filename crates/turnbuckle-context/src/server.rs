//! The context server, put together.

use std::sync::Arc;
use std::time::Duration;

use turnbuckle_server::{Server, Skills};

use crate::desk::{Desk, Habits};
use crate::embedding::Embedder;
use crate::memory::HalfLife;
use crate::{Library, Owners, Trace, debug_log_resources, prompts, published, resources, tools};

/// What each of several owners may keep, in bytes.
const QUOTA: u64 = 4 << 30;
/// What a model is told about the server before it uses it.
const INSTRUCTIONS: &str = "\
Memory that outlives this conversation, and search in repositories. project_path is the absolute path of the project.
- Begin: checkpoint_search or checkpoint_list for what was done before.
- To find code: repository_search with words, names or a question.
- On an error: remediation_search first; when it is solved, remediation_save.
- At milestones and before the context runs out: checkpoint_save.
- A procedure worth keeping: skill_save; skill_search before a task that may have one.
Answers are short: content_mode \"full\" or the resource of an id shows all of it.";

/// A server that remembers, and knows its way around repositories.
///
/// ```
/// use turnbuckle_context::{ContextServer, Library, Owner, Owners};
///
/// let library = Library::new("/var/lib/context");
/// let server = ContextServer::new(library, Owners::One(Owner::user("ada"))).build();
/// ```
#[must_use = "it serves nothing before it is built"]
pub struct ContextServer {
    library: Library,
    owners: Owners,
    embedder: Option<Arc<dyn Embedder>>,
    half_life: HalfLife,
    first_index: Duration,
    deadline: Duration,
    index_deadline: Duration,
    quota: Option<u64>,
}

impl ContextServer {
    /// Serves what is kept in a library, to its owners.
    pub fn new(library: Library, owners: Owners) -> Self {
        let quota = match owners {
            Owners::One(_) => None,
            Owners::ByPrincipal => Some(QUOTA),
        };
        Self {
            library,
            owners,
            embedder: None,
            half_life: HalfLife::default(),
            first_index: Duration::from_secs(5),
            deadline: Duration::from_secs(30),
            index_deadline: Duration::from_secs(30 * 60),
            quota,
        }
    }

    /// Lets embeddings take part in searches. By default there are none, and words alone decide.
    pub fn embeddings(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Says how fast what is remembered loses weight by its age.
    pub fn half_life(mut self, half_life: HalfLife) -> Self {
        self.half_life = half_life;
        self
    }

    /// Limits how long a search may take to index a project that nobody has indexed; by default five seconds.
    ///
    /// What takes longer is left to `index_repository`, which the answer asks for.
    pub fn first_index(mut self, limit: Duration) -> Self {
        self.first_index = limit;
        self
    }

    /// Limits how long a call waits for its turn, and how long a search then takes; by default thirty seconds each.
    ///
    /// What takes longer is stopped, and the answer says so. What a caller has saved by then is saved.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = limit;
        self
    }

    /// Limits how long indexing takes; by default half an hour. An index that is stopped is as it was before.
    pub fn index_deadline(mut self, limit: Duration) -> Self {
        self.index_deadline = limit;
        self
    }

    /// Limits how many bytes each owner may keep, or lets everyone keep what the disk has room for.
    ///
    /// By default it is 4 GiB for each caller where there are several, and there is no limit for one person. Who has
    /// reached it can read and delete, and add nothing.
    pub fn quota(mut self, bytes: Option<u64>) -> Self {
        self.quota = bytes;
        self
    }

    /// Puts the server together. Nothing is read or written before somebody asks.
    pub fn build(self) -> Server {
        let publishes_skills = matches!(self.owners, Owners::One(_));
        let trace = Trace::new(self.owners.clone());
        let desk = Desk::new(
            self.library,
            self.owners,
            Habits {
                embedder: self.embedder,
                half_life: self.half_life,
                first_index: self.first_index,
                deadline: self.deadline,
                index_deadline: self.index_deadline,
                quota: self.quota,
            },
        );
        let mut server = Server::new("turnbuckle", env!("CARGO_PKG_VERSION"))
            .title("Turnbuckle context server")
            .description("Remembers work, fixes and skills, and finds its way in repositories.")
            .instructions(INSTRUCTIONS)
            .layer(trace.clone())
            .layer(published::Layer::new(&desk));
        if publishes_skills {
            // Their resources are open to everyone who reaches the server, which is one person.
            server = server.skills(Skills::of([]));
        }
        server = tools::all(&desk)
            .into_iter()
            .chain(tools::debug::all(&trace))
            .fold(server, Server::tool);
        server = debug_log_resources(&trace)
            .into_iter()
            .fold(server, Server::resource);
        server = resources::templates(&desk)
            .into_iter()
            .fold(server, Server::template);
        prompts::all(&desk).into_iter().fold(server, Server::prompt)
    }
}

impl std::fmt::Debug for ContextServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextServer")
            .field("library", &self.library)
            .field("owners", &self.owners)
            .finish_non_exhaustive()
    }
}
