//! A form that a server wants filled in.

mod check;
mod formats;

pub(super) use formats::has_uri_characters;

use serde::Serialize;
use serde_json::Value;
use turnbuckle_protocol::{
    RpcError,
    types::{ElicitAction, ElicitFormParams, ElicitResult, JsonObject, elicitation::ElicitSchema},
};

/// More fields than anyone fills in: such a form is meant to tire, not to be answered.
const MOST_FIELDS: usize = 1_000;

/// A form that a server wants the user to fill in.
///
/// Show [`message`](Self::message) and the fields of [`schema`](Self::schema), begin with [`defaults`](Self::defaults),
/// and end with one of [`accept`](Self::accept), [`decline`](Self::decline) and [`cancel`](Self::cancel).
#[derive(Clone, Debug)]
pub struct FormRequest {
    params: ElicitFormParams,
}

impl FormRequest {
    pub(super) fn new(params: ElicitFormParams) -> Result<Self, RpcError> {
        if params.requested_schema.fields().count() > MOST_FIELDS {
            let message = format!("a form has at most {MOST_FIELDS} fields");
            return Err(RpcError::invalid_params(message));
        }
        Ok(Self { params })
    }

    /// Returns what the server tells the user.
    pub fn message(&self) -> &str {
        &self.params.message
    }

    /// Returns what the form asks for, its fields in order.
    pub fn schema(&self) -> &ElicitSchema {
        &self.params.requested_schema
    }

    /// Returns the content that has every default filled in, and nothing else.
    pub fn defaults(&self) -> JsonObject {
        let mut content = JsonObject::new();
        check::fill_in(self.schema(), &mut content);
        content
    }

    /// Accepts with what was filled in: an object with a member for each field.
    ///
    /// Fields that are missing or null get their default. What does not fit the form is an error, and nothing is sent.
    pub fn accept(&self, content: impl Serialize) -> Result<ElicitResult, FormError> {
        match serde_json::to_value(content) {
            Ok(Value::Object(content)) => self.accept_object(content),
            _ => Err(FormError::NotAnObject),
        }
    }

    /// Accepts with every default as it is.
    pub fn accept_defaults(&self) -> Result<ElicitResult, FormError> {
        self.accept_object(JsonObject::new())
    }

    /// Says no.
    pub fn decline(&self) -> ElicitResult {
        ElicitResult::new(ElicitAction::Decline)
    }

    /// Dismisses the form without a choice.
    pub fn cancel(&self) -> ElicitResult {
        ElicitResult::new(ElicitAction::Cancel)
    }

    fn accept_object(&self, mut content: JsonObject) -> Result<ElicitResult, FormError> {
        content.retain(|_, value| !value.is_null());
        check::fill_in(self.schema(), &mut content);
        check::check(self.schema(), &content)?;
        Ok(ElicitResult::accept(content))
    }

    /// Checks what a callback returned, however it was made: an accepted form fits, and nothing else has content.
    pub(super) fn check(&self, answer: FormAnswer) -> Result<ElicitResult, RpcError> {
        let checked = answer.0.and_then(|result| match result.action {
            ElicitAction::Accept => {
                let content = result.content.unwrap_or_default();
                Ok(self.accept_object(content)?.meta(result.meta))
            }
            action => Ok(ElicitResult::new(action).meta(result.meta)),
        });
        checked.map_err(|error| {
            RpcError::internal(format!(
                "the client's answer does not fit the form: {error}"
            ))
        })
    }
}

/// What a callback makes of a form: an answer, or why there is none.
///
/// Made from an [`ElicitResult`], or from what [`FormRequest::accept`] returns.
#[derive(Debug)]
pub struct FormAnswer(Result<ElicitResult, FormError>);

impl From<ElicitResult> for FormAnswer {
    fn from(answer: ElicitResult) -> Self {
        Self(Ok(answer))
    }
}

impl From<Result<ElicitResult, FormError>> for FormAnswer {
    fn from(answer: Result<ElicitResult, FormError>) -> Self {
        Self(answer)
    }
}

/// Why content does not fit a form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The content is no object.
    #[error("the content of a form is an object")]
    NotAnObject,
    /// The form does not ask for this.
    #[error("the form has no field `{0}`")]
    UnknownField(String),
    /// The form asks for this, and it is not there.
    #[error("`{0}` has to be filled in")]
    Missing(String),
    /// The value is not what the form asks for.
    #[error("`{field}` must be {expected}")]
    Unfit {
        /// The field.
        field: String,
        /// What the form asks for.
        expected: String,
    },
}

#[cfg(test)]
mod tests;
