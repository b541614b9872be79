use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use turnbuckle::{CacheHint, Context, RequestError, Resource, ResourceTemplate, Server, resource};

use crate::macros::peer::{request, request_both, server};

/// The message of the day.
#[resource(uri = "notes://motd", title = "Today", mime_type = "text/plain")]
async fn motd() -> Result<&'static str, RequestError> {
    Ok("Nothing new today.")
}

#[resource(uri = "notes://pixel", name = "a dot")]
async fn pixel(_: Context) -> Result<Vec<u8>, RequestError> {
    Ok(vec![0, 1, 2])
}

/// What was noted on a day.
#[resource(uri = "notes://days/{date}/{+path}{?author}", mime_type = "text/plain")]
async fn day(
    author: Option<String>,
    #[serde(rename = "path")] place: String,
    date: String,
) -> Result<String, RequestError> {
    match &*date {
        "never" => Err(RequestError::not_found()),
        _ => Ok(format!("{date} {place} {author:?}")),
    }
}

#[derive(Deserialize)]
struct Day {
    date: String,
    path: String,
    author: Option<String>,
}

fn servers() -> [Server; 2] {
    let minute = CacheHint::public(Duration::from_secs(60));
    let attributes = server()
        .resource(motd::resource().cache(minute))
        .resource(pixel::resource())
        .template(day::template().complete("author", ["Ada", "Grace"]));
    let by_hand = ResourceTemplate::new(
        "notes://days/{date}/{+path}{?author}",
        "day",
        |args: Day, _| day(args.author, args.path, args.date),
    );
    let builders = server()
        .resource(
            Resource::new("notes://motd", "motd", motd)
                .description("The message of the day.")
                .title("Today")
                .mime_type("text/plain")
                .cache(minute),
        )
        .resource(Resource::new("notes://pixel", "a dot", pixel))
        .template(
            by_hand
                .description("What was noted on a day.")
                .mime_type("text/plain")
                .complete("author", ["Ada", "Grace"]),
        );
    [attributes, builders]
}

#[tokio::test]
async fn resources_are_listed_as_if_built_by_hand() {
    request_both(&servers(), "resources/list", json!({})).await;
    let answer = request_both(&servers(), "resources/templates/list", json!({})).await;

    let template = &answer["result"]["resourceTemplates"][0];
    assert_eq!(template["name"], "day");
    assert_eq!(template["description"], "What was noted on a day.");
}

#[tokio::test]
async fn resources_are_read_as_if_built_by_hand() {
    for uri in [
        "notes://motd",
        "notes://pixel",
        "notes://days/monday/a/b?author=Ada",
        "notes://days/never/a",
        "notes://nowhere",
    ] {
        request_both(&servers(), "resources/read", json!({ "uri": uri })).await;
    }
    let uri = "notes://days/monday/a/b";
    let answer = request(&servers()[0], "resources/read", json!({ "uri": uri })).await;
    assert_eq!(answer["result"]["contents"][0]["text"], "monday a/b None");
}

#[tokio::test]
async fn variables_are_completed_on_the_value() {
    let params = json!({
        "ref": { "type": "ref/resource", "uri": "notes://days/{date}/{+path}{?author}" },
        "argument": { "name": "author", "value": "G" }
    });

    let answer = request(&servers()[0], "completion/complete", params).await;

    assert_eq!(answer["result"]["completion"]["values"], json!(["Grace"]));
}
