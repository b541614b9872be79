//! Capabilities that clients and servers declare.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Unexpected, Visitor},
};
use serde_json::Value;

use super::JsonObject;

/// The capabilities of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// Capabilities outside the specification.
    #[serde(
        default,
        deserialize_with = "optional_settings",
        skip_serializing_if = "Option::is_none"
    )]
    pub experimental: Option<JsonObject>,
    /// Roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// Sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// Elicitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// The experimental tasks of 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    /// Supported extensions, by identifier, with their settings.
    #[serde(
        default,
        deserialize_with = "optional_settings",
        skip_serializing_if = "Option::is_none"
    )]
    pub extensions: Option<JsonObject>,
}

impl ClientCapabilities {
    /// Creates empty capabilities.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the client supports form elicitation; `elicitation: {}` implies it.
    pub fn can_elicit_form(&self) -> bool {
        self.elicitation
            .as_ref()
            .is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Returns whether the client supports URL elicitation.
    pub fn can_elicit_url(&self) -> bool {
        self.elicitation
            .as_ref()
            .is_some_and(|modes| modes.url.is_some())
    }

    /// Returns whether the client supports tools in sampling.
    pub fn can_sample_with_tools(&self) -> bool {
        self.sampling
            .as_ref()
            .is_some_and(|sampling| sampling.tools.is_some())
    }

    /// Returns whether the client declares an extension.
    pub fn has_extension(&self, identifier: &str) -> bool {
        self.extensions
            .as_ref()
            .is_some_and(|extensions| extensions.contains_key(identifier))
    }

    /// Returns the part of `required` that the client did not declare, or `None` if it declared everything.
    ///
    /// This is the `requiredCapabilities` of error -32021. Compares roots, sampling with its parts, elicitation with
    /// its modes, and extensions.
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

/// The capabilities of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Capabilities outside the specification.
    #[serde(
        default,
        deserialize_with = "optional_settings",
        skip_serializing_if = "Option::is_none"
    )]
    pub experimental: Option<JsonObject>,
    /// Log messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<JsonObject>,
    /// Completion of arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completions: Option<JsonObject>,
    /// Prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListCapability>,
    /// Resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// Tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListCapability>,
    /// The experimental tasks of 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    /// Supported extensions, by identifier, with their settings.
    #[serde(
        default,
        deserialize_with = "optional_settings",
        skip_serializing_if = "Option::is_none"
    )]
    pub extensions: Option<JsonObject>,
}

impl ServerCapabilities {
    /// Creates empty capabilities.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the server declares an extension.
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

/// The roots capability of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootsCapability {
    /// The client sends change notifications of the list (legacy era only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

setters!(RootsCapability { optional { list_changed: bool } });

/// The sampling capability of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingCapability {
    /// Including context of servers (since 2025-11-25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// Tools in sampling (since 2025-11-25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<JsonObject>,
}

setters!(SamplingCapability { optional { context: JsonObject, tools: JsonObject } });

/// The elicitation capability of a client; without a mode it means forms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// Form elicitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<JsonObject>,
    /// URL elicitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonObject>,
}

setters!(ElicitationCapability { optional { form: JsonObject, url: JsonObject } });

/// The capability of a server for a list: tools or prompts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListCapability {
    /// The server sends change notifications of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

setters!(ListCapability { optional { list_changed: bool } });

/// The resources capability of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// Clients can subscribe to changes of a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// The server sends change notifications of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

setters!(ResourcesCapability { optional { subscribe: bool, list_changed: bool } });

/// The tasks capability of either side in 2025-11-25.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TasksCapability {
    /// `tasks/list` is supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<JsonObject>,
    /// `tasks/cancel` is supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JsonObject>,
    /// The requests that may become tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<TaskRequests>,
}

setters!(TasksCapability { optional { list: JsonObject, cancel: JsonObject, requests: TaskRequests } });

/// The requests that may become tasks in 2025-11-25, each `{method: {}}` below its area.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskRequests {
    /// `{"call": {}}` on a server.
    #[serde(
        default,
        deserialize_with = "optional_settings",
        skip_serializing_if = "Option::is_none"
    )]
    pub tools: Option<JsonObject>,
    /// `{"createMessage": {}}` on a client.
    #[serde(
        default,
        deserialize_with = "optional_settings",
        skip_serializing_if = "Option::is_none"
    )]
    pub sampling: Option<JsonObject>,
    /// `{"create": {}}` on a client.
    #[serde(
        default,
        deserialize_with = "optional_settings",
        skip_serializing_if = "Option::is_none"
    )]
    pub elicitation: Option<JsonObject>,
}

setters!(TaskRequests { optional { tools: JsonObject, sampling: JsonObject, elicitation: JsonObject } });

/// Deserializes an object that may be absent or null, and rejects members that are arrays.
///
/// Other values are preserved, because some peers declare an experimental capability as `true`.
fn optional_settings<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<JsonObject>, D::Error> {
    let settings = Option::<CapabilitySettings>::deserialize(deserializer)?;
    Ok(settings.map(|settings| settings.0))
}

/// Any value except an array.
struct CapabilitySetting(Value);

impl<'de> Deserialize<'de> for CapabilitySetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Array(_) => Err(D::Error::invalid_type(Unexpected::Seq, &"object")),
            value => Ok(Self(value)),
        }
    }
}

/// An object of settings.
struct CapabilitySettings(JsonObject);

impl<'de> Deserialize<'de> for CapabilitySettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SettingsVisitor)
    }
}

struct SettingsVisitor;

impl<'de> Visitor<'de> for SettingsVisitor {
    type Value = CapabilitySettings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CapabilitySettings, A::Error> {
        let mut settings = JsonObject::new();
        while let Some((name, CapabilitySetting(value))) = map.next_entry()? {
            settings.insert(name, value);
        }
        Ok(CapabilitySettings(settings))
    }
}
