//! Names of tools that are unusual, long or equal.

use serde_json::{Value, json};
use turnbuckle_gateway::Gateway;
use turnbuckle_server::testing::{Peer, all_combinations};

use crate::scripts::{Script, members, text, tools};

/// A server with these tools, which return their names.
fn named(names: &'static [&'static str]) -> Script {
    Script::new(move |method, params| match method {
        "tools/list" => tools(names),
        "tools/call" => text(params["name"].as_str().unwrap()),
        _ => Value::Null,
    })
}

const LONG: &str = "long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_\
     long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_end";
const UNUSUAL: &[&str] = &[
    "", "_", "__", "a/b", "a\u{1}b", "a b", "é", "b_c", "_b_c", LONG,
];

#[tokio::test(start_paused = true)]
async fn every_listed_name_reaches_its_own_tool() {
    for max_length in [16, 64, 128] {
        for combination in all_combinations() {
            let gateway = Gateway::new("gateway", "1")
                .upstream(named(UNUSUAL).upstream("a"))
                .upstream(named(UNUSUAL).upstream("a_b"))
                .upstream(named(UNUSUAL).upstream("a_b_c"))
                .max_name_length(max_length);
            let gateway = gateway.start().await.unwrap();
            let mut peer = combination.connect(gateway.server()).await;
            let listed = peer.request("tools/list", json!({})).await;
            let names = members(listed.expect_result(), "tools", "name");
            assert_eq!(names.len(), 3 * UNUSUAL.len(), "{combination}");
            for (name, original) in names.iter().zip(UNUSUAL.iter().cycle()) {
                assert!(name.len() <= max_length, "{name}");
                let called = peer.call_tool(name, json!({})).await;
                assert_eq!(called.text(), *original, "{combination} {name}");
            }
            let different: std::collections::HashSet<_> = names.iter().collect();
            assert_eq!(different.len(), names.len(), "{combination}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn names_do_not_depend_on_the_servers_that_are_up() {
    let (first, second) = (named(&["b_x"]), named(&["x"]));
    first.set_down(true);
    let gateway = Gateway::new("gateway", "1")
        .upstream(first.upstream("a"))
        .upstream(second.upstream("a_b"));
    let gateway = gateway.start().await.unwrap();
    let mut peer = Peer::connect(gateway.server()).await;
    let alone = peer.request("tools/list", json!({})).await;
    let alone = members(alone.expect_result(), "tools", "name");
    first.set_down(false);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let both = peer.request("tools/list", json!({})).await;
    let both = members(both.expect_result(), "tools", "name");
    assert_eq!(both.len(), 2);
    assert_eq!(both[1..], alone);
}
