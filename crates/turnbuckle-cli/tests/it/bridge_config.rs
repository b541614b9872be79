//! The configuration file of `turnbuckle bridge`.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;

use crate::{sandbox::Sandbox, serve_process::ServeProcess};

/// The path of the binary.
const BINARY: &str = env!("CARGO_BIN_EXE_turnbuckle");

/// The file of the user, below the home directory.
const FILE: &str = ".config/turnbuckle/bridge.toml";

fn set_mode(sandbox: &Sandbox, file: &str, mode: u32) {
    let file = sandbox.path().join(file);
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

fn tools(sandbox: &Sandbox, bridge: &ServeProcess) -> String {
    sandbox.run(&["tools", &bridge.address])
}

#[test]
fn the_servers_of_the_file_are_bridged_with_its_settings() {
    let sandbox = Sandbox::new();
    let weather = ServeProcess::bridge(&sandbox, &["SOCKET"]);
    let config = format!(
        "[servers.weather]\nurl = \"{}\"\ndeny = [\"picture\"]\nera = \"legacy\"\ntimeout = \"10s\"\n\n\
         [servers.memory]\ncommand = \"{BINARY}\"\nargs = [\"serve\", \"--stdio\", \"--data\", \"d\"]\nshare = \"all\"\n",
        weather.address
    );
    sandbox.write(FILE, &config);
    let bridge = ServeProcess::bridge(&sandbox, &[]);

    let listed = tools(&sandbox, &bridge);
    for expected in ["weather_forecast", "memory_checkpoint_list"] {
        assert!(listed.contains(expected), "{listed}");
    }
    assert!(!listed.contains("picture"), "{listed}");
    let called = bridge.call(&sandbox, &["weather_forecast", "city=Oslo"]);
    assert_eq!(called["high"], 21.5);
    let stderr = bridge.stop();
    // The order of the file, and the era that it selects.
    let (weather_row, memory_row) = (stderr.find("weather  up"), stderr.find("memory   up"));
    assert!(
        weather_row < memory_row && weather_row.is_some(),
        "{stderr}"
    );
    assert!(stderr.contains("weather  up     2025-11-25"), "{stderr}");
    weather.stop();
}

#[test]
fn settings_apply_to_servers_of_other_files_and_flags_win() {
    let sandbox = Sandbox::new();
    let weather = ServeProcess::bridge(&sandbox, &["SOCKET"]);
    let servers = json!({ "mcpServers": { "weather": { "url": weather.address } } });
    sandbox.write(".mcp.json", &servers.to_string());
    sandbox.write(
        FILE,
        "[servers.weather]\nallow = [\"forecast\"]\nera = \"legacy\"\n",
    );

    let bridge = ServeProcess::bridge(&sandbox, &["weather", "--yes"]);
    let listed = tools(&sandbox, &bridge);
    assert!(listed.contains("forecast"), "{listed}");
    assert!(!listed.contains("picture"), "{listed}");
    assert!(bridge.stop().contains("2025-11-25"));

    let flags = [
        "weather",
        "--yes",
        "--allow",
        "picture",
        "--server-era",
        "modern",
    ];
    let bridge = ServeProcess::bridge(&sandbox, &flags);
    let listed = tools(&sandbox, &bridge);
    assert!(listed.contains("picture"), "{listed}");
    assert!(!listed.contains("forecast"), "{listed}");
    assert!(bridge.stop().contains("2026-07-28"));
    weather.stop();
}

#[test]
fn errors_have_the_line_and_the_column() {
    let sandbox = Sandbox::new();
    let error = |text: &str| {
        sandbox.write(FILE, text);
        let output = sandbox.run(&["bridge"]);
        let message = output
            .strip_prefix("--- stderr\nerror: ")
            .unwrap_or(&output);
        let message = message.split("\n\nhint").next().unwrap_or_default();
        message.replace("\n--- exit 2\n", "").trim_end().to_owned()
    };

    let cases = [
        (
            "[servers.a]\nurl = \"http://a.example\"\nshrae = \"all\"\n",
            "3:1",
        ),
        ("[servers.a]\nurl = 1\n", "2:7"),
        (
            "[servers.a]\nurl = \"http://a.example\"\nshare = \"some\"\n",
            "3:9",
        ),
        (
            "[servers.a]\nurl = \"http://a.example\"\ntimeout = \"soon\"\n",
            "3:11",
        ),
        (
            "[servers.a]\ncommand = \"a\"\nurl = \"http://a.example\"\n",
            "3:7",
        ),
        (
            "[servers.a]\nurl = \"http://a.example\"\nargs = [\"a\"]\n",
            "3:8",
        ),
        (
            "[servers.a]\nurl = \"http://a.example\"\nauth = { kind = \"token-file\" }\n",
            "3:8",
        ),
        (
            "[servers.a]\nurl = \"http://a.example\"\nauth = { kind = \"pass-through\" }\n",
            "3:",
        ),
        (
            "[servers.a]\ncommand = \"a\"\nauth = { kind = \"login\" }\n",
            "3:8",
        ),
        ("\n[servers.typo]\nrequired = true\n", "2:10"),
        ("[other]\n", "1:2"),
        ("[servers.a]\nurl = \"http://a.example\nsesame\"\n", "3:"),
        (
            "[servers.a]\nurl = \"http://a.example\"\nforward-headers = [\"X-A\", \"Cookie\"]\n",
            "3:27",
        ),
        (
            "[servers.a]\nurl = \"http://a.example\"\nforward-headers = [\"mcp-name\"]\n",
            "3:20",
        ),
        (
            "[servers.a]\ncommand = \"a\"\nforward-headers = [\"X-A\"]\n",
            "3:20",
        ),
        (
            "[servers.a]\nurl = \"http://a.example\"\nauth = { kind = \"exchange\", client-id = \"x\", client-secret-file = \"s\" }\n",
            "3:8",
        ),
        (
            "[servers.a]\nurl = \"http://a.example\"\nauth = { kind = \"exchange\", issuer = \"http://b.example\", client-id = \"x\", client-secret-file = \"s\" }\n",
            "3:8",
        ),
        (
            "[servers.a]\nurl = \"http://a.example\"\nauth = { kind = \"exchange\", issuer = \"https://b.example\", client-id = \"x\" }\n",
            "3:8",
        ),
        (
            "[servers.a]\nurl = \"http://a.example\"\nauth = { kind = \"client-credentials\", client-id = \"x\", client-secret-file = \"s\", audience = \"y\" }\n",
            "3:8",
        ),
        (
            "[servers.a]\nurl = \"http://a.example\"\nshare = \"all\"\nauth = { kind = \"exchange\", issuer = \"https://b.example\", client-id = \"x\", client-secret-file = \"s\" }\n",
            "4:8",
        ),
        ("[policy]\nrate = { calls = 0, per = \"1m\" }\n", "2:"),
        (
            "[servers.a]\nurl = \"http://a.example\"\nscopes = [\"x\"]\n",
            "3:10",
        ),
    ];
    for (text, place) in cases {
        let message = error(text);
        let expected = format!("~/{FILE}:{place}");
        assert!(message.starts_with(&expected), "{text}\n{message}");
        assert!(!message.contains("sesame"), "{message}");
    }
    insta::assert_snapshot!(error("[servers.a]\nkey = 1\n"), @"~/.config/turnbuckle/bridge.toml:2:1: unknown field `key`, expected one of `command`, `args`, `env`, `url`, `headers`, `share`, `one-at-a-time`, `required`, `allow`, `deny`, `scopes`, `auth`, `forward-headers`, `timeout`, `era`");
    insta::assert_snapshot!(error(cases[9].0), @"~/.config/turnbuckle/bridge.toml:2:10: no server `typo` is configured");
}

#[test]
fn a_file_with_secrets_that_others_can_read_is_an_error() {
    let sandbox = Sandbox::new();
    let of_url = "[servers.a]\nurl = \"http://a.example\"\nheaders = { X-Key = \"sesame\" }\n";
    let of_program = "[servers.a]\ncommand = \"true\"\n[servers.a.env]\nKEY = \"sesame\"\n";
    for (text, place) in [(of_url, ":3:"), (of_program, ":3:")] {
        sandbox.write(FILE, text);
        for mode in [0o644, 0o640, 0o604] {
            set_mode(&sandbox, FILE, mode);
            let failed = sandbox.run(&["bridge"]);
            assert!(failed.contains(place), "{failed}");
            assert!(
                failed.contains("other users can read this file"),
                "{failed}"
            );
            assert!(!failed.contains("sesame"), "{failed}");
        }
        set_mode(&sandbox, FILE, 0o600);
        let failed = sandbox.run(&["bridge"]);
        assert!(!failed.contains("other users"), "{failed}");
    }
    sandbox.write("token", "sesame");
    let text = "[servers.a]\nurl = \"http://a.example\"\nauth = { kind = \"token-file\", file = \"../../token\" }\n";
    sandbox.write(FILE, text);
    let failed = sandbox.run(&["bridge"]);
    assert!(failed.contains("other users can read"), "{failed}");
    assert!(!failed.contains("sesame"), "{failed}");
}

#[test]
fn programs_of_a_named_file_need_approval() {
    let sandbox = Sandbox::new();
    let text = format!(
        "[servers.memory]\ncommand = \"{BINARY}\"\nargs = [\"serve\", \"--stdio\", \"--data\", \"d\"]\n"
    );
    sandbox.write("project/bridge.toml", &text);
    // Not read, because it is not named.
    sandbox.write("bridge.toml", &text);
    let missing = sandbox.run(&["bridge"]);
    assert!(missing.contains("missing argument TARGET"), "{missing}");

    let refused = sandbox.run(&["bridge", "--config", "project/bridge.toml"]);
    assert!(refused.contains("must be approved"), "{refused}");

    let words = ["--config", "project/bridge.toml", "--yes"];
    let bridge = ServeProcess::bridge(&sandbox, &words);
    let listed = tools(&sandbox, &bridge);
    assert!(listed.contains("checkpoint_list"), "{listed}");
    bridge.stop();
}
