//! Values that handlers share: `Server::state` and `Context::state`.

use serde_json::json;
use turnbuckle_server::{
    CompletionRequest, Context, Prompt, Resource, ResourceTemplate, Server, Tool, Variables,
};

use crate::ndjson::test_client::Peer;

struct City(&'static str);

struct Country(&'static str);

/// A server with a handler of every kind, each of which returns the city and the country.
fn places(name: &str) -> Server {
    Server::new(name, "1")
        .tool(Tool::new("tool", async |cx: Context| Ok(place(&cx))))
        .prompt(
            Prompt::new("prompt", async |cx: Context| Ok(place(&cx)))
                .complete("name", async |_: CompletionRequest, cx: Context| {
                    Ok(vec![place(&cx)])
                }),
        )
        .resource(Resource::new(
            format!("{name}://resource"),
            "resource",
            async |cx: Context| Ok(place(&cx)),
        ))
        .template(ResourceTemplate::new(
            format!("{name}://template/{{id}}"),
            "template",
            async |_: Variables, cx: Context| Ok(place(&cx)),
        ))
}

fn place(cx: &Context) -> String {
    let country = cx.try_state::<Country>().map_or("nowhere", |it| it.0);
    format!("{} in {country}", cx.state::<City>().0)
}

/// Returns what the handlers of a server return, which is mounted with this prefix.
async fn all_places(peer: &mut Peer, name: &str, prefix: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let tool = peer.call_tool(&format!("{prefix}tool"), json!({})).await;
    texts.push(tool["result"]["content"][0]["text"].clone());
    let prompt = json!({ "name": format!("{prefix}prompt") });
    let prompt = peer.call("prompts/get", prompt).await;
    texts.push(prompt["result"]["messages"][0]["content"]["text"].clone());
    for uri in [format!("{name}://resource"), format!("{name}://template/1")] {
        let read = peer.call("resources/read", json!({ "uri": uri })).await;
        texts.push(read["result"]["contents"][0]["text"].clone());
    }
    let completion = json!({
        "ref": { "type": "ref/prompt", "name": format!("{prefix}prompt") },
        "argument": { "name": "name", "value": "" },
    });
    let completion = peer.call("completion/complete", completion).await;
    texts.push(completion["result"]["completion"]["values"][0].clone());
    let texts = texts.iter().map(|text| text.as_str().unwrap_or_default());
    texts.map(str::to_owned).collect()
}

#[tokio::test]
async fn every_kind_of_handler_gets_the_state() {
    let server = places("a").state(City("Bergen")).state(City("Oslo"));
    let mut peer = Peer::initialized(server, "2025-11-25", json!({})).await;

    let places = all_places(&mut peer, "a", "").await;

    assert_eq!(places, vec!["Oslo in nowhere"; 5], "the last value counts");
}

#[tokio::test]
async fn mounted_handlers_get_the_state_of_their_own_server_first() {
    let innermost = places("c").state(City("Porto"));
    let inner = places("b")
        .state(City("Lyon"))
        .state(Country("France"))
        .mount("c", innermost);
    let outer = places("a")
        .state(City("Oslo"))
        .state(Country("Norway"))
        .mount("b", inner);
    let mut peer = Peer::initialized(outer, "2025-11-25", json!({})).await;

    let places = all_places(&mut peer, "a", "").await;
    assert_eq!(places, vec!["Oslo in Norway"; 5]);
    let places = all_places(&mut peer, "b", "b_").await;
    assert_eq!(places, vec!["Lyon in France"; 5]);
    let places = all_places(&mut peer, "c", "b_c_").await;
    assert_eq!(places, vec!["Porto in France"; 5]);
}

#[tokio::test]
async fn missing_state_fails_the_call_alone() {
    let mut peer = Peer::initialized(places("a"), "2025-11-25", json!({})).await;

    let response = peer.call_tool("tool", json!({})).await;

    assert_eq!(response["error"]["code"], -32603);
    let response = peer.call("ping", json!({})).await;
    assert_eq!(response["result"], json!({}));
}
