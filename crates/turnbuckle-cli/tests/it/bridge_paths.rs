//! The paths of `turnbuckle bridge` for one of several servers: `/mcp/NAME`.

use crate::{
    sandbox::Sandbox,
    serve_process::{ServeProcess, get},
};

#[test]
fn each_server_has_a_path_with_its_own_names() {
    let sandbox = Sandbox::new();
    let words = ["SOCKET", "unix:/nowhere/files.sock", "--deny", "*/picture"];
    let mut bridge = ServeProcess::bridge(&sandbox, &words);
    let all = sandbox.run(&["tools", &bridge.address]);
    assert!(all.contains("s_forecast"), "{all}");
    let sse = bridge.address.replace("/mcp", "/sse");
    let all = sandbox.run(&["tools", &sse]);
    assert!(all.contains("s_forecast"), "{all}");

    let unknown = format!("{}/unknown", bridge.address);
    bridge.address.push_str("/s");
    for era in ["modern", "legacy"] {
        let result = bridge.call(&sandbox, &["forecast", "city=Oslo", "--era", era]);
        assert_eq!(result["high"], 21.5, "{era}");
    }
    let tools = sandbox.run(&["tools", &bridge.address]);
    assert!(tools.contains("forecast"), "{tools}");
    assert!(!tools.contains("s_forecast"), "{tools}");
    assert!(!tools.contains("picture"), "{tools}");
    let response = get(&unknown);
    assert!(response.starts_with("HTTP/1.1 404"), "{response}");
    let missing = sandbox.run(&["tools", &unknown]);
    assert!(missing.contains("404"), "{missing}");
    bridge.stop();
}

#[cfg(feature = "tls")]
mod authorization {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use serde_json::Value;

    use super::{Sandbox, ServeProcess, get};
    use crate::issuer::Issuer;

    const ADA: &str = "0123456789abcdef-ada";

    #[test]
    fn a_path_requires_a_token_of_the_token_file() {
        let sandbox = Sandbox::new();
        sandbox.write("tokens", &format!("{ADA} ada\n"));
        let file = sandbox.path().join("tokens");
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
        let words = ["SOCKET", "unix:/nowhere/files.sock"];
        let options = ["--token-file", "tokens"];
        let mut bridge = ServeProcess::bridge(&sandbox, &[words, options].concat());
        bridge.address.push_str("/s");

        let refused = get(&bridge.address);
        assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
        let result = bridge.call(&sandbox, &["forecast", "city=Oslo", "--token", ADA]);
        assert_eq!(result["high"], 21.5);
        bridge.stop();
    }

    #[test]
    fn a_token_for_the_bridge_is_valid_on_all_paths_and_one_for_a_path_only_there() {
        let sandbox = Sandbox::new();
        let issuer = Issuer::start();
        let audience = "https://bridge.example/mcp";
        let words = ["SOCKET", "unix:/nowhere/files.sock", "--json"];
        let options = ["--auth-issuer", &issuer.url, "--audience", audience];
        let mut bridge = ServeProcess::bridge(&sandbox, &[&words[..], &options].concat());
        let started: Value = serde_json::from_str(&bridge.address).unwrap();
        let health = started["health"].as_str().unwrap();
        let all = health.replace("/healthz", "/mcp");
        let tools = |path: &str, token: &str| {
            let url = format!("{all}{path}");
            sandbox.run(&["tools", &url, "--token", token])
        };
        bridge.address = all.clone();

        let for_all = issuer.token("ada", audience);
        for path in ["", "/s", "/files"] {
            let listed = tools(path, &for_all);
            assert!(!listed.contains("401"), "{path} {listed}");
        }
        let for_one = issuer.token("ada", &format!("{audience}/s"));
        assert!(tools("/s", &for_one).contains("forecast"));
        for path in ["", "/files"] {
            let refused = tools(path, &for_one);
            assert!(refused.contains("401"), "{path} {refused}");
        }
        let metadata = all.replace("/mcp", "/.well-known/oauth-protected-resource/mcp/s");
        let document = get(&metadata);
        let resource = format!("\"resource\":\"{audience}/s\"");
        assert!(document.contains(&resource), "{document}");
        let refused = get(&format!("{all}/s"));
        assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
        let named = "https://bridge.example/.well-known/oauth-protected-resource/mcp/s";
        assert!(refused.contains(named), "{refused}");
        let unknown = metadata.replace("mcp/s", "mcp/unknown");
        assert!(get(&unknown).starts_with("HTTP/1.1 404"));
        bridge.stop();
    }
}
