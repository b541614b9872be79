//! Mounting servers in servers.

use std::sync::Arc;

use turnbuckle_store::ServerChange;

use super::{Server, SharedState, composition::CatalogComposition};
use crate::{Prompt, Resource, ResourceTemplate, Tool, catalog::Catalog, tools::is_valid_name};

/// The reason that a server cannot be mounted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The prefix cannot start the name of a tool.
    #[error("`{prefix}` is not a valid prefix: expected 1 to 128 letters, digits, `_`, `-` or `.`")]
    Prefix {
        /// The prefix.
        prefix: String,
    },
    /// The name of a tool becomes too long.
    #[error("`{name}` is too long for a tool: at most 128 characters, with the prefix")]
    TooLong {
        /// The resulting name.
        name: String,
    },
    /// The server would contain itself.
    #[error("a server cannot be mounted in itself or in a server mounted in it")]
    Cycle,
}

impl Server {
    /// Mounts another server: its tools and prompts become available as `prefix_name`.
    ///
    /// Resources and templates keep their URIs. On a conflict, the items of this server and of earlier mounts win, and
    /// a warning is logged. A mount with the same prefix is replaced.
    ///
    /// Later changes of the mounted server, and of servers mounted in it, apply here immediately, and clients of this
    /// server are notified. Its handlers run as part of this server, with its store, keys and settings. Other settings
    /// of the mounted server have no effect: instructions, extensions, skills, and **layers**. A server that is
    /// protected by a layer is not protected here unless this server has that layer too; a warning is logged.
    ///
    /// ```
    /// use turnbuckle_server::{Server, Tool};
    ///
    /// let tool = |name| Tool::new(name, async || Ok("done".to_owned()));
    /// let notes = Server::new("notes", "1.0.0").tool(tool("search"));
    /// let desk = Server::new("desk", "1.0.0").mount("notes", notes.clone()); // offers `notes_search`
    ///
    /// notes.add_tool(tool("write")); // and from now on `notes_write`
    /// ```
    ///
    /// # Panics
    ///
    /// If the prefix is not a valid tool name, or makes the name of a tool longer than 128 characters. Later tools with
    /// too long a name are left out.
    #[must_use]
    pub fn mount(self, prefix: impl Into<String>, other: Server) -> Self {
        self.try_mount(prefix, other)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`mount`](Self::mount), with an error instead of a panic.
    pub fn try_mount(
        mut self,
        prefix: impl Into<String>,
        other: Server,
    ) -> Result<Self, MountError> {
        // The returned server is not shared yet, so `other` cannot contain it.
        let composition = self.inner_mut().composition.clone();
        mount_into(&composition, prefix.into(), other)?;
        Ok(self)
    }

    /// Mounts another server while this one runs, and notifies clients.
    ///
    /// Like [`mount`](Self::mount), for all clones of this server.
    ///
    /// ```
    /// use turnbuckle_server::{MountError, Server};
    ///
    /// let (desk, notes) = (Server::new("desk", "1.0.0"), Server::new("notes", "1.0.0"));
    ///
    /// assert_eq!(desk.add_mount("notes", notes.clone()), Ok(()));
    /// assert_eq!(notes.add_mount("desk", desk), Err(MountError::Cycle));
    /// ```
    pub fn add_mount(&self, prefix: impl Into<String>, other: Server) -> Result<(), MountError> {
        for change in mount_into(&self.inner.composition, prefix.into(), other)? {
            self.inner.composition.publish_list(change);
        }
        Ok(())
    }

    /// Unmounts a server. Returns whether it was mounted. Running calls finish.
    ///
    /// ```
    /// # use turnbuckle_server::Server;
    /// let desk = Server::new("desk", "1.0.0").mount("notes", Server::new("notes", "1.0.0"));
    ///
    /// assert!(desk.remove_mount("notes"));
    /// assert!(!desk.remove_mount("notes"));
    /// ```
    pub fn remove_mount(&self, prefix: &str) -> bool {
        let removed = self.inner.composition.unmount(prefix);
        for change in removed.iter().flat_map(Mount::changes) {
            self.inner.composition.publish_list(change);
        }
        removed.is_some()
    }

    fn warn_about_ignored_settings(&self, prefix: &str) {
        let settings = &self.inner.settings;
        if !settings.layers.is_empty() || !settings.extensions.is_empty() || self.has_providers() {
            tracing::warn!(
                prefix,
                "layers, extensions and skills of a mounted server are ignored"
            );
        }
    }
}

/// Mounts a server. Returns the resulting changes.
fn mount_into(
    composition: &Arc<CatalogComposition>,
    prefix: String,
    other: Server,
) -> Result<Vec<ServerChange>, MountError> {
    if !is_valid_name(&prefix) {
        return Err(MountError::Prefix { prefix });
    }
    other.warn_about_ignored_settings(&prefix);
    let mut mount = Mount {
        prefix,
        server: other,
        prefixed: None,
    };
    if let (_, [name, ..]) = mount.prefixed() {
        return Err(MountError::TooLong { name: name.clone() });
    }
    let mut changes = mount.changes();
    let replaced = composition.mount(mount).ok_or(MountError::Cycle)?;
    let removed = replaced.iter().flat_map(Mount::changes);
    let further: Vec<_> = removed.filter(|change| !changes.contains(change)).collect();
    changes.extend(further);
    Ok(changes)
}

/// A mounted server.
#[derive(Clone)]
pub(super) struct Mount {
    prefix: String,
    server: Server,
    prefixed: Option<PrefixedCatalog>,
}

/// A catalog with prefixed names.
#[derive(Clone)]
struct PrefixedCatalog {
    source: Arc<Catalog>,
    catalog: Arc<Catalog>,
    too_long: Arc<[String]>,
}

impl Mount {
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn composition(&self) -> &Arc<CatalogComposition> {
        &self.server.inner.composition
    }

    /// Returns the catalog with prefixed names, and the tool names that are too long.
    pub(super) fn prefixed(&mut self) -> (&Catalog, &[String]) {
        let now = self.composition().catalog();
        let prefixed = match self.prefixed.take() {
            Some(existing) if Arc::ptr_eq(&existing.source, &now) => existing,
            _ => PrefixedCatalog::new(&now, &self.prefix, &self.server.inner.settings.state),
        };
        let prefixed = self.prefixed.insert(prefixed);
        (&prefixed.catalog, &prefixed.too_long)
    }

    /// The changes to announce when the server is mounted or unmounted.
    fn changes(&self) -> Vec<ServerChange> {
        let catalog = self.composition().catalog();
        [
            (catalog.tools.is_advertised(), ServerChange::ToolsChanged),
            (
                catalog.prompts.is_advertised(),
                ServerChange::PromptsChanged,
            ),
            (catalog.has_resources(), ServerChange::ResourcesChanged),
        ]
        .into_iter()
        .filter_map(|(has, change)| has.then_some(change))
        .collect()
    }
}

impl PrefixedCatalog {
    fn new(source: &Arc<Catalog>, prefix: &str, state: &Arc<SharedState>) -> Self {
        let mut catalog = Catalog {
            resources: source.resources.clone(),
            templates: source.templates.clone(),
            ..Catalog::default()
        };
        let mut too_long = Vec::new();
        for tool in source.tools.iter() {
            let name = format!("{prefix}_{}", tool.name());
            if is_valid_name(&name) {
                catalog.tools.put(Tool::clone(tool).renamed(name));
            } else {
                too_long.push(name);
            }
        }
        for prompt in source.prompts.iter() {
            let mut prompt = Prompt::clone(prompt);
            prompt.definition.name = format!("{prefix}_{}", prompt.definition.name);
            catalog.prompts.put(prompt);
        }
        if !state.is_empty() {
            add_state(&mut catalog, state);
        }
        Self {
            source: source.clone(),
            catalog: Arc::new(catalog),
            too_long: too_long.into(),
        }
    }
}

/// Gives the handlers of a mounted server its state.
fn add_state(catalog: &mut Catalog, state: &Arc<SharedState>) {
    let tools: Vec<_> = catalog.tools.iter().cloned().collect();
    for tool in tools {
        catalog.tools.put(Tool::clone(&tool).with_state(state));
    }
    let prompts: Vec<_> = catalog.prompts.iter().cloned().collect();
    for prompt in prompts {
        catalog
            .prompts
            .put(Prompt::clone(&prompt).with_state(state));
    }
    let resources: Vec<_> = catalog.resources.iter().cloned().collect();
    for resource in resources {
        (catalog.resources).put(Resource::clone(&resource).with_state(state));
    }
    let templates: Vec<_> = catalog.templates.iter().cloned().collect();
    for template in templates {
        (catalog.templates).put(ResourceTemplate::clone(&template).with_state(state));
    }
}
