//! A server: what it offers and how it behaves, put together with a builder.

mod mount;
mod offer;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use turnbuckle_protocol::types::{
    Icon, Implementation, ListCapability, ResourcesCapability, ServerCapabilities, tasks::EXTENSION,
};
use turnbuckle_store::{Change, Store};

use crate::{
    CacheHint, Extension, Prompt, Resource, ResourceTemplate, Tool,
    catalog::Catalog,
    extension::{Added, Extensions},
    input::Keys,
    lifecycle::{Rules, live::Patience},
    middleware::{Layer, Middleware},
    session_users::SessionUsers,
    subscriptions::Listeners,
    tasks::{Registry, TaskSettings},
};
pub use mount::MountError;
use offer::Offer;

/// A server: what it offers, and how it behaves.
///
/// The same value is served on any transport, on several at once if you clone it: clones share everything, until one of
/// them is changed by a method of the builder and goes its own way.
///
/// ```
/// use turnbuckle_server::{Server, Tool, ToolError};
///
/// let server = Server::new("clock", "1.0.0")
///     .instructions("Tells the time.")
///     .tool(Tool::new("now", async || Ok::<_, ToolError>("half past nine".to_owned())));
/// ```
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    offer: Arc<Offer>,
    store: Store,
    keys: Arc<Keys>,
    identity: OnceLock<Vec<u8>>,
    running_tasks: Arc<Registry>,
    listeners: Arc<Listeners>,
    session_users: Arc<SessionUsers>,
}

/// Longer than anybody waits, and short enough to be added to any time.
pub(crate) const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// What is fixed once the server runs.
#[derive(Clone)]
struct Settings {
    info: Implementation,
    instructions: Option<String>,
    page_size: Option<usize>,
    list_cache: CacheHint,
    patience: Patience,
    state_lifetime: Duration,
    lenient: bool,
    validate_output: bool,
    tasks: TaskSettings,
    extensions: Arc<Extensions>,
    layers: Vec<Layer>,
}

impl Server {
    /// A server that offers nothing yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let settings = Settings {
            info: Implementation::new(name, version),
            instructions: None,
            page_size: None,
            list_cache: CacheHint::NONE,
            patience: Patience {
                silent: Duration::from_secs(60),
                total: Duration::from_secs(3600),
            },
            state_lifetime: Duration::from_secs(3600),
            lenient: false,
            validate_output: false,
            tasks: TaskSettings::default(),
            extensions: Arc::default(),
            layers: Vec::new(),
        };
        let store = Store::memory();
        Self {
            shared: Arc::new(Shared {
                settings,
                offer: Offer::new(store.bus.clone()),
                store,
                keys: Arc::new(Keys::random()),
                identity: OnceLock::new(),
                running_tasks: Arc::default(),
                listeners: Arc::default(),
                session_users: Arc::default(),
            }),
        }
    }

    /// Offers a tool. One with the same name is replaced.
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.register(|catalog| catalog.tools.put(tool))
    }

    /// Offers a resource. One with the same URI is replaced.
    #[must_use]
    pub fn resource(self, resource: Resource) -> Self {
        self.register(|catalog| catalog.resources.put(resource))
    }

    /// Offers all resources that a URI template describes.
    #[must_use]
    pub fn template(self, template: ResourceTemplate) -> Self {
        self.register(|catalog| catalog.templates.put(template))
    }

    /// Offers a prompt. One with the same name is replaced.
    #[must_use]
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.register(|catalog| catalog.prompts.put(prompt))
    }

    /// Offers an extension of the protocol. One with the same identifier is replaced.
    #[must_use]
    pub fn extension(self, extension: Extension) -> Self {
        self.set(|settings| Arc::make_mut(&mut settings.extensions).put(extension))
    }

    pub(crate) fn register(mut self, change: impl FnOnce(&mut Catalog)) -> Self {
        self.shared_mut().offer.register(change);
        self
    }

    /// Offers a tool from now on, while the server runs, and tells every client that wants to know.
    ///
    /// One with the same name is replaced. Unlike [`tool`](Self::tool) it reaches all clones of this server.
    pub fn add_tool(&self, tool: Tool) {
        self.change(Change::ToolsChanged, |catalog| catalog.tools.put(tool));
    }

    /// Offers a tool no longer; says whether there was one. Calls that run come to their end.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.change(Change::ToolsChanged, |catalog| catalog.tools.remove(name))
    }

    /// Offers a resource from now on, as [`add_tool`](Self::add_tool) does with tools.
    pub fn add_resource(&self, resource: Resource) {
        self.change(Change::ResourcesChanged, |catalog| {
            catalog.resources.put(resource);
        });
    }

    /// Offers a resource no longer; says whether there was one.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.change(Change::ResourcesChanged, |catalog| {
            catalog.resources.remove(uri)
        })
    }

    /// Offers some resources no longer and others from now on, as one change that clients are told of once.
    ///
    /// ```
    /// use turnbuckle_server::{Resource, Server, testing::Changes};
    ///
    /// let server = Server::new("notes", "1.0.0").resource(Resource::text("notes://1", "1", "Buy milk."));
    /// let mut changes = Changes::of(&server);
    /// let new = ["2", "3"].map(|name| Resource::text(format!("notes://{name}"), name, "Buy tea."));
    /// server.change_resources(["notes://1"], new);
    /// assert_eq!(changes.take().len(), 1);
    /// ```
    pub fn change_resources<U: AsRef<str>>(
        &self,
        gone: impl IntoIterator<Item = U>,
        new: impl IntoIterator<Item = Resource>,
    ) {
        self.change(Change::ResourcesChanged, |catalog| {
            for uri in gone {
                catalog.resources.remove(uri.as_ref());
            }
            for resource in new {
                catalog.resources.put(resource);
            }
        });
    }

    /// Offers all resources that a URI template describes from now on, as [`add_tool`](Self::add_tool) does with tools.
    pub fn add_template(&self, template: ResourceTemplate) {
        self.change(Change::ResourcesChanged, |catalog| {
            catalog.templates.put(template);
        });
    }

    /// Offers no longer what a URI template describes; says whether there was one.
    pub fn remove_template(&self, template: &str) -> bool {
        self.change(Change::ResourcesChanged, |catalog| {
            catalog.templates.remove(template)
        })
    }

    /// Offers a prompt from now on, as [`add_tool`](Self::add_tool) does with tools.
    pub fn add_prompt(&self, prompt: Prompt) {
        self.change(Change::PromptsChanged, |catalog| {
            catalog.prompts.put(prompt);
        });
    }

    /// Offers a prompt no longer; says whether there was one.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(Change::PromptsChanged, |catalog| {
            catalog.prompts.remove(name)
        })
    }

    /// Replaces the catalog by a changed one; whoever changes it at the same time loses nothing.
    fn change<T>(&self, change: Change, apply: impl FnOnce(&mut Catalog) -> T) -> T {
        let outcome = self.shared.offer.change(apply);
        self.publish(change);
        outcome
    }

    /// Tells models how to use the server.
    #[must_use]
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.set(|settings| settings.instructions = Some(instructions.into()))
    }

    /// Gives the server a name for people.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.set(|settings| settings.info.title = Some(title.into()))
    }

    /// Describes the server in a sentence for people.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.set(|settings| settings.info.description = Some(description.into()))
    }

    /// Names the server's page on the web.
    #[must_use]
    pub fn website(self, url: impl Into<String>) -> Self {
        self.set(|settings| settings.info.website_url = Some(url.into()))
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(self, icon: Icon) -> Self {
        self.set(|settings| settings.info.icons.push(icon))
    }

    /// Splits lists into pages of this size. By default a list is one page: not every client asks for the next.
    ///
    /// # Panics
    ///
    /// If it is 0.
    #[must_use]
    pub fn page_size(self, items: usize) -> Self {
        assert!(items > 0, "a page has room for something");
        self.set(|settings| settings.page_size = Some(items))
    }

    /// Says for how long and by whom lists may be kept. By default they are asked for anew each time.
    #[must_use]
    pub fn cache_lists(self, hint: CacheHint) -> Self {
        self.set(|settings| settings.list_cache = hint)
    }

    /// Limits how long a question to the client may stay open without a sign of progress, and in all.
    ///
    /// By default a minute and an hour. Where the client returns with the answer by itself, nothing waits.
    #[must_use]
    pub fn question_timeout(self, without_progress: Duration, in_all: Duration) -> Self {
        self.set(|settings| {
            settings.patience = Patience {
                silent: without_progress.min(FOREVER),
                total: in_all.min(FOREVER),
            }
        })
    }

    /// Limits how long the client may take between two rounds of a call. By default an hour.
    #[must_use]
    pub fn state_lifetime(self, lifetime: Duration) -> Self {
        self.set(|settings| settings.state_lifetime = lifetime.min(FOREVER))
    }

    /// Seals request state and cursors with secrets that other processes know too, so that any of them can continue
    /// a call. The first seals; all of them open, which lets keys be changed without breaking calls on their way.
    ///
    /// By default a random key of this process.
    ///
    /// # Panics
    ///
    /// If there is no secret, or one of less than 16 bytes.
    #[must_use]
    pub fn state_keys<S: AsRef<[u8]>>(mut self, secrets: impl IntoIterator<Item = S>) -> Self {
        let secrets: Vec<_> = secrets
            .into_iter()
            .map(|secret| secret.as_ref().to_vec())
            .collect();
        assert!(!secrets.is_empty(), "one secret is needed to seal");
        assert!(
            secrets.iter().all(|secret| secret.len() >= 16),
            "a secret has at least 16 bytes"
        );
        self.shared_mut().keys = Arc::new(Keys::new(&secrets));
        self
    }

    /// Keeps sessions, events and changes in a store of your own.
    #[must_use]
    pub fn store(mut self, store: Store) -> Self {
        let shared = self.shared_mut();
        shared.offer.tell_on(store.bus.clone());
        shared.store = store;
        self
    }

    /// Accepts in sessions what clients send that were written after early documents: `completions/complete` for
    /// `completion/complete`, `shutdown`, and an `initialize` without `clientInfo`.
    #[must_use]
    pub fn lenient(self, lenient: bool) -> Self {
        self.set(|settings| settings.lenient = lenient)
    }

    /// Checks the structured output of every tool against its output schema, and reports a mismatch as a failure of the
    /// tool: it is logged under an incident, and the model gets the incident. By default only debug builds look.
    ///
    /// Takes effect with the feature `validation`.
    #[must_use]
    pub fn validate_output(self, validate: bool) -> Self {
        self.set(|settings| settings.validate_output = validate)
    }

    /// Says how long tasks are kept after they began: as long as `lifetime`, or as long as the client asks for, but never
    /// longer than `longest`. Then they are forgotten, and dropped if they still run.
    ///
    /// By default an hour and a day.
    #[must_use]
    pub fn task_lifetime(self, lifetime: Duration, longest: Duration) -> Self {
        self.set(|settings| {
            settings.tasks.longest = longest.min(FOREVER);
            settings.tasks.lifetime = lifetime.min(settings.tasks.longest);
        })
    }

    /// Says how long clients should wait between two looks at a task. By default a second.
    #[must_use]
    pub fn task_poll_interval(self, interval: Duration) -> Self {
        self.set(|settings| settings.tasks.poll_interval = interval)
    }

    /// Puts a layer around every request that a handler or a list answers.
    ///
    /// Layers run in the order in which they were added, the first outermost. [`middleware`](crate::middleware) has some
    /// ready-made, and says how to write one.
    #[must_use]
    pub fn layer(self, layer: impl Middleware) -> Self {
        self.set(|settings| settings.layers.push(Arc::new(layer)))
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        let shared = self.shared_mut();
        change(&mut shared.settings);
        shared.identity = OnceLock::new();
        self
    }

    fn shared_mut(&mut self) -> &mut Shared {
        Arc::make_mut(&mut self.shared)
    }

    /// Tells every client that wants to know that a resource has new content.
    pub fn resource_updated(&self, uri: impl Into<Arc<str>>) {
        self.publish(Change::ResourceUpdated { uri: uri.into() });
    }

    /// Tells every client that wants to know that the list of tools has changed.
    pub fn tools_changed(&self) {
        self.publish(Change::ToolsChanged);
    }

    /// Tells every client that wants to know that the list of prompts has changed.
    pub fn prompts_changed(&self) {
        self.publish(Change::PromptsChanged);
    }

    /// Tells every client that wants to know that the list of resources has changed.
    pub fn resources_changed(&self) {
        self.publish(Change::ResourcesChanged);
    }

    /// Tells the client that was asked for a visit to a URL that the visit is over, if its protocol has such a message.
    ///
    /// The id is the one of [`Elicitation::id`](crate::Elicitation::id). A client that has left is not told.
    pub fn elicitation_complete(&self, id: impl Into<Arc<str>>) {
        self.publish(Change::ElicitationCompleted { id: id.into() });
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.shared.settings.info.name
    }

    pub(crate) fn publish(&self, change: Change) {
        self.shared.offer.publish(change);
    }

    pub(crate) fn catalog(&self) -> arc_swap::Guard<Arc<Catalog>> {
        self.shared.offer.catalog()
    }

    pub(crate) fn store_ref(&self) -> &Store {
        &self.shared.store
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.shared.keys
    }

    pub(crate) fn listeners(&self) -> &Listeners {
        &self.shared.listeners
    }

    /// Who uses sessions of the store in this process.
    pub(crate) fn session_users(&self) -> &Arc<SessionUsers> {
        &self.shared.session_users
    }

    pub(crate) fn info(&self) -> &Implementation {
        &self.shared.settings.info
    }

    pub(crate) fn instructions_text(&self) -> Option<&str> {
        self.shared.settings.instructions.as_deref()
    }

    pub(crate) fn page_length(&self) -> Option<usize> {
        self.shared.settings.page_size
    }

    pub(crate) fn list_cache(&self) -> CacheHint {
        self.shared.settings.list_cache
    }

    pub(crate) fn patience(&self) -> Patience {
        self.shared.settings.patience
    }

    pub(crate) fn state_lifetime_limit(&self) -> Duration {
        self.shared.settings.state_lifetime
    }

    pub(crate) fn is_lenient(&self) -> bool {
        self.shared.settings.lenient
    }

    pub(crate) fn validates_output(&self) -> bool {
        self.shared.settings.validate_output
    }

    pub(crate) fn task_settings(&self) -> TaskSettings {
        self.shared.settings.tasks
    }

    pub(crate) fn running_tasks(&self) -> &Arc<Registry> {
        &self.shared.running_tasks
    }

    /// Finds a method that an extension adds for peers of these rules.
    pub(crate) fn extension_method(&self, name: &str, rules: &Rules) -> Option<&Arc<Added>> {
        self.shared.settings.extensions.method(name, rules)
    }

    /// Says whether resources are kept elsewhere than in the catalog.
    pub(crate) fn has_sources(&self) -> bool {
        !self.catalog().sources.is_empty()
    }

    /// Notes that someone is there who may want to hear of changes.
    pub(crate) fn attend(&self) {
        for source in &self.catalog().sources {
            source.clone().attend(self);
        }
    }

    pub(crate) fn layers(&self) -> &[Layer] {
        &self.shared.settings.layers
    }

    /// The `_meta` of every modern result, as bytes.
    pub(crate) fn identity(&self) -> &[u8] {
        self.shared.identity.get_or_init(|| {
            let mut meta = turnbuckle_protocol::Meta::default();
            meta.set_server_info(self.info());
            serde_json::to_vec(&meta).expect("`_meta` has string keys")
        })
    }

    /// What the server can do for peers of these rules, derived from what is registered.
    pub(crate) fn capabilities(&self, rules: &Rules) -> ServerCapabilities {
        let catalog = self.catalog();
        let mut capabilities = ServerCapabilities::new().logging(serde_json::Map::new());
        if catalog.tools.is_offered() {
            capabilities.tools = Some(ListCapability::default().list_changed(true));
        }
        if catalog.prompts.is_offered() {
            capabilities.prompts = Some(ListCapability::default().list_changed(true));
        }
        if catalog.has_resources() {
            capabilities.resources = Some(
                ResourcesCapability::default()
                    .subscribe(true)
                    .list_changed(true),
            );
        }
        capabilities.extensions = self.shared.settings.extensions.declared(rules);
        if catalog.offers_tasks {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(EXTENSION.to_owned(), serde_json::json!({}));
        }
        if catalog.completes() {
            capabilities.completions = Some(Default::default());
        }
        capabilities
    }
}

impl Clone for Shared {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            offer: self.offer.fork(),
            store: self.store.clone(),
            keys: self.keys.clone(),
            identity: OnceLock::new(),
            running_tasks: self.running_tasks.clone(),
            listeners: self.listeners.clone(),
            session_users: self.session_users.clone(),
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
