//! Reading the arguments of a call into the type its handler wants.

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};

// Arguments that a handler does not look at. No doc comment, which would become the description of the schema; and some
// clients do not accept an object schema that leaves `properties` out.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline, extend("properties" = {}))]
pub(crate) struct Any {}

/// Reads arguments; the error names the path and what was expected there, so that a model can correct itself.
pub(crate) fn read<A: DeserializeOwned>(json: &str) -> Result<A, String> {
    // Keeping track of the path costs something, so only a failed reading is repeated with it.
    serde_json::from_str(json)
        .map_err(|error| explain::<A>(json).unwrap_or_else(|| describe("arguments", &error)))
}

fn explain<A: DeserializeOwned>(json: &str) -> Option<String> {
    let mut json = serde_json::Deserializer::from_str(json);
    let error = serde_path_to_error::deserialize::<_, A>(&mut json).err()?;
    let path = match error.path().to_string().as_str() {
        "." => "arguments".to_owned(),
        path => format!("arguments.{path}"),
    };
    Some(describe(&path, error.inner()))
}

fn describe(path: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    // The position is one in our buffer, not in anything the model wrote.
    let message = message.split(" at line ").next().unwrap_or(&message);
    format!("invalid arguments: `{path}`: {message}")
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
            "invalid arguments: `arguments.legs[1].days`: invalid type: string \"two\", expected u8"
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
