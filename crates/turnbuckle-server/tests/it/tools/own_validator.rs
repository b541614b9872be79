//! Validation of arguments and results by a validator of the program.
//!
//! `fuzz/` runs this file too, because it builds the server without the feature `validation`.

use serde_json::{Map, Value, json};
use turnbuckle_server::{
    Context, InvalidTool, SchemaValidator, Server, Tool, ToolResult, testing::Peer,
};

/// Enforces the names of `required`.
struct RequiredMembers(Vec<String>);

impl SchemaValidator for RequiredMembers {
    fn compile(schema: &Map<String, Value>) -> Result<Self, String> {
        match schema.get("required") {
            None => Ok(Self(Vec::new())),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                Ok(Self(names.map(str::to_owned).collect()))
            }
            Some(_) => Err("`required` must be an array".to_owned()),
        }
    }

    fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        match self.0.iter().find(|member| value.get(member).is_none()) {
            Some(missing) => Err(format!("`{name}`: missing field `{missing}`")),
            None => Ok(()),
        }
    }
}

/// Accepts no value.
struct RejectingValidator;

impl SchemaValidator for RejectingValidator {
    fn compile(_: &Map<String, Value>) -> Result<Self, String> {
        Ok(Self)
    }

    fn check(&self, name: &str, _: &Value) -> Result<(), String> {
        Err(format!("`{name}`: not accepted"))
    }
}

/// Repeats its arguments. The schema wants a member in the arguments and another one in the result.
fn repeat() -> Tool {
    let input = json!({ "type": "object", "required": ["city"] });
    let output = json!({ "type": "object", "required": ["days"] });
    Tool::raw(
        "repeat",
        input,
        async |arguments: Map<String, Value>, _: Context| {
            Ok(ToolResult::structured(Value::Object(arguments)))
        },
    )
    .output_schema(output)
}

fn invalid_schema() -> Tool {
    let schema = json!({ "type": "object", "required": "city" });
    Tool::raw("invalid", schema.clone(), async |_: Value, _: Context| {
        Ok(ToolResult::empty())
    })
    .output_schema(schema)
}

/// Returns the text of the result of `repeat`, and whether it is an error.
async fn call(server: &Server, arguments: Value) -> (String, bool) {
    let mut peer = Peer::connect(server.clone()).legacy("2025-11-25").await;
    let params = json!({ "name": "repeat", "arguments": arguments });
    let response = peer.request("tools/call", params).await;
    let result = response.expect_result();
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    (text.to_owned(), result["isError"] == true)
}

#[tokio::test]
async fn arguments_are_checked_before_the_handler_runs() {
    let server = Server::new("own", "1")
        .validate_input_with::<RequiredMembers>(true)
        .tool(repeat());

    let (text, is_error) = call(&server, json!({})).await;
    assert_eq!(text, "invalid arguments: `arguments`: missing field `city`");
    assert!(is_error);

    let (text, is_error) = call(&server, json!({ "city": "Oslo" })).await;
    assert_eq!((text.as_str(), is_error), (r#"{"city":"Oslo"}"#, false));
}

#[tokio::test]
async fn a_result_that_the_validator_rejects_is_a_tool_failure() {
    let server = Server::new("own", "1")
        .validate_output_with::<RequiredMembers>(true)
        .tool(repeat());

    let (text, is_error) = call(&server, json!({ "city": "Oslo" })).await;
    assert!(is_error && text.contains("log for incident"), "{text}");

    let (_, is_error) = call(&server, json!({ "days": 2 })).await;
    assert!(!is_error);
}

#[tokio::test]
async fn a_setting_is_replaced_and_turned_off() {
    let strict = Server::new("own", "1")
        .tool(repeat())
        .validate_input_with::<RejectingValidator>(true);
    let replaced = strict.clone().validate_input_with::<RequiredMembers>(true);
    let off = strict.validate_input_with::<RejectingValidator>(false);

    assert!(!call(&replaced, json!({ "city": "Oslo" })).await.1);
    assert!(call(&replaced, json!({})).await.1);
    assert!(!call(&off, json!({})).await.1);
}

#[tokio::test]
async fn servers_that_share_a_tool_use_their_own_validators() {
    let shared = Server::new("shared", "1").tool(repeat());
    let strict = shared
        .clone()
        .validate_input_with::<RejectingValidator>(true);
    let required = shared.clone().validate_input_with::<RequiredMembers>(true);
    let city = json!({ "city": "Oslo" });

    for _ in 0..2 {
        let (text, _) = call(&strict, city.clone()).await;
        assert_eq!(text, "invalid arguments: `arguments`: not accepted");
        let (text, _) = call(&required, json!({})).await;
        assert!(text.ends_with("missing field `city`"), "{text}");
        assert!(!call(&required, city.clone()).await.1);
        assert!(!call(&shared, json!({})).await.1);
    }
}

#[test]
fn a_schema_that_does_not_compile_is_an_error_of_the_setting_and_of_a_tool_added_later() {
    let reason = "`required` must be an array";
    let server = || Server::new("own", "1");
    let early = || server().tool(invalid_schema());

    let late = server().validate_input_with::<RequiredMembers>(true);
    let input = late.try_tool(invalid_schema()).unwrap_err();
    let settings = [
        early().try_validate_input_with::<RequiredMembers>(true),
        early().try_validate_output_with::<RequiredMembers>(true),
    ];
    let [first, output] = settings.map(Result::unwrap_err);

    let InvalidTool::Schema {
        which,
        reason: given,
        ..
    } = &input
    else {
        panic!("{input}");
    };
    assert_eq!((*which, given.as_str()), ("input", reason));
    assert_eq!(first, input);
    assert!(matches!(
        output,
        InvalidTool::Schema {
            which: "output",
            ..
        }
    ));
    assert!(
        early()
            .try_validate_input_with::<RejectingValidator>(true)
            .is_ok()
    );
}
