//! The context server, put together.

use std::{sync::Arc, time::Duration};

use turnbuckle_server::{Server, Skills};

use crate::{
    CallLog, DataDir, OwnershipPolicy,
    app_state::{AppState, ServerConfig},
    debug_log_resources,
    embedding::Embedder,
    mcp::{prompts, resource_sync, resources, tools},
    memory::HalfLife,
};

/// What each of several owners may keep, in bytes.
const DEFAULT_QUOTA_BYTES: u64 = 4 << 30;
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
/// use turnbuckle_context::{ContextServer, DataDir, Owner, OwnershipPolicy};
///
/// let library = DataDir::new("/var/lib/context");
/// let server = ContextServer::new(library, OwnershipPolicy::Single(Owner::for_user("ada"))).build();
/// ```
#[must_use = "it serves nothing before it is built"]
pub struct ContextServer {
    data_dir: DataDir,
    owners: OwnershipPolicy,
    embedder: Option<Arc<dyn Embedder>>,
    half_life: HalfLife,
    first_index_timeout: Duration,
    call_timeout: Duration,
    index_timeout: Duration,
    quota: Option<u64>,
}

impl ContextServer {
    /// Serves what is kept in a library, to its owners.
    pub fn new(data_dir: DataDir, owners: OwnershipPolicy) -> Self {
        let quota = match owners {
            OwnershipPolicy::Single(_) => None,
            OwnershipPolicy::PerPrincipal => Some(DEFAULT_QUOTA_BYTES),
        };
        Self {
            data_dir,
            owners,
            embedder: None,
            half_life: HalfLife::default(),
            first_index_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(30),
            index_timeout: Duration::from_secs(30 * 60),
            quota,
        }
    }

    /// Lets embeddings take part in searches. By default there are none, and words alone decide.
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
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
    pub fn first_index_timeout(mut self, limit: Duration) -> Self {
        self.first_index_timeout = limit;
        self
    }

    /// Limits how long a call waits for its turn, and how long a search then takes; by default thirty seconds each.
    ///
    /// What takes longer is stopped, and the answer says so. What a caller has saved by then is saved.
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.call_timeout = limit;
        self
    }

    /// Limits how long indexing takes; by default half an hour. An index that is stopped is as it was before.
    pub fn index_timeout(mut self, limit: Duration) -> Self {
        self.index_timeout = limit;
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
        let publishes_skills = matches!(self.owners, OwnershipPolicy::Single(_));
        let call_log = CallLog::new(self.owners.clone());
        let state = AppState::new(
            self.data_dir,
            self.owners,
            ServerConfig {
                embedder: self.embedder,
                half_life: self.half_life,
                first_index_timeout: self.first_index_timeout,
                call_timeout: self.call_timeout,
                index_timeout: self.index_timeout,
                quota: self.quota,
            },
        );
        let mut server = Server::new("turnbuckle", env!("CARGO_PKG_VERSION"))
            .title("Turnbuckle context server")
            .description("Remembers work, fixes and skills, and finds its way in repositories.")
            .instructions(INSTRUCTIONS)
            .validate_input(true)
            .validate_output(cfg!(debug_assertions))
            .layer(call_log.clone())
            .layer(resource_sync::ResourceSyncLayer::new(&state));
        if publishes_skills {
            // Their resources are open to everyone who reaches the server, which is one person.
            server = server.skills(Skills::new([]));
        }
        server = tools::all(&state)
            .into_iter()
            .chain(tools::debug::all(&call_log))
            .fold(server, Server::tool);
        server = debug_log_resources(&call_log)
            .into_iter()
            .fold(server, Server::resource);
        server = resources::templates(&state)
            .into_iter()
            .fold(server, Server::template);
        prompts::all(&state)
            .into_iter()
            .fold(server, Server::prompt)
    }
}

impl std::fmt::Debug for ContextServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextServer")
            .field("library", &self.data_dir)
            .field("owners", &self.owners)
            .finish_non_exhaustive()
    }
}
