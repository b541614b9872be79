//! Handler arguments: reads them into the handler's type, and marks the kinds of handler functions.

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use turnbuckle_protocol::json;

// Arguments of a handler that takes none. No doc comment: it would become the description of the schema. `properties`
// is listed because some clients reject an object schema without it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline, extend("properties" = {}))]
pub(crate) struct NoArguments {}

/// Reads arguments. The error names the path and the expected type, so that a model can correct the call.
pub(crate) fn read<A: DeserializeOwned>(text: &str) -> Result<A, String> {
    json::from_str(text)
        .map_err(|error| format!("invalid arguments: {}", error.within("arguments")))
}

/// Marks functions of arguments and context.
#[doc(hidden)]
#[derive(Debug)]
pub struct ArgsAndContext<A>(A);

/// Marks functions of arguments.
#[doc(hidden)]
#[derive(Debug)]
pub struct ArgsOnly<A>(A);

/// Marks functions of the context.
#[doc(hidden)]
#[derive(Debug)]
pub struct ContextOnly;

/// Marks functions without parameters.
#[doc(hidden)]
#[derive(Debug)]
pub struct NoArgsHandler;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn no_arguments_are_listed_as_an_object_without_properties() {
        let schema = crate::tools::schema::input_schema_for::<NoArguments>().listed;

        assert_eq!(
            Value::from(schema),
            json!({ "type": "object", "properties": {} })
        );
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Trip {
        city: String,
        legs: Vec<Leg>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Leg {
        days: u8,
    }

    #[test]
    fn a_wrong_type_is_named_with_its_path() {
        let error =
            read::<Trip>(r#"{"city":"Oslo","legs":[{"days":1},{"days":"two"}]}"#).unwrap_err();

        assert_eq!(
            error,
            "invalid arguments: `arguments.legs[1].days`: invalid type: string \"two\", expected integer from 0 to 255"
        );
    }

    #[test]
    fn an_array_in_place_of_an_object_is_refused() {
        let error = read::<Trip>(r#"{"city":"Oslo","legs":[[1]]}"#).unwrap_err();

        assert_eq!(
            error,
            "invalid arguments: `arguments.legs[0]`: invalid type: array, expected object"
        );
    }

    #[test]
    fn a_missing_member_is_named() {
        let error = read::<Trip>(r#"{"city":"Oslo"}"#).unwrap_err();

        assert_eq!(
            error,
            "invalid arguments: `arguments`: missing field `legs`"
        );
    }
}
