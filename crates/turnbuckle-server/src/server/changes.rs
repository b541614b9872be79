//! Changes of a running server, and the notifications about them.

use std::sync::Arc;

use turnbuckle_store::{ChangeTarget, ServerChange, TargetedChange};

use crate::{
    Prompt, Resource, ResourceTemplate, Server, Tool, catalog::Catalog, tools::InvalidTool,
};

impl Server {
    /// Adds a tool while the server runs, and notifies clients.
    ///
    /// A tool with the same name is replaced. Unlike [`tool`](Self::tool), this affects all clones of the server.
    ///
    /// # Panics
    ///
    /// As [`tool`](Self::tool).
    pub fn add_tool(&self, tool: Tool) {
        self.try_add_tool(tool)
            .unwrap_or_else(|error| error.panic());
    }

    /// Like [`add_tool`](Self::add_tool), with an error instead of a panic.
    pub fn try_add_tool(&self, tool: Tool) -> Result<(), InvalidTool> {
        tool.compile_schemas(self)?;
        self.change(ServerChange::ToolsChanged, |catalog| {
            catalog.tools.put(tool);
        });
        Ok(())
    }

    /// Removes a tool. Returns whether it existed. Running calls finish.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.change(ServerChange::ToolsChanged, |catalog| {
            catalog.tools.remove(name)
        })
    }

    /// Adds a resource while the server runs; see [`add_tool`](Self::add_tool).
    pub fn add_resource(&self, resource: Resource) {
        self.change(ServerChange::ResourcesChanged, |catalog| {
            catalog.resources.put(resource);
        });
    }

    /// Removes a resource. Returns whether it existed.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.change(ServerChange::ResourcesChanged, |catalog| {
            catalog.resources.remove(uri)
        })
    }

    /// Removes and adds resources as one change, with one notification.
    ///
    /// ```
    /// use turnbuckle_server::{Resource, Server, testing::ChangeRecorder};
    ///
    /// let server = Server::new("notes", "1.0.0").resource(Resource::text("notes://1", "1", "Buy milk."));
    /// let mut changes = ChangeRecorder::new(&server);
    /// let new = ["2", "3"].map(|name| Resource::text(format!("notes://{name}"), name, "Buy tea."));
    /// server.change_resources(["notes://1"], new);
    /// assert_eq!(changes.take().len(), 1);
    /// ```
    pub fn change_resources<U: AsRef<str>>(
        &self,
        removed: impl IntoIterator<Item = U>,
        added: impl IntoIterator<Item = Resource>,
    ) {
        self.change(ServerChange::ResourcesChanged, |catalog| {
            for uri in removed {
                catalog.resources.remove(uri.as_ref());
            }
            for resource in added {
                catalog.resources.put(resource);
            }
        });
    }

    /// Adds a resource template while the server runs; see [`add_tool`](Self::add_tool).
    pub fn add_template(&self, template: ResourceTemplate) {
        self.change(ServerChange::ResourcesChanged, |catalog| {
            catalog.templates.put(template);
        });
    }

    /// Removes a resource template. Returns whether it existed.
    pub fn remove_template(&self, template: &str) -> bool {
        self.change(ServerChange::ResourcesChanged, |catalog| {
            catalog.templates.remove(template)
        })
    }

    /// Adds a prompt while the server runs; see [`add_tool`](Self::add_tool).
    pub fn add_prompt(&self, prompt: Prompt) {
        self.change(ServerChange::PromptsChanged, |catalog| {
            catalog.prompts.put(prompt);
        });
    }

    /// Removes a prompt. Returns whether it existed.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(ServerChange::PromptsChanged, |catalog| {
            catalog.prompts.remove(name)
        })
    }

    /// Changes the catalog. Concurrent changes are not lost.
    fn change<T>(&self, change: ServerChange, apply: impl FnOnce(&mut Catalog) -> T) -> T {
        let outcome = self.inner.composition.change(apply);
        self.inner.composition.publish_list(change);
        outcome
    }

    /// Notifies subscribed clients that a resource was updated.
    pub fn resource_updated(&self, uri: impl Into<Arc<str>>) {
        self.publish(ServerChange::ResourceUpdated { uri: uri.into() });
    }

    /// Notifies clients that the list of tools changed.
    pub fn tools_changed(&self) {
        self.publish(ServerChange::ToolsChanged);
    }

    /// Notifies clients that the list of prompts changed.
    pub fn prompts_changed(&self) {
        self.publish(ServerChange::PromptsChanged);
    }

    /// Notifies clients that the list of resources changed.
    pub fn resources_changed(&self) {
        self.publish(ServerChange::ResourcesChanged);
    }

    /// Notifies the client that received a URL elicitation of its completion, if its revision has this notification.
    ///
    /// The id is that of [`Elicitation::id`](crate::Elicitation::id). A disconnected client is not notified.
    pub fn elicitation_complete(&self, id: impl Into<Arc<str>>) {
        self.publish(ServerChange::ElicitationCompleted { id: id.into() });
    }

    /// Notifies only the clients of a target of a change: for a [relay](crate::relay::Relay), if its clients see
    /// different things. Like every change, it reaches those that are subscribed to it.
    pub fn publish_to(&self, target: ChangeTarget, change: ServerChange) {
        self.publish(match target {
            ChangeTarget::Everyone => change,
            target => ServerChange::Targeted(Arc::new(TargetedChange { target, change })),
        });
    }

    pub(crate) fn publish(&self, change: ServerChange) {
        self.inner.composition.publish(change);
    }
}
