use serde_json::json;
use turnbuckle::{RequestError, Server, ToolError, prompt, protocol::Principal, resource, tool};

use crate::macros::peer::{request, server};

fn is_known(principal: Option<&Principal>) -> bool {
    principal.is_some()
}

#[tool(visible_to = is_known)]
async fn secret() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool(visible_to = |principal| principal.is_none())]
async fn lobby() -> Result<String, ToolError> {
    Ok(String::new())
}

#[prompt(visible_to = is_known)]
async fn review() -> Result<String, RequestError> {
    Ok(String::new())
}

#[resource(uri = "desk://drawer", visible_to = is_known)]
async fn drawer() -> Result<String, RequestError> {
    Ok(String::new())
}

#[resource(uri = "desk://{shelf}", visible_to = is_known)]
async fn shelf(shelf: String) -> Result<String, RequestError> {
    Ok(shelf)
}

fn desk() -> Server {
    server()
        .tool(secret::tool())
        .tool(lobby::tool())
        .prompt(review::prompt())
        .resource(drawer::resource())
        .template(shelf::template())
}

#[tokio::test]
async fn an_attribute_says_who_may_see() {
    let desk = desk();

    for (method, member, seen) in [
        ("tools/list", "tools", vec!["lobby"]),
        ("prompts/list", "prompts", vec![]),
        ("resources/list", "resources", vec![]),
        ("resources/templates/list", "resourceTemplates", vec![]),
    ] {
        let answer = request(&desk, method, json!({})).await;
        let items = answer["result"][member].as_array().unwrap();
        let names: Vec<_> = items.iter().map(|item| item["name"].clone()).collect();
        assert_eq!(names, seen, "{method}");
    }
}
