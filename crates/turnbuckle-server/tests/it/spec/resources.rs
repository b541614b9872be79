//! Existing and missing resources.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde_json::json;
use turnbuckle_protocol::types::TextResourceContents;
use turnbuckle_server::{
    Contents, Context, RequestError, Resource, ResourceTemplate, Server, Variables,
};
use turnbuckle_spec_coverage::req;

use crate::spec::revision_client::{EVERY, RevisionClient};

fn server() -> Server {
    let day = ResourceTemplate::new(
        "log://{day}/all",
        "log",
        async |day: Variables, _: Context| Ok(day["day"].clone()),
    );
    let gone = Resource::new("note://gone", "gone", async || {
        Err::<String, _>(RequestError::not_found())
    });
    let empty = Resource::new("note://empty", "empty", async || Ok(Contents::new([])));
    let folder = Resource::new("note://folder", "folder", async || {
        let file = |name: &str| TextResourceContents::new(format!("note://folder/{name}"), name);
        Ok(Contents::new([file("a").into(), file("b").into()]))
    });
    Server::new("resources", "1")
        .resource(Resource::text("note://a", "a", "A"))
        .resource(gone)
        .resource(empty)
        .resource(folder)
        .template(day)
}

#[tokio::test(start_paused = true)]
async fn resources_are_listed_by_address_and_templates_by_pattern() {
    req!("resources.list.shape");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;

        let resources = client.result("resources/list", json!({})).await;
        let templates = client.result("resources/templates/list", json!({})).await;

        let resources = resources["resources"].as_array().unwrap().clone();
        assert_eq!(resources.len(), 4, "{revision}");
        for resource in resources {
            assert!(resource["uri"].is_string() && resource["name"].is_string());
        }
        assert_eq!(
            templates["resourceTemplates"],
            json!([{ "uriTemplate": "log://{day}/all", "name": "log" }]),
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_resource_is_an_error_and_never_an_empty_list() {
    req!(
        "resources.error.not-found",
        "resources.error.not-found-empty",
        "resources.error.not-found-legacy"
    );
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        let expected = if client.is_modern() { -32602 } else { -32002 };
        for uri in ["note://missing", "note://gone", "note://empty"] {
            let response = client.call("resources/read", json!({ "uri": uri })).await;
            assert_eq!(response["error"]["code"], expected, "{revision} {uri}");
            assert_eq!(response["error"]["data"]["uri"], uri);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_or_similar_uri_reads_nothing() {
    req!("resources.security.validate-uri");
    let long = format!("log://{}/all", "x/".repeat(50_000));
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        let expected = if client.is_modern() { -32602 } else { -32002 };
        for uri in [
            "",
            "a",
            "NOTE://A",
            "note://a ",
            " note://a",
            "note://a\u{0}",
            "note://a/../a",
            "note://%61",
            "log:///all",
            "log://a/b/all",
            "log://../../etc/passwd/all",
            "log://%/all",
            "log://%FF/all",
            &long,
        ] {
            let code = client.code("resources/read", json!({ "uri": uri })).await;
            assert_eq!(code, expected, "{revision} {uri:.40}");
        }
        let read = client
            .result("resources/read", json!({ "uri": "log://mon%20day/all" }))
            .await;
        assert_eq!(read["contents"][0]["text"], "mon day", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_path_of_a_file_leads_out_of_its_folder() {
    req!("resources.security.traversal");
    let read = async |values: Variables, _: Context| Ok(values["path"].clone());
    let folder = Server::new("files", "1")
        .template(ResourceTemplate::new("file:///docs/{path}", "one", read))
        .template(ResourceTemplate::new("file:///tree/{+path}", "all", read));
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, folder.clone()).await;
        let expected = if client.is_modern() { -32602 } else { -32002 };
        for uri in [
            "file:///docs/..",
            "file:///docs/%2e%2e",
            "file:///docs/..%2F..%2Fetc%2Fpasswd",
            "file:///docs/%2Fetc%2Fpasswd",
            "file:///docs/a%00.txt",
            "file:///docs/..%5C..%5Cwindows",
            "file:///tree/../etc/passwd",
            "file:///tree/a/../../etc/passwd",
            "file:///tree//etc/passwd",
        ] {
            let code = client.code("resources/read", json!({ "uri": uri })).await;
            assert_eq!(code, expected, "{revision} {uri}");
        }
        for (uri, path) in [
            ("file:///docs/a..b", "a..b"),
            ("file:///tree/a/b.txt", "a/b.txt"),
        ] {
            let read = client.result("resources/read", json!({ "uri": uri })).await;
            assert_eq!(read["contents"][0]["text"], path, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_read_may_return_several_contents() {
    req!("resources.read.multiple");
    let mut client = RevisionClient::new("2026-07-28", server()).await;

    let read = client
        .result("resources/read", json!({ "uri": "note://folder" }))
        .await;

    assert_eq!(read["contents"].as_array().unwrap().len(), 2);
    assert_eq!(read["contents"][1]["uri"], "note://folder/b");
}

#[test]
fn a_uri_without_a_scheme_is_rejected_at_registration() {
    req!("resources.uri.rfc3986", in: ["2025-06-18", "2025-11-25", "2026-07-28"]);
    let resource = |uri: &str| catch_unwind(|| Resource::text(uri, "a", "A")).is_ok();
    let template = |uri: &str| {
        let make = || {
            ResourceTemplate::new(uri, "a", async |_: BTreeMap<String, String>, _: Context| {
                Ok("A")
            })
        };
        catch_unwind(AssertUnwindSafe(make)).is_ok()
    };

    for uri in ["note://a", "a:b", "x-y.z+9:", "file:///a"] {
        assert!(resource(uri) && template(&format!("{uri}{{b}}")), "{uri}");
    }
    assert!(template("{+uri}"));
    for uri in [
        "", "a", "/a", "://a", "9a://b", "a_b://c", "ä://b", "-a:b", "a b:c",
    ] {
        assert!(
            !resource(uri) && !template(&format!("{uri}/{{b}}")),
            "{uri}"
        );
    }
}
