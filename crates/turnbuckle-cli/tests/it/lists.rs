//! Tests of `tools`, `resources`, `prompts`, `skills` and `info`.

use crate::sandbox::Sandbox;

#[test]
fn tools_are_signatures() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["tools", "SOCKET"]), @r"
    forecast(city: string, days?: integer 1..7 = 3) -> {summary: string, high: number}  [read-only]
        Forecast for one city
    measure()
        Measures, which takes a while
    picture()
        Shows the sky
    shout()
        Says what no terminal should obey
    sleep()
        Answers much later
    rename()
        Asks for a new name
    ");
    insta::assert_snapshot!(sandbox.run(&["tools", "SOCKET", "forecast"]), @r#"
    forecast(city: string, days?: integer 1..7 = 3) -> {summary: string, high: number}  [read-only]

    Forecast for one city

    argument  type              description
    city      string            City name, for example "Oslo".
    days?     integer 1..7 = 3  Days ahead.
    "#);
    insta::assert_snapshot!(sandbox.run(&["tools", "SOCKET", "forecast", "--json"]), @r#"
    {
      "name": "forecast",
      "description": "Forecast for one city",
      "inputSchema": {
        "type": "object",
        "properties": {
          "city": {
            "type": "string",
            "description": "City name, for example \"Oslo\"."
          },
          "days": {
            "type": "integer",
            "minimum": 1,
            "maximum": 7,
            "default": 3,
            "description": "Days ahead."
          }
        },
        "required": [
          "city"
        ],
        "additionalProperties": false
      },
      "outputSchema": {
        "type": "object",
        "properties": {
          "summary": {
            "type": "string"
          },
          "high": {
            "type": "number"
          }
        },
        "required": [
          "summary",
          "high"
        ]
      },
      "annotations": {
        "readOnlyHint": true
      }
    }
    "#);
    insta::assert_snapshot!(sandbox.run(&["tools", "SOCKET", "rain"]), @r"
    --- stderr
    error: unknown tool `rain`

    hint: list the tools with `turnbuckle tools SOCKET`
    --- exit 1
    ");
}

#[test]
fn json_lists_every_tool() {
    let sandbox = Sandbox::new();

    let output = sandbox
        .command(&["tools", "SOCKET", "--json"])
        .output()
        .unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();

    let names: Vec<_> = document["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(
        names,
        ["forecast", "measure", "picture", "shout", "sleep", "rename"]
    );
}

#[test]
fn resources_and_templates_are_tables() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["resources", "SOCKET"]), @r"
    resource                   type           size  description
    weather://about            text/plain           What this is
    weather://sky              image/png      4 B   sky
    skill://umbrella/SKILL.md  text/markdown  83 B  When to take one.

    template               type        description
    weather://city/{city}  text/plain  The weather of a city
    ");
}

#[test]
fn prompts_are_signatures() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["prompts", "SOCKET"]), @r"
    pack(city)
        Helps to pack
        city: Where to go.
    ");
    insta::assert_snapshot!(sandbox.run(&["prompts", "SOCKET", "--json"]), @r#"
    {
      "prompts": [
        {
          "name": "pack",
          "description": "Helps to pack",
          "arguments": [
            {
              "name": "city",
              "description": "Where to go.",
              "required": true
            }
          ]
        }
      ]
    }
    "#);
}

#[test]
fn skills_are_a_table_and_their_instructions_text() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["skills", "SOCKET"]), @r"
    skill     files  size  description
    umbrella  1      83 B  When to take one.
    ");
    insta::assert_snapshot!(sandbox.run(&["skills", "SOCKET", "umbrella"]), @r#"
    ---
    name: "umbrella"
    description: "When to take one."
    ---

    Look out of the window.
    "#);
    insta::assert_snapshot!(sandbox.run(&["skills", "SOCKET", "parasol"]), @r"
    --- stderr
    error: unknown skill `parasol`

    hint: list the skills with `turnbuckle skills SOCKET`
    --- exit 1
    ");
}

#[test]
fn info_works_in_both_eras() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["info", "SOCKET"]), @r"
    weather 1.0.0
    Weather station

    revision    2026-07-28 (stateless)
    features    tools, resources, subscriptions, prompts, completions, logging
    extensions  io.modelcontextprotocol/skills

    Forecasts for European cities.
    ");
    insta::assert_snapshot!(sandbox.run(&["info", "SOCKET", "--era", "legacy"]), @r"
    weather 1.0.0
    Weather station

    revision    2025-11-25 (session)
    features    tools, resources, subscriptions, prompts, completions, logging
    extensions  io.modelcontextprotocol/skills

    Forecasts for European cities.
    ");
    insta::assert_snapshot!(sandbox.run(&["info", "SOCKET", "--json"]), @r#"
    {
      "serverInfo": {
        "name": "weather",
        "title": "Weather station",
        "version": "1.0.0"
      },
      "protocolVersion": "2026-07-28",
      "supportedVersions": [
        "2024-10-07",
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28"
      ],
      "capabilities": {
        "logging": {},
        "completions": {},
        "prompts": {
          "listChanged": true
        },
        "resources": {
          "subscribe": true,
          "listChanged": true
        },
        "tools": {
          "listChanged": true
        },
        "extensions": {
          "io.modelcontextprotocol/skills": {
            "directoryRead": true
          }
        }
      },
      "instructions": "Forecasts for European cities."
    }
    "#);
}

#[test]
fn colors_are_used_only_when_requested() {
    let sandbox = Sandbox::new();
    let colored = |words: &[&str]| sandbox.run(words).contains('\u{1b}');

    assert!(!colored(&["prompts", "SOCKET"]));
    assert!(colored(&["prompts", "SOCKET", "--color", "always"]));
    assert!(!colored(&[
        "prompts", "SOCKET", "--color", "always", "--json"
    ]));
}

/// A server of 2025-11-25 that supports prompts and returns an empty list.
#[cfg(unix)]
const BARE: &str = r#"
answer() { read -r _; echo "{\"jsonrpc\":\"2.0\",\"id\":$1,$2}"; }
answer 1 '"error":{"code":-32601,"message":"what?"}'
answer 2 '"result":{"protocolVersion":"2025-11-25","capabilities":{"prompts":{}},"serverInfo":{"name":"bare","version":"1"}}'
read -r _
answer 3 '"result":{"prompts":[]}'
read -r _
"#;

#[cfg(unix)]
#[test]
fn an_empty_list_is_reported() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["prompts", "--", "sh", "-c", BARE]), @r"
    --- stderr
    the server lists no prompts
    ");
}
