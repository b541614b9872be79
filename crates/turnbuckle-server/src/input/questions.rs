//! What a client can be asked.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use turnbuckle_protocol::{
    json,
    types::{
        ClientCapabilities, CreateMessageParams, ElicitAction, ElicitFormParams, ElicitParams,
        ElicitResult, ElicitUrlParams, ElicitationCapability, ModelPreferences, SamplingCapability,
        SamplingMessage, Tool, ToolChoice, elicitation::ElicitSchema,
    },
};

use super::{AskError, conversation, secrets};

/// A type that a form can fill in: a flat struct of strings, numbers, booleans and choices.
///
/// Implemented for every type that serde reads and schemars describes; doc comments become the descriptions of the
/// fields, defaults are filled in by the client. A field whose name asks for a password, a key, a token or a card number is
/// refused: such a thing must not pass through the client, and [`Elicitation::url`] is the way to ask for it.
pub trait Form: DeserializeOwned + JsonSchema {
    /// Asks the user to fill in this form.
    fn ask(message: impl Into<String>) -> Elicitation<Self> {
        Elicitation {
            kind: form_schema::<Self>().map(|schema| ElicitFormParams::new(message, schema).into()),
            read: |content| {
                json::from_value(&Value::Object(content)).map_err(|error| error.to_string())
            },
        }
    }
}

impl<T: DeserializeOwned + JsonSchema> Form for T {}

/// A question to the user.
#[derive(Debug)]
pub struct Elicitation<T> {
    kind: Result<ElicitParams, String>,
    read: fn(Map<String, Value>) -> Result<T, String>,
}

impl Elicitation<Map<String, Value>> {
    /// Asks the user to fill in a form that is described by hand.
    pub fn form(message: impl Into<String>, schema: ElicitSchema) -> Self {
        Self {
            kind: Ok(ElicitFormParams::new(message, schema).into()),
            read: Ok,
        }
    }
}

impl Elicitation<()> {
    /// Sends the user to a URL, for what must not pass through the client: passwords, payments, logins.
    ///
    /// That the user accepts means only that they went there. Ask your own records whether they finished.
    ///
    /// Asking fails if this is not the URL of a web page, in `https` or, while developing, in `http`, and if it names a
    /// user (`https://user:password@…`).
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        let params = ElicitUrlParams::new(message, url).elicitation_id(elicitation_id());
        Self {
            kind: Ok(params.into()),
            read: |_| Ok(()),
        }
    }
}

impl Elicitation<()> {
    /// Names the visit, instead of a random name that nobody can guess.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        if let Ok(ElicitParams::Url(visit)) = &mut self.kind {
            visit.elicitation_id = Some(id.into());
        }
        self
    }

    /// The name of the visit, by which [`Server::elicitation_complete`](crate::Server::elicitation_complete) tells the
    /// client later that it is over.
    pub fn id(&self) -> Option<&str> {
        match &self.kind {
            Ok(ElicitParams::Url(visit)) => visit.elicitation_id.as_deref(),
            _ => None,
        }
    }
}

impl<T> Elicitation<T> {
    /// What a client must declare to be asked this.
    pub(super) fn needs(&self) -> ClientCapabilities {
        let modes = ElicitationCapability::default();
        ClientCapabilities::new().elicitation(match self.kind {
            Ok(ElicitParams::Url(_)) => modes.url(Map::new()),
            _ => modes,
        })
    }

    pub(super) fn is_offered_by(&self, client: &ClientCapabilities) -> bool {
        match self.kind {
            Ok(ElicitParams::Url(_)) => client.can_elicit_url(),
            _ => client.can_elicit_form(),
        }
    }

    #[expect(
        clippy::type_complexity,
        reason = "used once, by the function that asks"
    )]
    pub(super) fn into_parts(
        self,
    ) -> Result<
        (
            ElicitParams,
            impl FnOnce(ElicitResult) -> Result<Elicited<T>, String>,
        ),
        AskError,
    > {
        let params = self.kind.map_err(|reason| AskError::Unaskable { reason })?;
        check(&params).map_err(|reason| AskError::Unaskable { reason })?;
        let read = self.read;
        let read = move |result: ElicitResult| match result.action {
            ElicitAction::Accept => {
                read(result.content.unwrap_or_default()).map(Elicited::Accepted)
            }
            ElicitAction::Decline => Ok(Elicited::Declined),
            ElicitAction::Cancel => Ok(Elicited::Cancelled),
        };
        Ok((params, read))
    }
}

/// What the user made of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elicited<T> {
    /// The user answered.
    Accepted(T),
    /// The user said no.
    Declined,
    /// The user closed the question without deciding.
    Cancelled,
}

impl<T> Elicited<T> {
    /// The answer, if there is one.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(answer) => Some(answer),
            Self::Declined | Self::Cancelled => None,
        }
    }
}

/// A question to the client's model.
#[derive(Debug, Clone)]
pub struct Sampling {
    params: CreateMessageParams,
}

impl Sampling {
    /// Asks with one user message, for at most 1,000 tokens.
    pub fn text(prompt: impl Into<String>) -> Self {
        let message = SamplingMessage::user(prompt.into());
        Self {
            params: CreateMessageParams::new([message], 1_000),
        }
    }

    /// Asks with a conversation.
    pub fn messages(messages: impl Into<Vec<SamplingMessage>>, max_tokens: u64) -> Self {
        Self {
            params: CreateMessageParams::new(messages, max_tokens),
        }
    }

    /// Limits the length of the answer.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.params.max_tokens = tokens;
        self
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.params.system_prompt = Some(prompt.into());
        self
    }

    /// Says what kind of model is wanted.
    #[must_use]
    pub fn preferences(mut self, preferences: ModelPreferences) -> Self {
        self.params.model_preferences = Some(preferences);
        self
    }

    /// Lets the model call tools; needs a client that can do that.
    #[must_use]
    pub fn tools(mut self, tools: impl Into<Vec<Tool>>, choice: Option<ToolChoice>) -> Self {
        self.params.tools = Some(tools.into());
        self.params.tool_choice = choice;
        self
    }

    /// The parameters as a whole, for what has no method here.
    pub fn params_mut(&mut self) -> &mut CreateMessageParams {
        &mut self.params
    }

    pub(super) fn needs(&self) -> ClientCapabilities {
        let sampling = SamplingCapability::default();
        ClientCapabilities::new().sampling(match self.params.tools {
            Some(_) => sampling.tools(Map::new()),
            None => sampling,
        })
    }

    pub(super) fn is_offered_by(&self, client: &ClientCapabilities) -> bool {
        match self.params.tools {
            Some(_) => client.can_sample_with_tools(),
            None => client.sampling.is_some(),
        }
    }

    pub(super) fn into_params(self) -> Result<CreateMessageParams, AskError> {
        conversation::check(&self.params.messages)
            .map_err(|reason| AskError::Unaskable { reason })?;
        Ok(self.params)
    }
}

/// The restricted schema of a form, from a Rust type.
fn form_schema<T: JsonSchema>() -> Result<ElicitSchema, String> {
    let settings = SchemaSettings::draft2020_12()
        .for_deserialize()
        .with(|settings| settings.inline_subschemas = true);
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    if let Some(members) = schema.as_object_mut() {
        // The dialect is the default one.
        members.remove("$schema");
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(simplify);
    }
    serde_json::from_value(schema)
        .map_err(|error| format!("{} is no flat form: {error}", T::schema_name()))
}

/// Takes out what Rust types say and forms cannot: null for optional fields, widths of numbers.
fn simplify(property: &mut Value) {
    if let Some(some) = property
        .get_mut("anyOf")
        .and_then(Value::as_array_mut)
        .and_then(|either| {
            let at = either
                .iter()
                .position(|one| one.get("type") != Some(&Value::from("null")))?;
            Some(either.swap_remove(at))
        })
    {
        let description = property.get("description").cloned();
        *property = some;
        if let (Some(description), Some(members)) = (description, property.as_object_mut()) {
            members.insert("description".into(), description);
        }
    }
    let Some(members) = property.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(types)) = members.get("type") {
        let some = types
            .iter()
            .find(|one| *one != &Value::from("null"))
            .cloned();
        members.insert("type".into(), some.unwrap_or(Value::Null));
    }
    if members.get("type") != Some(&Value::from("string")) {
        members.remove("format");
    }
}

/// Says what must not be asked like this: neither what passes through the client, nor what is put into a URL, is secret.
fn check(params: &ElicitParams) -> Result<(), String> {
    match params {
        ElicitParams::Url(visit) if !is_web_address(&visit.url) => {
            Err(format!("{:?} is no URL of a web page", visit.url))
        }
        ElicitParams::Url(visit) if has_user(&visit.url) => {
            Err("a URL must not contain a user's name or password".to_owned())
        }
        ElicitParams::Form(form) => {
            let mut names = form.requested_schema.fields().map(|(name, _)| name);
            match names.find(|name| secrets::is_asked_by(name)) {
                Some(name) => Err(format!(
                    "a form must not ask for `{name}`, which the client would see; send the user to a URL"
                )),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Says whether a URL names a user before its host.
fn has_user(url: &str) -> bool {
    let url = url.parse::<http::Uri>().ok();
    url.is_some_and(|url| url.authority().is_some_and(|it| it.as_str().contains('@')))
}

/// Says whether a text is an absolute URL that a browser opens, and not a file or a script.
fn is_web_address(url: &str) -> bool {
    url.parse::<http::Uri>().is_ok_and(|url| {
        matches!(url.scheme_str(), Some("https" | "http"))
            && url.host().is_some_and(|host| !host.is_empty())
    })
}

fn elicitation_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
