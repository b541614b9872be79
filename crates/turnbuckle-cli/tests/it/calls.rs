//! Tests of `call`, `read`, `prompt` and `complete`.

use std::{io::Write as _, process::Stdio};

use crate::sandbox::Sandbox;

#[test]
fn a_tool_is_called_with_arguments_of_its_types() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "forecast", "city=Oslo", "days=2"]), @r#"
    {
      "summary": "Sun over Oslo for 2 days",
      "high": 21.5
    }
    "#);
    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "forecast", "--args", r#"{"city": "Bergen", "days": 5}"#, "days:=1", "--json"]), @r#"
    {
      "content": [
        {
          "type": "text",
          "text": "{\"summary\":\"Sun over Bergen for 1 days\",\"high\":21.5}"
        }
      ],
      "structuredContent": {
        "summary": "Sun over Bergen for 1 days",
        "high": 21.5
      },
      "_meta": {
        "io.modelcontextprotocol/serverInfo": {
          "name": "weather",
          "title": "Weather station",
          "version": "1.0.0"
        }
      }
    }
    "#);
}

#[test]
fn arguments_come_from_stdin_and_files() {
    let sandbox = Sandbox::new();
    sandbox.write("args.json", r#"{"city": "Oslo"}"#);
    let mut command = sandbox.command(&["call", "SOCKET", "forecast", "--args", "-"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());

    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(br#"{"city": "Bergen"}"#)
        .unwrap();
    let from_stdin = sandbox.render(&child.wait_with_output().unwrap());
    let from_file = sandbox.run(&["call", "SOCKET", "forecast", "--args", "@args.json"]);

    assert!(
        from_stdin.contains("Sun over Bergen for 3 days"),
        "{from_stdin}"
    );
    assert!(
        from_file.contains("Sun over Oslo for 3 days"),
        "{from_file}"
    );
}

#[test]
fn an_error_of_the_server_is_exit_code_1() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "forecast", "city=Atlantis"]), @r"
    --- stderr
    error: `forecast` failed: no station in Atlantis

    hint: show its arguments with `turnbuckle tools SOCKET forecast`
    --- exit 1
    ");
    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "forecast", "city=Atlantis", "--json"]), @r#"
    {
      "content": [
        {
          "type": "text",
          "text": "no station in Atlantis"
        }
      ],
      "isError": true,
      "_meta": {
        "io.modelcontextprotocol/serverInfo": {
          "name": "weather",
          "title": "Weather station",
          "version": "1.0.0"
        }
      }
    }
    --- stderr
    error: `forecast` failed: no station in Atlantis

    hint: show its arguments with `turnbuckle tools SOCKET forecast`
    --- exit 1
    "#);
    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "forecast", "city=Oslo", "days=9"]), @r"
    --- stderr
    error: `forecast` failed: invalid arguments: `arguments.days`: invalid value: number `9`, expected at most 7

    hint: show its arguments with `turnbuckle tools SOCKET forecast`
    --- exit 1
    ");
    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "rain", "a=1"]), @r"
    --- stderr
    error: unknown tool `rain`

    hint: list the tools with `turnbuckle tools SOCKET`
    --- exit 1
    ");
    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "rain", "--json"]), @r#"
    {
      "error": {
        "code": -32602,
        "message": "unknown tool `rain`"
      }
    }
    --- stderr
    error: `tools/call` returned an error: unknown tool `rain` (-32602)

    hint: list the tools with `turnbuckle tools SOCKET`
    --- exit 1
    "#);
}

#[test]
fn arguments_that_cannot_be_sent_are_exit_code_2() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "forecast", "city=Oslo", "days=soon"]), @r"
    --- stderr
    error: invalid value `soon` for `days`: expected integer 1..7

    hint: show its arguments with `turnbuckle tools SOCKET forecast`
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "forecast", "town=Oslo"]), @r"
    --- stderr
    error: unknown argument `town`: expected one of `city`, `days`

    hint: show its arguments with `turnbuckle tools SOCKET forecast`; `--force` sends it anyway
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "forecast", "city=Oslo", "--args", r#"{"day": 3}"#]), @r"
    --- stderr
    error: unknown argument `day`: did you mean `days`? The tool has `city`, `days`

    hint: show its arguments with `turnbuckle tools SOCKET forecast`; `--force` sends it anyway
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET"]), @r"
    --- stderr
    error: missing argument TOOL

    hint: see `turnbuckle call --help`
    --- exit 2
    ");
}

#[test]
fn an_unknown_argument_is_sent_with_force() {
    let sandbox = Sandbox::new();

    // The server reports it, so it was sent.
    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "forecast", "city=Oslo", "day=3", "--force"]), @r"
    --- stderr
    error: `forecast` failed: invalid arguments: `arguments`: unknown field `day`

    hint: show its arguments with `turnbuckle tools SOCKET forecast`
    --- exit 1
    ");
}

#[test]
fn log_messages_go_to_stderr_and_the_bar_only_to_terminals() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "measure"]), @r"
    21.5 degrees
    --- stderr
    info: warming up
    ");
}

#[test]
fn a_single_image_is_written_as_bytes() {
    let sandbox = Sandbox::new();

    let piped = sandbox
        .command(&["call", "SOCKET", "picture"])
        .output()
        .unwrap();
    let saved = sandbox.run(&["call", "SOCKET", "picture", "--output", "sky.png"]);
    let nothing = sandbox.run(&[
        "call",
        "SOCKET",
        "forecast",
        "city=Oslo",
        "--output",
        "no/such/folder",
    ]);

    assert_eq!(piped.stdout, [1, 2, 3]);
    assert_eq!(saved, "");
    assert_eq!(
        std::fs::read(sandbox.path().join("sky.png")).unwrap(),
        [1, 2, 3]
    );
    insta::assert_snapshot!(nothing, @r"
    --- stderr
    error: cannot write ~/no/such/folder: No such file or directory (os error 2)
    --- exit 2
    ");
}

#[test]
fn a_pipe_gets_raw_text_and_json_is_escaped() {
    let sandbox = Sandbox::new();

    let exact = sandbox
        .command(&["call", "SOCKET", "shout"])
        .output()
        .unwrap();

    assert_eq!(
        exact.stdout,
        "\u{1b}[31mred\u{1b}[0m \u{202e}drawkcab\u{7}\n".as_bytes()
    );
    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "shout", "--json"]), @r#"
    {
      "content": [
        {
          "type": "text",
          "text": "\u001b[31mred\u001b[0m \u202edrawkcab\u0007"
        }
      ],
      "_meta": {
        "io.modelcontextprotocol/serverInfo": {
          "name": "weather",
          "title": "Weather station",
          "version": "1.0.0"
        }
      }
    }
    "#);
}

#[test]
fn an_elicitation_without_a_terminal_is_cancelled_with_a_warning() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "rename"]), @r"
    --- stderr
    warning: `SOCKET` requests input (“How shall it be called?”), which needs a terminal; the request is cancelled
    error: `rename` failed: the user did not respond

    hint: show its arguments with `turnbuckle tools SOCKET rename`
    --- exit 1
    ");
    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "rename", "--era", "legacy"]), @r"
    --- stderr
    warning: `SOCKET` requests input (“How shall it be called?”), which needs a terminal; the request is cancelled
    error: `rename` failed: the user did not respond

    hint: show its arguments with `turnbuckle tools SOCKET rename`
    --- exit 1
    ");
}

#[test]
fn a_resource_is_read_as_its_bytes() {
    let sandbox = Sandbox::new();

    let sky = sandbox
        .command(&["read", "SOCKET", "weather://sky"])
        .output()
        .unwrap();

    assert_eq!(sky.stdout, [1, 2, 3, 255]);
    assert_eq!(
        sandbox.run(&["read", "SOCKET", "weather://city/Oslo"]),
        "Oslo: sunny\n"
    );
    insta::assert_snapshot!(sandbox.run(&["read", "SOCKET", "weather://about", "--json"]), @r#"
    {
      "contents": [
        {
          "uri": "weather://about",
          "mimeType": "text/plain",
          "text": "A station in Oslo.\n"
        }
      ],
      "ttlMs": 0,
      "cacheScope": "private",
      "_meta": {
        "io.modelcontextprotocol/serverInfo": {
          "name": "weather",
          "title": "Weather station",
          "version": "1.0.0"
        }
      }
    }
    "#);
    insta::assert_snapshot!(sandbox.run(&["read", "SOCKET", "weather://city/Atlantis"]), @r"
    --- stderr
    error: `resources/read` returned an error: resource not found (-32602)

    hint: list the resources with `turnbuckle resources SOCKET`
    --- exit 1
    ");
}

#[test]
fn a_prompt_is_filled_in() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["prompt", "SOCKET", "pack", "city=Oslo"]), @r"
    user:
    What should I pack for Oslo?
    ");
    insta::assert_snapshot!(sandbox.run(&["prompt", "SOCKET", "pack"]), @r"
    --- stderr
    error: `prompts/get` returned an error: invalid arguments: `arguments`: missing field `city` (-32602)

    hint: show its arguments with `turnbuckle prompts SOCKET`
    --- exit 1
    ");
    insta::assert_snapshot!(sandbox.run(&["prompt", "SOCKET", "pack", "Oslo"]), @r"
    --- stderr
    error: invalid argument `Oslo`: expected `key=value`

    hint: show its arguments with `turnbuckle prompts SOCKET`
    --- exit 2
    ");
}

#[test]
fn an_argument_is_completed() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["complete", "SOCKET", "--resource", "weather://city/{city}", "city", "O"]), @r"
    Oslo
    Odense
    ");
    insta::assert_snapshot!(sandbox.run(&["complete", "SOCKET", "--resource", "weather://city/{city}", "city", "B", "--json"]), @r#"
    {
      "completion": {
        "values": [
          "Bergen"
        ]
      }
    }
    "#);
    insta::assert_snapshot!(sandbox.run(&["complete", "SOCKET", "city"]), @r"
    --- stderr
    error: the following required arguments were not provided:
      <--prompt <NAME>|--resource <TEMPLATE>>

    Usage: turnbuckle complete [OPTIONS] <--prompt NAME|--resource TEMPLATE> <TARGET> <ARGUMENT> [VALUE]
           turnbuckle complete [OPTIONS] <--prompt NAME|--resource TEMPLATE> <ARGUMENT> [VALUE] -- <COMMAND>...

    For more information, try '--help'.
    --- exit 2
    ");
}

#[test]
fn ping_prints_the_response_time() {
    let sandbox = Sandbox::new();

    for era in ["modern", "legacy"] {
        let seen = sandbox.run(&["ping", "SOCKET", "--era", era]);
        assert!(
            seen.starts_with("response in ") && seen.ends_with(" ms\n"),
            "{seen}"
        );
    }
}

#[test]
fn the_traffic_is_shown_message_by_message() {
    let sandbox = Sandbox::new();

    let seen = sandbox.run(&["call", "SOCKET", "measure", "--verbose", "--era", "legacy"]);

    let begins = |sign: &str| seen.lines().filter(|line| line.starts_with(sign)).count();
    assert!(
        seen.contains("> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\""),
        "{seen}"
    );
    assert!(begins("> ") >= 4 && begins("< ") >= 4, "{seen}");
    assert!(seen.contains("info: warming up"), "{seen}");
}
