//! Validates messages against the shapes of each revision.
//!
//! The shapes are data: `message_schema/*.shapes`, one file per revision, in a notation that [`parser`] reads. Order,
//! meaning and transports are not checked here. Unknown fields are always allowed.

mod alternatives;
mod envelope;
mod expression;
mod parser;
mod schema_set;
mod validator;
mod violation_text;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

pub(crate) use self::envelope::{MessageKind, envelope, messages};
use self::{expression::OBJECT, schema_set::SchemaSet, validator::MessageValidator};

/// A deviation of a message from the schema of its revision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SchemaViolation {
    /// The path of the value, for example `result.tools[3].inputSchema.type`; empty for the whole
    /// message.
    pub(crate) path: String,
    /// The expected and the actual value.
    pub(crate) observed: String,
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.observed),
            path => write!(f, "`{path}`: {}", self.observed),
        }
    }
}

/// Validates the parameters of a request. An unknown method may have any object.
pub(crate) fn request(revision: Revision, message: &Value) -> Vec<SchemaViolation> {
    let schemas = schema_set::for_revision(revision);
    let method = message["method"]
        .as_str()
        .and_then(|it| schemas.request(it));
    params(schemas, method.map(|method| &method.params), message)
}

/// Validates the parameters of a notification.
pub(crate) fn notification(revision: Revision, message: &Value) -> Vec<SchemaViolation> {
    let schemas = schema_set::for_revision(revision);
    let params_of = |it| schemas.notification(it);
    params(
        schemas,
        message["method"].as_str().and_then(params_of),
        message,
    )
}

/// Validates the result of a method. The result of an unknown method may be any object.
pub(crate) fn result(revision: Revision, method: &str, message: &Value) -> Vec<SchemaViolation> {
    let schemas = schema_set::for_revision(revision);
    let shape = schemas
        .request(method)
        .map_or(&OBJECT, |method| &method.result);
    let mut violations = MessageValidator::new(schemas).member(message, "result", true, shape);
    // With an unexpected `resultType` the other fields belong to that type: report only the type.
    let is_type = |violation: &SchemaViolation| violation.path == "result.resultType";
    if message["result"].get("resultType").is_some() && violations.iter().any(is_type) {
        violations.retain(is_type);
    }
    violations
}

/// Validates an error: the object, and the data for its code.
pub(crate) fn error(revision: Revision, message: &Value) -> Vec<SchemaViolation> {
    let schemas = schema_set::for_revision(revision);
    let mut violations =
        MessageValidator::new(schemas).member(message, "error", true, schemas.shape("Error"));
    let error = &message["error"];
    if let Some(data) = error["code"].as_i64().and_then(|code| schemas.error(code)) {
        violations.extend(
            MessageValidator::for_member(schemas, "error").member(error, "data", true, data),
        );
    }
    violations
}

fn params(
    schemas: &SchemaSet,
    given: Option<&schema_set::ParamsShape>,
    message: &Value,
) -> Vec<SchemaViolation> {
    let (required, shape) = match given {
        Some(params) => (params.required, &params.shape),
        None => (false, &OBJECT),
    };
    MessageValidator::new(schemas).member(message, "params", required, shape)
}
