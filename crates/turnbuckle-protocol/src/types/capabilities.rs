//! What each side says it can do.

use serde::{Deserialize, Serialize};

use super::{JsonObject, setters::setters, settings};

/// What a client can do for a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// Capabilities outside the specification.
    #[serde(
        default,
        deserialize_with = "settings::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub experimental: Option<JsonObject>,
    /// It can list its roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// It can ask its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// It can ask its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// It knows the experimental tasks of 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    /// Extensions it supports, by identifier, with their settings.
    #[serde(
        default,
        deserialize_with = "settings::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub extensions: Option<JsonObject>,
}

impl ClientCapabilities {
    /// Creates capabilities of a client that can do nothing for the server.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says whether the client can show forms; `elicitation: {}` means that it can.
    pub fn can_elicit_form(&self) -> bool {
        self.elicitation
            .as_ref()
            .is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Says whether the client can send its user to a URL.
    pub fn can_elicit_url(&self) -> bool {
        self.elicitation
            .as_ref()
            .is_some_and(|modes| modes.url.is_some())
    }

    /// Says whether the client can let its model use tools while sampling.
    pub fn can_sample_with_tools(&self) -> bool {
        self.sampling
            .as_ref()
            .is_some_and(|sampling| sampling.tools.is_some())
    }

    /// Says whether the client declares an extension.
    pub fn has_extension(&self, identifier: &str) -> bool {
        self.extensions
            .as_ref()
            .is_some_and(|extensions| extensions.contains_key(identifier))
    }

    /// Returns what of `required` the client did not declare, or nothing if it declared all.
    ///
    /// This is the `requiredCapabilities` of error -32021. Roots, sampling with its parts, elicitation with its modes,
    /// and extensions are looked at.
    pub fn missing(&self, required: &Self) -> Option<Self> {
        let mut missing = Self::new();
        if self.roots.is_none() {
            missing.roots.clone_from(&required.roots);
        }
        if let Some(wanted) = &required.sampling {
            let declared = self.sampling.as_ref();
            let lacks_tools =
                wanted.tools.is_some() && declared.is_none_or(|has| has.tools.is_none());
            let lacks_context =
                wanted.context.is_some() && declared.is_none_or(|has| has.context.is_none());
            if declared.is_none() || lacks_tools || lacks_context {
                missing.sampling = Some(SamplingCapability {
                    tools: lacks_tools.then(JsonObject::new),
                    context: lacks_context.then(JsonObject::new),
                });
            }
        }
        if required.elicitation.is_some() {
            let lacks_form = required.can_elicit_form() && !self.can_elicit_form();
            let lacks_url = required.can_elicit_url() && !self.can_elicit_url();
            if lacks_form || lacks_url {
                missing.elicitation = Some(ElicitationCapability {
                    form: lacks_form.then(JsonObject::new),
                    url: lacks_url.then(JsonObject::new),
                });
            }
        }
        let wanted = required.extensions.iter().flatten();
        let lacking: JsonObject = wanted
            .filter(|(identifier, _)| !self.has_extension(identifier))
            .map(|(identifier, settings)| (identifier.clone(), settings.clone()))
            .collect();
        if !lacking.is_empty() {
            missing.extensions = Some(lacking);
        }
        (missing != Self::new()).then_some(missing)
    }
}

setters!(ClientCapabilities {
    optional {
        experimental: JsonObject,
        roots: RootsCapability,
        sampling: SamplingCapability,
        elicitation: ElicitationCapability,
        tasks: TasksCapability,
        extensions: JsonObject,
    }
});

/// What a server can do for a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Capabilities outside the specification.
    #[serde(
        default,
        deserialize_with = "settings::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub experimental: Option<JsonObject>,
    /// It sends log messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<JsonObject>,
    /// It completes arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completions: Option<JsonObject>,
    /// It has prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListCapability>,
    /// It has resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// It has tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListCapability>,
    /// It knows the experimental tasks of 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    /// Extensions it supports, by identifier, with their settings.
    #[serde(
        default,
        deserialize_with = "settings::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub extensions: Option<JsonObject>,
}

impl ServerCapabilities {
    /// Creates capabilities of a server that offers nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says whether the server declares an extension.
    pub fn has_extension(&self, identifier: &str) -> bool {
        self.extensions
            .as_ref()
            .is_some_and(|extensions| extensions.contains_key(identifier))
    }
}

setters!(ServerCapabilities {
    optional {
        experimental: JsonObject,
        logging: JsonObject,
        completions: JsonObject,
        prompts: ListCapability,
        resources: ResourcesCapability,
        tools: ListCapability,
        tasks: TasksCapability,
        extensions: JsonObject,
    }
});

/// How a client supports roots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootsCapability {
    /// It tells when the list changes (handshake revisions only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

setters!(RootsCapability { optional { list_changed: bool } });

/// How a client supports sampling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingCapability {
    /// It can include context from servers (since 2025-11-25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// It lets the model use tools (since 2025-11-25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<JsonObject>,
}

setters!(SamplingCapability { optional { context: JsonObject, tools: JsonObject } });

/// How a client can ask its user; neither mode means forms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// It shows forms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<JsonObject>,
    /// It opens URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonObject>,
}

setters!(ElicitationCapability { optional { form: JsonObject, url: JsonObject } });

/// How a server supports a list: of tools or of prompts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListCapability {
    /// It tells when the list changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

setters!(ListCapability { optional { list_changed: bool } });

/// How a server supports resources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// It tells when a resource changes that the client subscribed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// It tells when the list changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

setters!(ResourcesCapability { optional { subscribe: bool, list_changed: bool } });

/// How either side supports the tasks of 2025-11-25.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TasksCapability {
    /// `tasks/list` works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<JsonObject>,
    /// `tasks/cancel` works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JsonObject>,
    /// Which requests may become tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<TaskRequests>,
}

setters!(TasksCapability { optional { list: JsonObject, cancel: JsonObject, requests: TaskRequests } });

/// Which requests may become tasks in 2025-11-25, each `{method: {}}` below its area.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskRequests {
    /// `{"call": {}}` on a server.
    #[serde(
        default,
        deserialize_with = "settings::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub tools: Option<JsonObject>,
    /// `{"createMessage": {}}` on a client.
    #[serde(
        default,
        deserialize_with = "settings::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub sampling: Option<JsonObject>,
    /// `{"create": {}}` on a client.
    #[serde(
        default,
        deserialize_with = "settings::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub elicitation: Option<JsonObject>,
}

setters!(TaskRequests { optional { tools: JsonObject, sampling: JsonObject, elicitation: JsonObject } });
