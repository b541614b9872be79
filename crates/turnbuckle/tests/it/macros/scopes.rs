use serde_json::{Value, json};
use turnbuckle::{RequestError, Server, ToolError, prompt, resource, testing, tool};

#[tool(scopes = "files:write  files:read")]
async fn write() -> Result<String, ToolError> {
    Ok(String::new())
}

#[prompt(scopes = "review")]
async fn review() -> Result<String, RequestError> {
    Ok(String::new())
}

#[resource(uri = "desk://drawer", scopes = "desk")]
async fn drawer() -> Result<String, RequestError> {
    Ok(String::new())
}

#[resource(uri = "desk://{shelf}", scopes = "shelf")]
async fn shelf(shelf: String) -> Result<String, RequestError> {
    Ok(shelf)
}

#[tokio::test]
async fn an_attribute_says_which_scopes_are_needed() {
    let desk = Server::new("desk", "1.0.0")
        .tool(write::tool())
        .prompt(review::prompt())
        .resource(drawer::resource())
        .template(shelf::template());
    let client = testing::http(desk).in_session("2025-11-25").await;

    for (method, params, scopes) in [
        (
            "tools/call",
            json!({ "name": "write" }),
            json!(["files:read", "files:write"]),
        ),
        (
            "prompts/get",
            json!({ "name": "review" }),
            json!(["review"]),
        ),
        (
            "resources/read",
            json!({ "uri": "desk://drawer" }),
            json!(["desk"]),
        ),
        (
            "resources/read",
            json!({ "uri": "desk://top" }),
            json!(["shelf"]),
        ),
    ] {
        let message: Value =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = client.post(&message).await;
        assert_eq!(answer.status(), 403, "{method}");
        let answer = answer.json().await;
        assert_eq!(answer["error"]["data"]["requiredScopes"], scopes);
    }
}
