//! Servers inside of servers.

use std::sync::Arc;

use turnbuckle_store::Change;

use super::{Server, offer::Offer};
use crate::{Prompt, Tool, catalog::Catalog, tools::is_name};

/// Why a server cannot be mounted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The prefix cannot begin the name of a tool.
    #[error("`{prefix}` is no prefix: 1 to 128 letters, digits, `_`, `-` or `.`")]
    Prefix {
        /// The prefix.
        prefix: String,
    },
    /// A tool would get a name that is too long.
    #[error("`{name}` is too long for a tool: at most 128 characters, with the prefix")]
    TooLong {
        /// The name that it would get.
        name: String,
    },
    /// The server would become a part of itself.
    #[error("a server cannot be mounted in itself, nor in one that is mounted in it")]
    Cycle,
}

impl Server {
    /// Offers what another server offers, its tools and prompts as `prefix_name`.
    ///
    /// Resources and templates keep their addresses: a URI names the same thing wherever it is read. What this server
    /// offers itself, or by an earlier mount, under the same name or URI stays, and the log says so. One with the same
    /// prefix is replaced.
    ///
    /// The other server lives on. What is added to it or removed from it while it runs, or to servers mounted in it,
    /// shows here at once, and clients of this server are told. Its handlers run as part of this server: with its
    /// store, its keys and its settings. Nothing else of the mounted server has an effect here: not its instructions, its
    /// other settings, its extensions and skills, and **not its layers**. A server that guards itself with a layer is not
    /// guarded here unless this one has that layer too; the log warns of it.
    ///
    /// ```
    /// use turnbuckle_server::{Server, Tool, ToolError};
    ///
    /// let tool = |name| Tool::new(name, async || Ok::<_, ToolError>("done".to_owned()));
    /// let notes = Server::new("notes", "1.0.0").tool(tool("search"));
    /// let desk = Server::new("desk", "1.0.0").mount("notes", notes.clone()); // offers `notes_search`
    ///
    /// notes.add_tool(tool("write")); // and from now on `notes_write`
    /// ```
    ///
    /// # Panics
    ///
    /// If the prefix is no tool name, or makes the name of a tool longer than 128 characters. One that is added to the
    /// mounted server later and has too long a name here is left out.
    #[must_use]
    pub fn mount(mut self, prefix: impl Into<String>, other: Server) -> Self {
        // Nobody else has what this returns, so `other` cannot contain it.
        let offer = self.shared_mut().offer.clone();
        if let Err(error) = put(&offer, prefix.into(), other) {
            panic!("{error}");
        }
        self
    }

    /// Mounts another server from now on, while this one runs, and tells every client that wants to know.
    ///
    /// As [`mount`](Self::mount) does, and for all clones of this server.
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
        for change in put(&self.shared.offer, prefix.into(), other)? {
            self.publish(change);
        }
        Ok(())
    }

    /// Takes a mounted server out; says whether there was one. Calls that run come to their end.
    ///
    /// ```
    /// # use turnbuckle_server::Server;
    /// let desk = Server::new("desk", "1.0.0").mount("notes", Server::new("notes", "1.0.0"));
    ///
    /// assert!(desk.remove_mount("notes"));
    /// assert!(!desk.remove_mount("notes"));
    /// ```
    pub fn remove_mount(&self, prefix: &str) -> bool {
        let removed = self.shared.offer.unmount(prefix);
        for change in removed.iter().flat_map(Mount::changes) {
            self.publish(change);
        }
        removed.is_some()
    }

    fn warn_of_what_stays_behind(&self, prefix: &str) {
        let settings = &self.shared.settings;
        if !settings.layers.is_empty() || !settings.extensions.is_empty() || self.has_sources() {
            tracing::warn!(
                prefix,
                "layers, extensions and skills of a mounted server have no effect in the outer one"
            );
        }
    }
}

/// Mounts a server; returns what that changes.
fn put(offer: &Arc<Offer>, prefix: String, other: Server) -> Result<Vec<Change>, MountError> {
    if !is_name(&prefix) {
        return Err(MountError::Prefix { prefix });
    }
    other.warn_of_what_stays_behind(&prefix);
    let mut mount = Mount {
        prefix,
        server: other,
        renamed: None,
    };
    if let (_, [name, ..]) = mount.renamed() {
        return Err(MountError::TooLong { name: name.clone() });
    }
    let mut changes = mount.changes();
    let replaced = offer.mount(mount).ok_or(MountError::Cycle)?;
    let gone = replaced.iter().flat_map(Mount::changes);
    let more: Vec<_> = gone.filter(|change| !changes.contains(change)).collect();
    changes.extend(more);
    Ok(changes)
}

/// A server in another one.
#[derive(Clone)]
pub(super) struct Mount {
    prefix: String,
    server: Server,
    renamed: Option<Renamed>,
}

/// A catalog as it looks behind a prefix.
#[derive(Clone)]
struct Renamed {
    of: Arc<Catalog>,
    catalog: Arc<Catalog>,
    too_long: Arc<[String]>,
}

impl Mount {
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn offer(&self) -> &Arc<Offer> {
        &self.server.shared.offer
    }

    /// What the server offers now, under the names it has behind the prefix; and names of tools that became too long.
    pub(super) fn renamed(&mut self) -> (&Catalog, &[String]) {
        let now = self.offer().catalog();
        let renamed = match self.renamed.take() {
            Some(known) if Arc::ptr_eq(&known.of, &now) => known,
            _ => Renamed::new(&now, &self.prefix),
        };
        let renamed = self.renamed.insert(renamed);
        (&renamed.catalog, &renamed.too_long)
    }

    /// What clients are told when the server comes or goes.
    fn changes(&self) -> Vec<Change> {
        let catalog = self.offer().catalog();
        [
            (catalog.tools.is_offered(), Change::ToolsChanged),
            (catalog.prompts.is_offered(), Change::PromptsChanged),
            (catalog.has_resources(), Change::ResourcesChanged),
        ]
        .into_iter()
        .filter_map(|(has, change)| has.then_some(change))
        .collect()
    }
}

impl Renamed {
    fn new(of: &Arc<Catalog>, prefix: &str) -> Self {
        let mut catalog = Catalog {
            resources: of.resources.clone(),
            templates: of.templates.clone(),
            ..Catalog::default()
        };
        let mut too_long = Vec::new();
        for tool in of.tools.iter() {
            let name = format!("{prefix}_{}", tool.name());
            if is_name(&name) {
                catalog.tools.put(Tool::clone(tool).renamed(name));
            } else {
                too_long.push(name);
            }
        }
        for prompt in of.prompts.iter() {
            let mut prompt = Prompt::clone(prompt);
            prompt.definition.name = format!("{prefix}_{}", prompt.definition.name);
            catalog.prompts.put(prompt);
        }
        Self {
            of: of.clone(),
            catalog: Arc::new(catalog),
            too_long: too_long.into(),
        }
    }
}
