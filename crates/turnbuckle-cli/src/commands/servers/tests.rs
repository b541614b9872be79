use super::*;
use crate::{
    output::style,
    target::config_files::tests::{TestHome, text},
};

#[test]
fn servers_are_a_table_without_secrets() {
    let home = TestHome::new();
    home.write("work/.git/HEAD", "");
    home.write(
        "work/.mcp.json",
        r#"{"mcpServers": {
            "weather": {"command": "npx", "args": ["-y", "weather server"], "env": {"KEY": "hunter2"}},
            "notes": {"type": "sse", "url": "https://notes.example/sse?key=hunter2"}
        }}"#,
    );
    home.write(
        ".codex/config.toml",
        "[mcp_servers.weather]\nurl = \"https://weather.example/mcp\"\nhttp_headers = { X-Key = \"hunter2\" }\n",
    );
    let environment = home.environment("work");
    let found = config_files::find_servers(&environment, None);

    let shown = style::strip(&table(&found, &environment));
    let json = document(&found, &environment).to_string();

    insta::assert_snapshot!(shown, @r"
    name             transport  state         file                  connection
    weather          http       yours         ~/.codex/config.toml  https://weather.example/mcp
    weather@project  stdio      shadowed      .mcp.json             npx -y 'weather server'
    notes            sse        not approved  .mcp.json             https://notes.example/sse?***
    ");
    insta::assert_snapshot!(text(&home, &json), @r#"{"servers":[{"name":"weather","source":"codex","file":"~/.codex/config.toml","scope":"user","hidden":false,"approved":true,"transport":"http","url":"https://weather.example/mcp","headers":{"X-Key":"***"}},{"name":"weather","source":"project","file":"~/work/.mcp.json","scope":"project","hidden":true,"approved":false,"transport":"stdio","command":"npx","args":["-y","weather server"],"env":{"KEY":"***"}},{"name":"notes","source":"project","file":"~/work/.mcp.json","scope":"project","hidden":false,"approved":false,"transport":"sse","url":"https://notes.example/sse?***","headers":{}}]}"#);
}

#[test]
fn an_approved_server_is_listed_as_such() {
    let home = TestHome::new();
    home.write("work/.git/HEAD", "");
    let definition = |url: &str| format!(r#"{{"mcpServers": {{"a": {{"url": "{url}"}}}}}}"#);
    home.write("work/.mcp.json", &definition("http://a.example"));
    let environment = home.environment("work");
    let state = || {
        let found = config_files::find_servers(&environment, None);
        super::state(&found.servers[0], &found, &environment)
    };
    assert_eq!(state(), "not approved");
    let is_resolved = || {
        let found = config_files::find_servers(&environment, None);
        let mut is_resolved = false;
        is_approved_with(&found.servers[0], &environment, || {
            is_resolved = true;
            None
        });
        is_resolved
    };
    assert!(!is_resolved(), "the paths in it may lead anywhere");

    let found = config_files::find_servers(&environment, None);
    let server = &found.servers[0];
    let resolved = server.resolve(&environment).unwrap();
    let (mut typed, mut shown) = ("y\n".as_bytes(), Vec::new());
    let asking = trust::ConfirmMode::Terminal(&mut typed, &mut shown);
    trust::ensure_trusted(server, &resolved, &environment, asking).unwrap();

    assert_eq!(state(), "approved");
    assert!(is_resolved());
    home.write("work/.mcp.json", &definition("http://b.example"));
    assert_eq!(state(), "not approved");
    assert!(!is_resolved(), "the paths in it may lead anywhere");
}

#[test]
fn an_approval_of_an_earlier_version_is_listed_as_approved() {
    let home = TestHome::new();
    home.write("work/.git/HEAD", "");
    home.write(
        "work/.mcp.json",
        r#"{"mcpServers": {"a": {"url": "http://a.example"}}}"#,
    );
    let environment = home.environment("work");
    let found = config_files::find_servers(&environment, None);
    let server = &found.servers[0];
    let resolved = server.resolve(&environment).unwrap();
    let (mut typed, mut shown) = ("y\n".as_bytes(), Vec::new());
    let asking = trust::ConfirmMode::Terminal(&mut typed, &mut shown);
    trust::ensure_trusted(server, &resolved, &environment, asking).unwrap();

    let file = ".local/state/turnbuckle/trust.json";
    let text = std::fs::read_to_string(home.path().join(file)).unwrap();
    let mut content: Value = serde_json::from_str(&text).unwrap();
    let removed = content["agreed"][0]
        .as_object_mut()
        .unwrap()
        .remove("written");
    assert!(removed.is_some());
    home.write(file, &content.to_string());

    assert_eq!(state(server, &found, &environment), "approved");
}
