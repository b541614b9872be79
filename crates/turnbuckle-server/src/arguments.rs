//! Reading the arguments of a call into the type its handler wants.

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use turnbuckle_protocol::json;

// Arguments that a handler does not look at. No doc comment, which would become the description of the schema; and some
// clients do not accept an object schema that leaves `properties` out.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline, extend("properties" = {}))]
pub(crate) struct Any {}

/// Reads arguments; the error names the path and what was expected there, so that a model can correct itself.
pub(crate) fn read<A: DeserializeOwned>(text: &str) -> Result<A, String> {
    json::from_str(text)
        .map_err(|error| format!("invalid arguments: {}", error.within("arguments")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn no_arguments_are_listed_as_an_object_without_properties() {
        let schema = crate::schema::of_input::<Any>().listed;

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
