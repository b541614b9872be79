//! Form elicitation.

#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::Value;
use turnbuckle_protocol::{
    RpcError,
    types::{ElicitAction, ElicitFormParams, ElicitResult, JsonObject, elicitation::ElicitSchema},
};

use crate::callbacks::form_validation;

/// Maximum number of fields; a larger form is rejected as abusive.
const MAX_FIELDS: usize = 1_000;

/// A form that the server asks the user to fill in.
///
/// Show [`message`](Self::message) and the fields of [`schema`](Self::schema), prefilled with
/// [`defaults`](Self::defaults), and return the result of [`accept`](Self::accept), [`decline`](Self::decline) or
/// [`cancel`](Self::cancel).
#[derive(Clone, Debug)]
pub struct FormRequest {
    params: ElicitFormParams,
}

impl FormRequest {
    pub(super) fn new(params: ElicitFormParams) -> Result<Self, RpcError> {
        if params.requested_schema.fields().count() > MAX_FIELDS {
            let message = format!("the form has more than {MAX_FIELDS} fields");
            return Err(RpcError::invalid_params(message));
        }
        Ok(Self { params })
    }

    /// Returns the message to the user.
    pub fn message(&self) -> &str {
        &self.params.message
    }

    /// Returns the schema, with the fields in order.
    pub fn schema(&self) -> &ElicitSchema {
        &self.params.requested_schema
    }

    /// Returns the content with all defaults, and nothing else.
    pub fn defaults(&self) -> JsonObject {
        let mut content = JsonObject::new();
        form_validation::apply_defaults(self.schema(), &mut content);
        content
    }

    /// Accepts the form with this content: an object with a member for each field.
    ///
    /// Missing or null fields get their default. Invalid content is an error, and nothing is sent.
    pub fn accept(&self, content: impl Serialize) -> Result<ElicitResult, FormError> {
        match serde_json::to_value(content) {
            Ok(Value::Object(content)) => self.accept_object(content),
            _ => Err(FormError::NotAnObject),
        }
    }

    /// Accepts the form with all defaults.
    pub fn accept_defaults(&self) -> Result<ElicitResult, FormError> {
        self.accept_object(JsonObject::new())
    }

    /// Checks the value of one field, so that a user can correct it before the form is accepted.
    pub fn check_field(&self, name: &str, value: &Value) -> Result<(), FormError> {
        form_validation::validate_field(self.schema(), name, value)
    }

    /// Declines the form.
    pub fn decline(&self) -> ElicitResult {
        ElicitResult::new(ElicitAction::Decline)
    }

    /// Dismisses the form without a choice.
    pub fn cancel(&self) -> ElicitResult {
        ElicitResult::new(ElicitAction::Cancel)
    }

    fn accept_object(&self, mut content: JsonObject) -> Result<ElicitResult, FormError> {
        content.retain(|_, value| !value.is_null());
        form_validation::apply_defaults(self.schema(), &mut content);
        form_validation::validate(self.schema(), &content)?;
        Ok(ElicitResult::accept(content))
    }

    /// Validates the result of a callback: accepted content must be valid, and content of other actions is removed.
    pub(super) fn validate(&self, response: FormResponse) -> Result<ElicitResult, RpcError> {
        let checked = response.0.and_then(|result| match result.action {
            ElicitAction::Accept => {
                let content = result.content.unwrap_or_default();
                Ok(self.accept_object(content)?.meta(result.meta))
            }
            action => Ok(ElicitResult::new(action).meta(result.meta)),
        });
        checked.map_err(|error| {
            RpcError::internal(format!(
                "the client's response does not match the form: {error}"
            ))
        })
    }
}

/// The result of a form callback.
///
/// Created from an [`ElicitResult`], or from the result of [`FormRequest::accept`].
#[derive(Debug)]
pub struct FormResponse(Result<ElicitResult, FormError>);

impl From<ElicitResult> for FormResponse {
    fn from(response: ElicitResult) -> Self {
        Self(Ok(response))
    }
}

impl From<Result<ElicitResult, FormError>> for FormResponse {
    fn from(response: Result<ElicitResult, FormError>) -> Self {
        Self(response)
    }
}

/// The content of a form is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The content is not an object.
    #[error("the content of a form must be an object")]
    NotAnObject,
    /// The form does not have this field.
    #[error("the form does not have a field `{0}`")]
    UnknownField(String),
    /// A required field is missing.
    #[error("`{0}` is required")]
    Missing(String),
    /// The value of a field is invalid.
    #[error("`{field}` must be {expected}")]
    Invalid {
        /// The field.
        field: String,
        /// A description of valid values.
        expected: String,
    },
}
