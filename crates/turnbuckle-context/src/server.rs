//! The builder of the context server.

use std::{sync::Arc, time::Duration};

use turnbuckle_server::{Server, Skills, http::UrlQuery, middleware::Timing};

use crate::{
    DataDir, OwnershipPolicy,
    app_state::{AppState, ServerConfig},
    embedding::Embedder,
    mcp::{
        call_log::{self, CallLog},
        prompts, resource_sync, resources,
        tool_schema::ToolSchema,
        tools,
    },
    memory::HalfLife,
    memory_store::MemoryStore,
};

/// Default quota of each owner in bytes, if there are several owners.
const DEFAULT_QUOTA_BYTES: u64 = 4 << 30;
/// The server's instructions for the model.
const INSTRUCTIONS: &str = "\
Persistent memory and repository search. project_path is the absolute path of the project.
- At the start: call checkpoint_search or checkpoint_list to see earlier work.
- To find code: call repository_search with words, names or a question.
- On an error: call remediation_search first; after fixing it, remediation_save.
- At milestones and before the context is full: call checkpoint_save.
- For reusable procedures: call skill_save; call skill_search before a task that may have one.
- If a memory is wrong: call memory_forget with its id, then save the right one.
Results are short: pass content_mode \"full\", or read the resource of an id, to get the full text.";

/// The tools that a context server lists.
///
/// Definitions of tools are part of every conversation of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolSet {
    /// All tools. A client gets the core tools if its URL has the query `tools=core`.
    #[default]
    All,
    /// Only memory and search, in at most 2,000 tokens, without the schemas of results.
    Core,
}

/// Builds a server with persistent memory and repository search.
///
/// ```
/// use turnbuckle_context::{ContextServer, DataDir, Owner, OwnershipPolicy};
///
/// let data_dir = DataDir::new("/var/lib/context");
/// let server = ContextServer::new(data_dir, OwnershipPolicy::Single(Owner::for_user("ada"))).build();
/// ```
#[must_use = "call `build` to get the server"]
pub struct ContextServer {
    data_dir: DataDir,
    owners: OwnershipPolicy,
    embedder: Option<Arc<dyn Embedder>>,
    half_life: HalfLife,
    first_index_timeout: Duration,
    call_timeout: Duration,
    index_timeout: Duration,
    quota: Option<u64>,
    tool_set: ToolSet,
    timing: Option<Timing>,
    memory: Option<Arc<dyn MemoryStore>>,
}

impl ContextServer {
    /// Creates a builder for a server on a data directory.
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
            tool_set: ToolSet::default(),
            timing: None,
            memory: None,
        }
    }

    /// Sets the embedding provider. Without one, searches use words only.
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Sets the decay of search scores by age.
    pub fn half_life(mut self, half_life: HalfLife) -> Self {
        self.half_life = half_life;
        self
    }

    /// Limits the time that a search may spend on the first index of a project; 5 seconds by default.
    ///
    /// If that is not enough, the result tells the caller to use `index_repository`.
    pub fn first_index_timeout(mut self, limit: Duration) -> Self {
        self.first_index_timeout = limit;
        self
    }

    /// Limits how long a call waits for a slot, and how long a search may then take; 30 seconds each by default.
    ///
    /// A call that takes longer is stopped with an error. Data saved before stays saved.
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.call_timeout = limit;
        self
    }

    /// Limits how long indexing may take; 30 minutes by default. If it is stopped, the previous index stays.
    pub fn index_timeout(mut self, limit: Duration) -> Self {
        self.index_timeout = limit;
        self
    }

    /// Limits the number of bytes that each owner may store; `None` is unlimited.
    ///
    /// The default is 4 GiB per owner with [`OwnershipPolicy::PerPrincipal`], and unlimited for a single owner. An owner who has
    /// reached the limit can read and delete data, but not add any.
    pub fn quota(mut self, bytes: Option<u64>) -> Self {
        self.quota = bytes;
        self
    }

    /// Selects the tools; all by default.
    pub fn tool_set(mut self, tool_set: ToolSet) -> Self {
        self.tool_set = tool_set;
        self
    }

    /// Reports the duration and outcome of every operation, also of those that are refused.
    ///
    /// A layer of the built server would not see a call with unknown arguments.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = Some(timing);
        self
    }

    /// Stores memory in this store instead of the data directory, which keeps the indexes of repositories.
    ///
    /// The quota counts the data of an owner in both.
    pub fn memory_store(mut self, store: Arc<dyn MemoryStore>) -> Self {
        self.memory = Some(store);
        self
    }

    /// Builds the server. Files are read and written on the first call.
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
                memory: self.memory,
            },
        );
        let is_core = self.tool_set == ToolSet::Core;
        let tools = tools::all(&state)
            .into_iter()
            .chain(tools::debug::all(&call_log));
        let tools: Vec<_> = tools
            .filter(|tool| !is_core || tools::core_definition(&mut tool.definition().clone()))
            .collect();
        let mut server = Server::new("turnbuckle", env!("CARGO_PKG_VERSION"))
            .title("Turnbuckle context server")
            .description("Persistent memory of work, fixes and skills, and repository search.")
            .instructions(INSTRUCTIONS)
            .validate_input_with::<ToolSchema>(true)
            .validate_output_with::<ToolSchema>(cfg!(debug_assertions));
        if let Some(timing) = self.timing {
            server = server.layer(timing);
        }
        server = server
            .layer(call_log.clone())
            .layer(resource_sync::ResourceSyncLayer::new(&state))
            .layer(tools::check_requested_set)
            .layer(tools::ArgumentCheck::new(&tools));
        if publishes_skills {
            // Skill resources are visible to every caller, so they are published only if there is a single owner.
            server = server.skills(Skills::new([]));
        }
        server = tools.into_iter().fold(server, Server::tool).tool_view(
            move |attached| {
                let query = attached.get::<UrlQuery>();
                is_core || query.and_then(|query| query.parameter("tools")) == Some("core")
            },
            tools::core_definition,
        );
        server = call_log::resources(&call_log)
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
            .field("data_dir", &self.data_dir)
            .field("owners", &self.owners)
            .finish_non_exhaustive()
    }
}
