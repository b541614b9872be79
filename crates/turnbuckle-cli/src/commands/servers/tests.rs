use super::*;
use crate::output::style;
use crate::servers::tests::{Home, text};

#[test]
fn servers_are_a_table_without_secrets() {
    let home = Home::new();
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
    let found = servers::find(&environment, None);

    let shown = style::without(&table(&found, &environment));
    let json = document(&found).to_string();

    insta::assert_snapshot!(shown, @r"
    name           transport  file                  reached by
    weather        stdio      .mcp.json             npx -y 'weather server'
    notes          sse        .mcp.json             https://notes.example/sse?***
    weather@codex  http       ~/.codex/config.toml  https://weather.example/mcp
    ");
    insta::assert_snapshot!(text(&home, &json), @r#"{"servers":[{"name":"weather","source":"project","file":"~/work/.mcp.json","hidden":false,"transport":"stdio","command":"npx","args":["-y","weather server"],"env":{"KEY":"***"}},{"name":"notes","source":"project","file":"~/work/.mcp.json","hidden":false,"transport":"sse","url":"https://notes.example/sse?***","headers":{}},{"name":"weather","source":"codex","file":"~/.codex/config.toml","hidden":true,"transport":"http","url":"https://weather.example/mcp","headers":{"X-Key":"***"}}]}"#);
}
