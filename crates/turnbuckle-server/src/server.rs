//! The server builder.

#[cfg(feature = "validation")]
mod bounded_validation;
mod changes;
mod composition;
pub(crate) mod extension;
pub(crate) mod instance;
mod mount;
pub mod relay;
mod state;
mod validation;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use composition::CatalogComposition;
pub use mount::MountError;
use relay::Relay;
pub(crate) use state::SharedState;
use turnbuckle_protocol::{
    Meta, RpcError,
    types::{
        Icon, Implementation, ListCapability, ResourcesCapability, ServerCapabilities,
        Tool as ToolDefinition, tasks::EXTENSION,
    },
};
use turnbuckle_store::Store;

use crate::{
    CacheHint, Extension, Prompt, Resource, ResourceTemplate, Tool,
    catalog::{Catalog, subscriptions::SubscriptionBudget, visibility::ToolView},
    input::SealingKeys,
    lifecycle::{RevisionRules, ServedEras, SessionUsers, runtime::ClientRequestTimeouts},
    middleware::{Layer, Middleware},
    server::{
        extension::{Extensions, RegisteredMethod},
        instance::ServerInstance,
    },
    tasks::{TaskRegistry, TaskSettings},
    tools::{InvalidTool, schema::SchemaCompiler},
};
pub use crate::{catalog::InvalidPageSize, input::InvalidStateKeys};

/// An MCP server: its tools, prompts and resources, and its settings.
///
/// The same value can be served on several transports: clones share everything, until a builder method changes one of
/// them.
///
/// ```
/// use turnbuckle_server::{Server, Tool};
///
/// let server = Server::new("clock", "1.0.0")
///     .instructions("Tells the time.")
///     .tool(Tool::new("now", async || Ok("half past nine".to_owned())));
/// ```
#[derive(Clone)]
pub struct Server {
    inner: Arc<ServerInner>,
}

struct ServerInner {
    settings: ServerSettings,
    composition: Arc<CatalogComposition>,
    store: Store,
    sealing_keys: Arc<SealingKeys>,
    identity: OnceLock<Vec<u8>>,
    running_tasks: Arc<TaskRegistry>,
    subscription_budget: Arc<SubscriptionBudget>,
    session_users: Arc<SessionUsers>,
    /// Set if the store is shared.
    instance: Option<Arc<ServerInstance>>,
}

/// Maximum duration: longer than any wait, and safe to add to any time.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Settings that are fixed once the server runs.
#[derive(Clone)]
struct ServerSettings {
    info: Implementation,
    instructions: Option<String>,
    page_size: Option<usize>,
    list_cache: CacheHint,
    client_request_timeouts: ClientRequestTimeouts,
    state_lifetime: Duration,
    lenient: bool,
    state: Arc<SharedState>,
    /// Set if the server validates.
    validate_input: Option<SchemaCompiler>,
    validate_output: Option<SchemaCompiler>,
    tasks: TaskSettings,
    extensions: Arc<Extensions>,
    layers: Vec<Layer>,
    tool_views: Vec<ToolView>,
    relay: Option<Arc<dyn Relay>>,
    served_eras: ServedEras,
    /// Distinguishes what relays of servers with the same keys encrypt.
    state_scope: Box<str>,
}

impl Server {
    /// Creates a server without tools, prompts and resources.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let settings = ServerSettings {
            info: Implementation::new(name, version),
            instructions: None,
            page_size: None,
            list_cache: CacheHint::NONE,
            client_request_timeouts: ClientRequestTimeouts {
                idle: Duration::from_secs(60),
                total: Duration::from_secs(3600),
            },
            state_lifetime: Duration::from_secs(3600),
            lenient: false,
            state: Arc::default(),
            validate_input: None,
            validate_output: None,
            tasks: TaskSettings::default(),
            extensions: Arc::default(),
            layers: Vec::new(),
            tool_views: Vec::new(),
            relay: None,
            served_eras: ServedEras::Both,
            state_scope: "".into(),
        };
        let store = Store::memory();
        Self {
            inner: Arc::new(ServerInner {
                settings,
                composition: CatalogComposition::new(store.bus.clone()),
                store,
                sealing_keys: Arc::new(SealingKeys::random()),
                identity: OnceLock::new(),
                running_tasks: Arc::default(),
                subscription_budget: Arc::default(),
                session_users: Arc::default(),
                instance: None,
            }),
        }
    }

    /// Adds a tool. A tool with the same name is replaced.
    ///
    /// # Panics
    ///
    /// If the server validates by a schema of the tool that cannot be enforced; see [`try_tool`](Self::try_tool).
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.try_tool(tool).unwrap_or_else(|error| error.panic())
    }

    /// Like [`tool`](Self::tool), with an error instead of a panic.
    pub fn try_tool(self, tool: Tool) -> Result<Self, InvalidTool> {
        tool.compile_schemas(&self)?;
        Ok(self.register(|catalog| catalog.tools.put(tool)))
    }

    /// Adds a resource. A resource with the same URI is replaced.
    #[must_use]
    pub fn resource(self, resource: Resource) -> Self {
        self.register(|catalog| catalog.resources.put(resource))
    }

    /// Adds a resource template.
    #[must_use]
    pub fn template(self, template: ResourceTemplate) -> Self {
        self.register(|catalog| catalog.templates.put(template))
    }

    /// Adds a prompt. A prompt with the same name is replaced.
    #[must_use]
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.register(|catalog| catalog.prompts.put(prompt))
    }

    /// Adds an extension. An extension with the same identifier is replaced.
    #[must_use]
    pub fn extension(self, extension: Extension) -> Self {
        self.set(|settings| Arc::make_mut(&mut settings.extensions).put(extension))
    }

    pub(crate) fn register(mut self, change: impl FnOnce(&mut Catalog)) -> Self {
        self.inner_mut().composition.register(change);
        self
    }

    /// Sets the instructions for models.
    #[must_use]
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.set(|settings| settings.instructions = Some(instructions.into()))
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.set(|settings| settings.info.title = Some(title.into()))
    }

    /// Sets the description.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.set(|settings| settings.info.description = Some(description.into()))
    }

    /// Sets the website.
    #[must_use]
    pub fn website(self, url: impl Into<String>) -> Self {
        self.set(|settings| settings.info.website_url = Some(url.into()))
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(self, icon: Icon) -> Self {
        self.set(|settings| settings.info.icons.push(icon))
    }

    /// Sets the page size of lists. By default a list is one page, because some clients ignore the cursor.
    ///
    /// # Panics
    ///
    /// If it is 0.
    #[must_use]
    pub fn page_size(self, items: usize) -> Self {
        self.try_page_size(items)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`page_size`](Self::page_size), with an error instead of a panic.
    pub fn try_page_size(self, items: usize) -> Result<Self, InvalidPageSize> {
        if items == 0 {
            return Err(InvalidPageSize);
        }
        Ok(self.set(|settings| settings.page_size = Some(items)))
    }

    /// Lists other definitions of the tools for requests that `applies` matches, for example a short list for a model
    /// that needs few tools.
    ///
    /// `applies` gets the values attached to the request, such as the [query of its URL](crate::http::UrlQuery). `edit`
    /// changes a definition, or returns `false` to leave the tool out. Only `tools/list` is affected: every tool can be
    /// called. The first view that applies is used.
    ///
    /// ```
    /// use turnbuckle_server::{Server, Tool, http::UrlQuery};
    ///
    /// let server = Server::new("clock", "1.0.0")
    ///     .tool(Tool::new("now", async || Ok("half past nine".to_owned())))
    ///     .tool(Tool::new("debug", async || Ok("all is well".to_owned())))
    ///     .tool_view(
    ///         |attached| attached.get::<UrlQuery>().is_some_and(|query| query.as_str() == "short"),
    ///         |tool| tool.name == "now",
    ///     );
    /// ```
    #[must_use]
    pub fn tool_view(
        self,
        applies: impl Fn(&::http::Extensions) -> bool + Send + Sync + 'static,
        edit: impl Fn(&mut ToolDefinition) -> bool + Send + Sync + 'static,
    ) -> Self {
        let view = ToolView::new(applies, edit);
        self.set(|settings| settings.tool_views.push(view))
    }

    /// Sets the cache hint of lists. Not cached by default.
    #[must_use]
    pub fn cache_lists(self, hint: CacheHint) -> Self {
        self.set(|settings| settings.list_cache = hint)
    }

    /// Sets the timeouts of client requests: without progress, and in total.
    ///
    /// One minute and one hour by default. They do not apply where the client retries with the response.
    #[must_use]
    pub fn client_request_timeout(self, idle: Duration, total: Duration) -> Self {
        self.set(|settings| {
            settings.client_request_timeouts = ClientRequestTimeouts {
                idle: idle.min(MAX_DURATION),
                total: total.min(MAX_DURATION),
            }
        })
    }

    /// Sets the maximum time between two round trips of a call. One hour by default.
    #[must_use]
    pub fn state_lifetime(self, lifetime: Duration) -> Self {
        self.set(|settings| settings.state_lifetime = lifetime.min(MAX_DURATION))
    }

    /// Sets the secrets that encrypt request state, handles and cursors. Share them so that any process can continue a
    /// call. The first encrypts and all of them decrypt, which allows key rotation.
    ///
    /// A random key of this process by default.
    ///
    /// # Panics
    ///
    /// If the list of secrets is empty, or one is shorter than 16 bytes.
    #[must_use]
    pub fn state_keys<S: AsRef<[u8]>>(self, secrets: impl IntoIterator<Item = S>) -> Self {
        self.try_state_keys(secrets)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`state_keys`](Self::state_keys), with an error instead of a panic.
    pub fn try_state_keys<S: AsRef<[u8]>>(
        mut self,
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Self, InvalidStateKeys> {
        let secrets: Vec<_> = secrets
            .into_iter()
            .map(|secret| secret.as_ref().to_vec())
            .collect();
        if secrets.is_empty() {
            return Err(InvalidStateKeys::Missing);
        }
        if secrets.iter().any(|secret| secret.len() < 16) {
            return Err(InvalidStateKeys::TooShort);
        }
        self.inner_mut().sealing_keys = Arc::new(SealingKeys::new(&secrets));
        Ok(self)
    }

    /// Sets the store of sessions, events and tasks.
    ///
    /// With a [shared store](Store::is_shared), the server is one of the instances that serve an endpoint together. It joins
    /// them with its first session. It then answers requests of sessions only while it can renew its lease.
    #[must_use]
    pub fn store(mut self, store: Store) -> Self {
        let inner = self.inner_mut();
        inner.composition.set_bus(store.bus.clone());
        inner.instance = ServerInstance::new(&store, &inner.session_users, &inner.running_tasks);
        inner.store = store;
        self
    }

    /// Returns a server with the settings, items and state keys of this one, and with sessions, tasks and subscriptions of
    /// its own, in memory. What a [relay](crate::relay) of it encrypts is rejected by servers with another `scope`.
    #[must_use]
    pub fn with_own_state(&self, scope: &str) -> Self {
        let mut server = self.clone().store(Store::memory());
        let inner = server.inner_mut();
        inner.settings.state_scope = scope.into();
        inner.running_tasks = Arc::default();
        inner.subscription_budget = Arc::default();
        inner.session_users = Arc::default();
        server
    }

    /// Accepts requests of clients that follow early documentation, in sessions: `completions/complete` for
    /// `completion/complete`, `shutdown`, and `initialize` without `clientInfo`.
    #[must_use]
    pub fn lenient(self, lenient: bool) -> Self {
        self.set(|settings| settings.lenient = lenient)
    }

    /// Sets the lifetime of tasks, from their creation: `lifetime`, or what the client requests, up to `max_lifetime`.
    /// Expired tasks are deleted, and dropped if they still run.
    ///
    /// One hour and one day by default.
    #[must_use]
    pub fn task_lifetime(self, lifetime: Duration, max_lifetime: Duration) -> Self {
        self.set(|settings| {
            settings.tasks.max_lifetime = max_lifetime.min(MAX_DURATION);
            settings.tasks.lifetime = lifetime.min(settings.tasks.max_lifetime);
        })
    }

    /// Sets the interval at which clients should poll a task. One second by default.
    #[must_use]
    pub fn task_poll_interval(self, interval: Duration) -> Self {
        self.set(|settings| settings.tasks.poll_interval = interval)
    }

    /// Adds a layer around every request that a handler or a list responds to.
    ///
    /// The first layer added is the outermost. See [`middleware`](crate::middleware) for included layers and how to
    /// write one.
    #[must_use]
    pub fn layer(self, layer: impl Middleware) -> Self {
        self.set(|settings| settings.layers.push(Arc::new(layer)))
    }

    /// Passes requests on to a relay instead of the registered tools, resources and prompts.
    ///
    /// The server still handles the lifecycle, sessions, subscriptions and the transport. See [`relay`](crate::relay).
    #[must_use]
    pub fn relay(self, relay: Arc<dyn Relay>) -> Self {
        self.set(|settings| settings.relay = Some(relay))
    }

    /// Sets the eras that clients can use. Both by default.
    ///
    /// A client of another era gets an error that names the revisions that are served.
    #[must_use]
    pub fn served_eras(self, eras: ServedEras) -> Self {
        self.set(|settings| settings.served_eras = eras)
    }

    fn set(mut self, change: impl FnOnce(&mut ServerSettings)) -> Self {
        let inner = self.inner_mut();
        change(&mut inner.settings);
        inner.identity = OnceLock::new();
        self
    }

    fn inner_mut(&mut self) -> &mut ServerInner {
        Arc::make_mut(&mut self.inner)
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.inner.settings.info.name
    }

    pub(crate) fn catalog(&self) -> arc_swap::Guard<Arc<Catalog>> {
        self.inner.composition.catalog()
    }

    pub(crate) fn store_ref(&self) -> &Store {
        &self.inner.store
    }

    pub(crate) fn sealing_keys(&self) -> &SealingKeys {
        &self.inner.sealing_keys
    }

    pub(crate) fn state_scope(&self) -> &str {
        &self.inner.settings.state_scope
    }

    pub(crate) fn subscription_budget(&self) -> &SubscriptionBudget {
        &self.inner.subscription_budget
    }

    /// The membership among the instances of the store, if it is shared.
    pub(crate) fn instance(&self) -> Option<&Arc<ServerInstance>> {
        self.inner.instance.as_ref()
    }

    /// Returns whether requests of sessions may run: the store is not shared, or this instance has a lease.
    pub(crate) fn may_serve_sessions(&self) -> bool {
        self.instance().is_none_or(|instance| instance.is_held())
    }

    /// Components of this process that use stored sessions.
    pub(crate) fn session_users(&self) -> &Arc<SessionUsers> {
        &self.inner.session_users
    }

    pub(crate) fn info(&self) -> &Implementation {
        &self.inner.settings.info
    }

    pub(crate) fn instructions_text(&self) -> Option<String> {
        let relayed = self.relay_ref().and_then(|relay| relay.instructions());
        relayed.or_else(|| self.inner.settings.instructions.clone())
    }

    /// Returns the members that the relay adds to the `_meta` of `initialize` and `server/discover`.
    pub(crate) fn relay_meta(&self) -> Meta {
        let mut meta = Meta::new();
        if let Some(relay) = self.relay_ref() {
            for (key, value) in relay.meta() {
                meta.insert_reserved(key, value);
            }
        }
        meta
    }

    /// Returns the error of a relay that cannot serve clients now.
    pub(crate) fn check_available(&self) -> Result<(), RpcError> {
        self.relay_ref()
            .map_or(Ok(()), |relay| relay.check_available())
    }

    /// The relay, if the server has one.
    pub(crate) fn relay_ref(&self) -> Option<&Arc<dyn Relay>> {
        self.inner.settings.relay.as_ref()
    }

    /// Returns the relay if it handles a method.
    pub(crate) fn relayed_to(&self, method: &str) -> Option<&Arc<dyn Relay>> {
        self.relay_ref().filter(|_| relay::is_relayed(method))
    }

    /// The eras that clients can use.
    pub(crate) fn era_restriction(&self) -> ServedEras {
        self.inner.settings.served_eras
    }

    pub(crate) fn tool_views(&self) -> &[ToolView] {
        &self.inner.settings.tool_views
    }

    pub(crate) fn page_length(&self) -> Option<usize> {
        self.inner.settings.page_size
    }

    pub(crate) fn list_cache(&self) -> CacheHint {
        self.inner.settings.list_cache
    }

    pub(crate) fn client_request_timeouts(&self) -> ClientRequestTimeouts {
        self.inner.settings.client_request_timeouts
    }

    pub(crate) fn state_lifetime_limit(&self) -> Duration {
        self.inner.settings.state_lifetime
    }

    pub(crate) fn is_lenient(&self) -> bool {
        self.inner.settings.lenient
    }

    pub(crate) fn input_compiler(&self) -> Option<SchemaCompiler> {
        self.inner.settings.validate_input
    }

    pub(crate) fn output_compiler(&self) -> Option<SchemaCompiler> {
        self.inner.settings.validate_output
    }

    pub(crate) fn task_settings(&self) -> TaskSettings {
        self.inner.settings.tasks
    }

    pub(crate) fn running_tasks(&self) -> &Arc<TaskRegistry> {
        &self.inner.running_tasks
    }

    /// Finds an extension method that is available under these revision rules.
    pub(crate) fn extension_method(
        &self,
        name: &str,
        rules: &RevisionRules,
    ) -> Option<&Arc<RegisteredMethod>> {
        self.inner.settings.extensions.method(name, rules)
    }

    /// Returns whether the server has resource providers.
    pub(crate) fn has_providers(&self) -> bool {
        !self.catalog().providers.is_empty()
    }

    /// Starts the providers, because a client may receive notifications.
    pub(crate) fn start_providers(&self) {
        for provider in &self.catalog().providers {
            provider.clone().start(self);
        }
    }

    pub(crate) fn layers(&self) -> &[Layer] {
        &self.inner.settings.layers
    }

    /// The encoded `_meta` of every stateless result.
    pub(crate) fn identity(&self) -> &[u8] {
        self.inner.identity.get_or_init(|| {
            let mut meta = turnbuckle_protocol::Meta::default();
            meta.set_server_info(self.info());
            serde_json::to_vec(&meta).expect("`_meta` has string keys")
        })
    }

    /// Returns whether the server has tools.
    pub(crate) fn has_tools(&self) -> bool {
        match self.relay_ref() {
            Some(relay) => relay.capabilities().tools.is_some(),
            None => self.catalog().tools.is_advertised(),
        }
    }

    /// Returns whether the server has prompts.
    pub(crate) fn has_prompts(&self) -> bool {
        match self.relay_ref() {
            Some(relay) => relay.capabilities().prompts.is_some(),
            None => self.catalog().prompts.is_advertised(),
        }
    }

    /// Returns whether the server has resources.
    pub(crate) fn has_resources(&self) -> bool {
        match self.relay_ref() {
            Some(relay) => relay.capabilities().resources.is_some(),
            None => self.catalog().has_resources(),
        }
    }

    /// Returns whether calls may become tasks that can be watched.
    pub(crate) fn has_task_extension(&self) -> bool {
        match self.relay_ref() {
            Some(relay) => {
                let extensions = relay.capabilities().extensions;
                extensions.is_some_and(|extensions| extensions.contains_key(EXTENSION))
            }
            None => self.catalog().supports_tasks,
        }
    }

    /// Returns the capabilities under these revision rules, from what is registered.
    pub(crate) fn capabilities(&self, rules: &RevisionRules) -> ServerCapabilities {
        if let Some(relay) = self.relay_ref() {
            return relay.capabilities();
        }
        let catalog = self.catalog();
        let mut capabilities = ServerCapabilities::new().logging(serde_json::Map::new());
        if catalog.tools.is_advertised() {
            capabilities.tools = Some(ListCapability::default().list_changed(true));
        }
        if catalog.prompts.is_advertised() {
            capabilities.prompts = Some(ListCapability::default().list_changed(true));
        }
        if catalog.has_resources() {
            capabilities.resources = Some(
                ResourcesCapability::default()
                    .subscribe(true)
                    .list_changed(true),
            );
        }
        capabilities.extensions = self.inner.settings.extensions.advertised(rules);
        if catalog.supports_tasks {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(EXTENSION.to_owned(), serde_json::json!({}));
        }
        if catalog.has_completers() {
            capabilities.completions = Some(Default::default());
        }
        capabilities
    }
}

impl Clone for ServerInner {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            composition: self.composition.fork(),
            store: self.store.clone(),
            sealing_keys: self.sealing_keys.clone(),
            identity: OnceLock::new(),
            running_tasks: self.running_tasks.clone(),
            subscription_budget: self.subscription_budget.clone(),
            session_users: self.session_users.clone(),
            instance: self.instance.clone(),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
