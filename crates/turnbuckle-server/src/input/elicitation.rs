//! Elicitation: asking the user through a form or a URL.

use std::borrow::Cow;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use turnbuckle_protocol::{
    json,
    types::{
        ClientCapabilities, ElicitAction, ElicitFormParams, ElicitParams, ElicitResult,
        ElicitUrlParams, ElicitationCapability, elicitation::ElicitSchema,
    },
};
use turnbuckle_text::{
    formats::has_uri_characters,
    url::{HttpUrl, ParseUrlError},
};

use super::ClientRequestError;

/// A request for user input: a form or a URL.
#[derive(Debug)]
pub struct Elicitation<T> {
    kind: Result<ElicitParams, String>,
    key: Cow<'static, str>,
    read: fn(Map<String, Value>) -> Result<T, String>,
}

impl Elicitation<()> {
    /// Creates a form that fills a `T`: a flat struct of strings, numbers, booleans and enums.
    ///
    /// Doc comments become field descriptions; the client fills in defaults. Fields named like a password, key, token or
    /// card number are rejected, because the client would see the value; use [`Elicitation::url`] for those.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use turnbuckle_server::Elicitation;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Order {
    ///     /// The number of pizzas.
    ///     count: u8,
    /// }
    ///
    /// let request = Elicitation::form::<Order>("What would you like?");
    /// ```
    pub fn form<T: DeserializeOwned + JsonSchema>(message: impl Into<String>) -> Elicitation<T> {
        Elicitation {
            kind: form_schema::<T>().map(|schema| ElicitFormParams::new(message, schema).into()),
            key: T::schema_name(),
            read: |content| {
                json::from_value(&Value::Object(content)).map_err(|error| error.to_string())
            },
        }
    }

    /// Creates a form with a schema. The response is a JSON object.
    pub fn raw_form(
        message: impl Into<String>,
        schema: ElicitSchema,
    ) -> Elicitation<Map<String, Value>> {
        Elicitation {
            kind: Ok(ElicitFormParams::new(message, schema).into()),
            key: Cow::Borrowed("form"),
            read: Ok,
        }
    }
}

impl Elicitation<()> {
    /// Creates a URL elicitation, for input that must not pass through the client: passwords, payments, logins.
    ///
    /// Acceptance only means that the user opened the URL. Check your own records for completion.
    ///
    /// Sending it fails unless this is an `https` URL (or `http`, for development) without user information
    /// (`https://user:password@…`).
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        let params = ElicitUrlParams::new(message, url).elicitation_id(elicitation_id());
        Self {
            kind: Ok(params.into()),
            key: Cow::Borrowed("url"),
            read: |_| Ok(()),
        }
    }
}

impl Elicitation<()> {
    /// Sets the elicitation id, instead of a random one.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        if let Ok(ElicitParams::Url(elicitation)) = &mut self.kind {
            elicitation.elicitation_id = Some(id.into());
        }
        self
    }

    /// The elicitation id, for [`Server::elicitation_complete`](crate::Server::elicitation_complete).
    pub fn id(&self) -> Option<&str> {
        match &self.kind {
            Ok(ElicitParams::Url(elicitation)) => elicitation.elicitation_id.as_deref(),
            _ => None,
        }
    }
}

impl<T> Elicitation<T> {
    /// Sets the key that identifies the request within the handler.
    ///
    /// By default it is the name of the form's type, `form` for [`raw_form`](Elicitation::raw_form) or `url`. A handler
    /// that sends two requests with the same default sets different keys; in a loop, use for example
    /// `format!("name-{attempt}")`. A key must stay the same when the handler runs again.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Cow::Owned(key.into());
        self
    }

    /// Removes the key.
    pub(super) fn take_key(&mut self) -> Cow<'static, str> {
        std::mem::take(&mut self.key)
    }

    /// The capability that the client must declare.
    pub(super) fn required_capability(&self) -> ClientCapabilities {
        let modes = ElicitationCapability::default();
        ClientCapabilities::new().elicitation(match self.kind {
            Ok(ElicitParams::Url(_)) => modes.url(Map::new()),
            _ => modes,
        })
    }

    pub(super) fn is_supported_by(&self, client: &ClientCapabilities) -> bool {
        match self.kind {
            Ok(ElicitParams::Url(_)) => client.can_elicit_url(),
            _ => client.can_elicit_form(),
        }
    }

    #[expect(
        clippy::type_complexity,
        reason = "used once, by the function that sends the request"
    )]
    pub(super) fn into_parts(
        self,
    ) -> Result<
        (
            ElicitParams,
            impl FnOnce(ElicitResult) -> Result<ElicitationOutcome<T>, String>,
        ),
        ClientRequestError,
    > {
        let params = self
            .kind
            .map_err(|reason| ClientRequestError::InvalidRequest { reason })?;
        validate(&params).map_err(|reason| ClientRequestError::InvalidRequest { reason })?;
        let read = self.read;
        let read = move |result: ElicitResult| match result.action {
            ElicitAction::Accept => {
                read(result.content.unwrap_or_default()).map(ElicitationOutcome::Accepted)
            }
            ElicitAction::Decline => Ok(ElicitationOutcome::Declined),
            ElicitAction::Cancel => Ok(ElicitationOutcome::Cancelled),
        };
        Ok((params, read))
    }
}

/// The user's response to an elicitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElicitationOutcome<T> {
    /// The user accepted.
    Accepted(T),
    /// The user declined.
    Declined,
    /// The user dismissed the request without deciding.
    Cancelled,
}

impl<T> ElicitationOutcome<T> {
    /// Returns the accepted value, if any.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(response) => Some(response),
            Self::Declined | Self::Cancelled => None,
        }
    }
}

/// Generates the restricted form schema of a Rust type.
fn form_schema<T: JsonSchema>() -> Result<ElicitSchema, String> {
    let settings = SchemaSettings::draft2020_12()
        .for_deserialize()
        .with(|settings| settings.inline_subschemas = true);
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    if let Some(members) = schema.as_object_mut() {
        // The default dialect is assumed.
        members.remove("$schema");
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(simplify);
    }
    json::from_value(&schema)
        .map_err(|error| format!("{} is not a flat form: {error}", T::schema_name()))
}

/// Removes what Rust types express and forms cannot: null for optional fields, integer widths.
fn simplify(property: &mut Value) {
    if let Some(non_null) = property
        .get_mut("anyOf")
        .and_then(Value::as_array_mut)
        .and_then(|alternatives| {
            let at = alternatives
                .iter()
                .position(|one| one.get("type") != Some(&Value::from("null")))?;
            Some(alternatives.swap_remove(at))
        })
    {
        let description = property.get("description").cloned();
        *property = non_null;
        if let (Some(description), Some(members)) = (description, property.as_object_mut()) {
            members.insert("description".into(), description);
        }
    }
    let Some(members) = property.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(types)) = members.get("type") {
        let non_null = types
            .iter()
            .find(|one| *one != &Value::from("null"))
            .cloned();
        members.insert("type".into(), non_null.unwrap_or(Value::Null));
    }
    if members.get("type") != Some(&Value::from("string")) {
        members.remove("format");
    }
}

/// Rejects elicitations that would expose secrets, and invalid URLs.
fn validate(params: &ElicitParams) -> Result<(), String> {
    match params {
        ElicitParams::Url(elicitation) => validate_url(&elicitation.url),
        ElicitParams::Form(form) => {
            let mut names = form.requested_schema.fields().map(|(name, _)| name);
            match names.find(|name| is_sensitive(name)) {
                Some(name) => Err(format!(
                    "a form must not contain `{name}`, because the client would see the value; use a URL elicitation"
                )),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Rejects what is not an absolute web URL, such as a file or script. A fragment is allowed, because a browser opens the URL.
fn validate_url(url: &str) -> Result<(), String> {
    let (before, fragment) = url.split_once('#').unwrap_or((url, ""));
    match HttpUrl::parse(before) {
        Err(ParseUrlError::Userinfo) => {
            Err("a URL must not contain a user's name or password".to_owned())
        }
        Ok(_) if has_uri_characters(fragment) => Ok(()),
        _ => Err(format!("{url:?} is not a web URL")),
    }
}

fn elicitation_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("random bytes are available");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names of sensitive fields, in lower case and without separators.
const SENSITIVE_FIELDS: [&str; 22] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authtoken",
    "bearertoken",
    "cardnumber",
    "clientsecret",
    "creditcard",
    "creditcardnumber",
    "cvc",
    "cvv",
    "passphrase",
    "passwd",
    "password",
    "pincode",
    "privatekey",
    "refreshtoken",
    "secretkey",
    "seedphrase",
    "securitycode",
    "userpassword",
];

/// Returns whether a field name denotes a password, key, token or payment credential.
///
/// Only unambiguous names match; other wordings are the author's responsibility.
fn is_sensitive(field: &str) -> bool {
    let letters = field.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    SENSITIVE_FIELDS.contains(&&*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_it_is_spelt_a_secret_is_recognised() {
        for field in [
            "password",
            "Password",
            "apiKey",
            "api_key",
            "API-KEY",
            "credit card number",
        ] {
            assert!(is_sensitive(field), "{field}");
        }
    }

    #[test]
    fn what_may_mean_something_else_is_let_through() {
        for field in [
            "",
            "name",
            "token_count",
            "secret_santa",
            "password_hint",
            "key",
            "pin",
        ] {
            assert!(!is_sensitive(field), "{field}");
        }
    }
}
