//! Builder methods that return an error where others panic.

use serde_json::{Value, json};
use turnbuckle_server::{
    Extension, ExtensionMethod, InvalidExtension, InvalidPageSize, InvalidResourceUri,
    InvalidStateKeys, InvalidTool, MountError, Prompt, Resource, ResourceTemplate, Server, Tool,
    ToolError, Variables, http::Http,
};

async fn done() -> Result<String, ToolError> {
    Ok("done".to_owned())
}

#[test]
fn invalid_tools_are_errors() {
    let name = || "not a name".to_owned();
    let error = Tool::try_new(name(), done).unwrap_err();
    assert_eq!(error, InvalidTool::Name { name: name() });
    assert_eq!(
        error.to_string(),
        "`not a name` is not a valid tool name: expected 1 to 128 letters, digits, `_`, `-` or `.`"
    );
    let blocking = Tool::try_blocking(name(), || Ok("done".to_owned()));
    assert_eq!(blocking.unwrap_err(), error);

    let raw = |schema: Value| Tool::try_raw("raw", schema, done).unwrap_err().to_string();
    assert_eq!(raw(json!([])), "the input schema must be a JSON object");
    assert_eq!(
        raw(json!({ "type": "array" })),
        "the arguments of `raw` must have an object schema, not type \"array\""
    );
    let header = json!({ "properties": { "a": { "type": "string", "x-mcp-header": "a b" } } });
    assert!(raw(header).starts_with("the input schema of `raw` has an invalid `x-mcp-header`"));

    let output = Tool::new("output", done).try_output_schema(json!(1));
    assert_eq!(
        output.unwrap_err().to_string(),
        "the output schema must be a JSON object"
    );
    assert!(Server::new("a", "1").try_tool(Tool::new("a", done)).is_ok());
}

#[test]
fn invalid_uris_are_errors() {
    let resource = Resource::try_new("readme", "readme", async || Ok("text"));
    let error = resource.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`readme` is not a URI: the scheme is missing"
    );

    let template = |uri: &str| {
        let read = async |_: Variables| Ok("text");
        ResourceTemplate::try_new(uri, "page", read).unwrap_err()
    };
    assert!(matches!(
        template("pages/{number}"),
        InvalidResourceUri::NoTemplateScheme { .. }
    ));
    assert!(matches!(
        template("book://{"),
        InvalidResourceUri::Template { .. }
    ));
}

#[test]
fn invalid_extensions_are_errors() {
    let respond = async || Ok(json!({}));
    assert!(matches!(
        Extension::try_new("bells").unwrap_err(),
        InvalidExtension::Identifier { .. }
    ));
    assert!(matches!(
        ExtensionMethod::try_new("tools/list", respond).unwrap_err(),
        InvalidExtension::ProtocolMethod { .. }
    ));
    assert!(matches!(
        ExtensionMethod::try_new("notifications/bell", respond).unwrap_err(),
        InvalidExtension::Method { .. }
    ));
    let with_method = |name: &str| {
        let extension = Extension::new("com.example/bells").try_method(name, respond);
        extension.map(drop)
    };
    assert_eq!(with_method("bells/ring"), Ok(()));
    let method = "tools/list".to_owned();
    assert_eq!(
        with_method(&method),
        Err(InvalidExtension::ProtocolMethod { method })
    );
}

#[test]
fn invalid_scopes_are_errors() {
    let scopes = ["read", "a b"];
    let tool = Tool::new("a", done).try_scopes(scopes);
    let prompt = Prompt::new("a", async || Ok("text")).try_scopes(scopes);
    let resource = Resource::new("a:b", "a", async || Ok("text")).try_scopes(scopes);
    let template = ResourceTemplate::new("a:{b}", "a", async |_: Variables| Ok("text"));
    for error in [
        tool.map(drop),
        prompt.map(drop),
        resource.map(drop),
        template.try_scopes(scopes).map(drop),
    ] {
        assert_eq!(error.unwrap_err().scope, "a b");
    }
    assert!(Tool::new("a", done).try_scopes(["read", "a:b"]).is_ok());
}

#[test]
fn invalid_mounts_are_errors() {
    let mounted = |prefix: &str| {
        let other = Server::new("b", "1").tool(Tool::new("b", done));
        Server::new("a", "1").try_mount(prefix, other).map(drop)
    };
    assert_eq!(mounted("b"), Ok(()));
    let prefix = "b/c".to_owned();
    assert_eq!(mounted(&prefix), Err(MountError::Prefix { prefix }));
    assert!(matches!(
        mounted(&"b".repeat(128)),
        Err(MountError::TooLong { .. })
    ));
}

#[test]
fn invalid_server_settings_are_errors() {
    let server = || Server::new("a", "1");
    assert_eq!(
        server().try_page_size(0).unwrap_err(),
        InvalidPageSize::default()
    );
    let secrets = |secrets: &[&str]| server().try_state_keys(secrets).map(drop);
    assert_eq!(secrets(&[]), Err(InvalidStateKeys::Missing));
    assert_eq!(secrets(&["short"]), Err(InvalidStateKeys::TooShort));
    assert_eq!(secrets(&["sixteen bytes it is"]), Ok(()));
}

#[test]
fn invalid_hosts_and_origins_are_errors() {
    let http = || Http::new(Server::new("a", "1"));
    assert!(http().try_allow_host("clock.example:80").is_ok());
    let error = http().try_allow_host("http://clock.example").unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid host `http://clock.example`: expected a name or IP address with an optional port"
    );
    assert!(http().try_allow_origin("https://clock.example").is_ok());
    let error = http().try_allow_origin("clock.example").unwrap_err();
    assert_eq!(error.origin, "clock.example");
}
