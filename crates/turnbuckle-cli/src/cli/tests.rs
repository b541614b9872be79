use super::*;

fn parse(words: &[&str]) -> Result<Cli, String> {
    let words = std::iter::once("turnbuckle").chain(words.iter().copied());
    let parsed = Cli::definition().try_get_matches_from(words);
    let parsed = parsed.and_then(|matches| Cli::from_matches(&matches));
    parsed.map_err(|error| error.to_string())
}

#[test]
fn the_command_line_definition_is_valid() {
    Cli::definition().debug_assert();
}

#[test]
fn serve_takes_the_global_options_that_it_shows() {
    for words in [
        ["-v", "--json", "--config", "a", "serve"],
        ["serve", "-v", "--json", "--config", "a"],
    ] {
        let options = parse(&words).unwrap().options;

        assert!(options.verbose && options.json, "{words:?}");
        assert_eq!(options.config, Some("a".into()), "{words:?}");
    }
}

#[test]
fn tokens_of_callers_are_not_sent_to_servers() {
    for words in [
        ["bridge", "https://a.example/mcp", "--token-file", "tokens"],
        ["--token-file", "tokens", "bridge", "https://a.example/mcp"],
    ] {
        let options = parse(&words).unwrap().options;

        assert_eq!(options.authorization.token_file, None, "{words:?}");
    }
}

#[test]
fn durations_have_units() {
    assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
    assert_eq!(parse_duration("30"), Ok(Duration::from_secs(30)));
    assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
    for wrong in [
        "",
        "s",
        "0",
        "3 weeks",
        "-1s",
        "1e400",
        "9999999999999999999999h",
    ] {
        assert!(parse_duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn headers_are_checked_and_never_shown() {
    let arguments = parse(&["ping", "a", "--header", "Authorization: Bearer x:y"]).unwrap();

    assert_eq!(arguments.options.headers[0].1.expose(), "Bearer x:y");
    assert!(!format!("{arguments:?}").contains("Bearer"));
    for wrong in ["a", ": b", "a b: c", "a: b\r\nc: d"] {
        assert!(parse(&["ping", "a", "--header", wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn options_may_stand_anywhere_before_the_program() {
    let arguments = parse(&[
        "call", "--json", "echo", "a=1", "--era", "legacy", "--", "npx", "--json",
    ])
    .unwrap();

    assert!(arguments.options.json);
    assert_eq!(arguments.options.era, EraOption::Legacy);
    let CliCommand::Call(call) = arguments.command else {
        panic!("{:?}", arguments.command)
    };
    assert_eq!(call.program.command, ["npx", "--json"]);
}

#[test]
fn help_describes_targets() {
    insta::assert_snapshot!(parse(&["--help"]).unwrap_err(), @r"
    Call MCP servers from a terminal

    TARGET names the server:

      https://host/mcp      a server on HTTP, any protocol revision and transport
      unix:PATH             a server on a Unix socket
      NAME, NAME@SOURCE     a configured server; `turnbuckle servers` lists them
      -- COMMAND ARGS...    a program to start; replaces TARGET and comes last

    Exit codes: 0 success, 1 the server returned an error, 2 usage or connection error.

    Usage: turnbuckle [OPTIONS] <COMMAND>

    Commands:
      tools        List the tools of a server, or show one in full
      call         Call a tool
      resources    List the resources and resource templates of a server
      read         Read a resource
      prompts      List the prompts of a server
      prompt       Get a prompt with arguments
      complete     Complete a prompt argument or resource template variable
      skills       List the skills of a server, or show one
      info         Show information about a server
      listen       Print change notifications until Ctrl-C
      ping         Measure the response time of a server
      check        Check a server or client against the specification
      login        Log in to a server
      logout       Delete the login to a server
      whoami       Show your logins
      servers      List configured servers
      serve        Run the context server: agent memory and code search
      bridge       Serve any servers to any client: HTTP, stdio, all eras
      record       Record the messages between a client and a server
      context      Export, import, inspect or delete context server data
      completions  Print a shell completion script
      man          Print the manual page
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Global options:
          --json
              Print JSON: results in the format of the newest revision

      -v, --verbose
              Show each message sent (>) and received (<) on stderr

          --era <ERA>
              Use this era of the protocol

              Possible values:
              - auto:   Detect what the server supports
              - modern: Stateless requests: 2026-07-28
              - legacy: Sessions with a handshake: 2025-11-25 and earlier
              
              [default: auto]

          --timeout <DURATION>
              Wait this long for a response: 500ms, 30s, 2m

          --header <NAME: VALUE>
              Send this HTTP header; repeatable

      -y, --yes
              Approve project servers and changed tools without asking

          --inherit-env
              Pass all environment variables to a configured program

          --config <FILE>
              Read configured servers from this file only

          --color <WHEN>
              Use colors

              Possible values:
              - auto:   On a terminal, unless NO_COLOR is set
              - always: Always
              - never:  Never
              
              [default: auto]

    Authorization:
          --token <TOKEN>
              Send this token (visible to other users: see --token-file)

          --token-file <FILE>
              Send the token in this file; - is stdin

          --client-id <ID>
              Use this OAuth client id instead of registering

          --client-secret-file <FILE>
              Read the secret of --client-id from this file; - is stdin

    Examples:
      turnbuckle tools https://example.com/mcp
      turnbuckle call weather forecast city=Oslo days=3
      turnbuckle call echo message=hello -- npx -y @modelcontextprotocol/server-everything
      turnbuckle read unix:/run/notes.sock note://today > today.md
    ");
}

#[test]
fn help_of_a_command_shows_both_ways_to_name_a_server() {
    insta::assert_snapshot!(parse(&["call", "--help"]).unwrap_err(), @r#"
    Call a tool

    KEY=VALUE is converted to the type in the tool's schema: `days=3` is a number if the schema has a
    number, `tags=a,b` or `tags=a tags=b` a list. KEY:=JSON is sent as JSON: `days:=3`, `where:='{"lat":
    60}'`. Both override --args. An argument that the tool's schema does not have is an error, unless
    the schema allows others with `additionalProperties`; --force sends it.

    If a tool has changed since it was first used, its definition is shown and you are asked before it
    is called; --yes approves it. Digests of tool definitions are stored in the state directory.

    On a pipe, text is written unchanged, and a single image, audio or file as its bytes.

    Usage: turnbuckle call [OPTIONS] <TARGET> <TOOL> [KEY=VALUE | KEY:=JSON]...
           turnbuckle call [OPTIONS] <TOOL> [KEY=VALUE | KEY:=JSON]... -- <COMMAND>...

    Arguments:
      [TARGET]
              The server: URL, unix:PATH or configured name

      [TOOL]
              Name of the tool

      [KEY=VALUE]...
              Arguments of the tool

      [COMMAND]...
              Start this program as the server, instead of TARGET

    Options:
          --args <JSON>
              Pass arguments as JSON: an object, @FILE, or - for stdin

          --force
              Send arguments that the tool's schema does not have

      -o, --output <FILE>
              Write the bytes of the only content block to FILE

      -h, --help
              Print help (see a summary with '-h')

    Global options:
          --json
              Print JSON: results in the format of the newest revision

      -v, --verbose
              Show each message sent (>) and received (<) on stderr

          --era <ERA>
              Use this era of the protocol

              Possible values:
              - auto:   Detect what the server supports
              - modern: Stateless requests: 2026-07-28
              - legacy: Sessions with a handshake: 2025-11-25 and earlier
              
              [default: auto]

          --timeout <DURATION>
              Wait this long for a response: 500ms, 30s, 2m

          --header <NAME: VALUE>
              Send this HTTP header; repeatable

      -y, --yes
              Approve project servers and changed tools without asking

          --inherit-env
              Pass all environment variables to a configured program

          --config <FILE>
              Read configured servers from this file only

          --color <WHEN>
              Use colors

              Possible values:
              - auto:   On a terminal, unless NO_COLOR is set
              - always: Always
              - never:  Never
              
              [default: auto]

    Authorization:
          --token <TOKEN>
              Send this token (visible to other users: see --token-file)

          --token-file <FILE>
              Send the token in this file; - is stdin

          --client-id <ID>
              Use this OAuth client id instead of registering

          --client-secret-file <FILE>
              Read the secret of --client-id from this file; - is stdin
    "#);
}

#[test]
fn a_wrong_option_is_explained() {
    insta::assert_snapshot!(parse(&["ping", "a", "--timeout", "soon"]).unwrap_err(), @r"
    error: invalid value 'soon' for '--timeout <DURATION>': expected a duration such as 500ms, 30s, 2m, 1h or 90d

    For more information, try '--help'.
    ");
}
