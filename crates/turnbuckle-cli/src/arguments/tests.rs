use clap::CommandFactory;

use super::*;

fn parse(words: &[&str]) -> Result<Arguments, String> {
    let words = std::iter::once("turnbuckle").chain(words.iter().copied());
    Arguments::try_parse_from(words).map_err(|error| error.to_string())
}

#[test]
fn the_definition_is_sound() {
    Arguments::command().debug_assert();
}

#[test]
fn durations_have_units() {
    assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
    assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
    assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
    for wrong in [
        "",
        "s",
        "0",
        "3 weeks",
        "-1s",
        "1e400",
        "9999999999999999999999h",
    ] {
        assert!(duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn headers_are_checked_and_never_shown() {
    let arguments = parse(&["ping", "a", "--header", "Authorization: Bearer x:y"]).unwrap();

    assert_eq!(arguments.options.headers[0].1.reveal(), "Bearer x:y");
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
    assert_eq!(arguments.options.era, Era::Legacy);
    let Command::Call(call) = arguments.command else {
        panic!("{:?}", arguments.command)
    };
    assert_eq!(call.program.command, ["npx", "--json"]);
}

#[test]
fn help_says_what_a_target_is() {
    insta::assert_snapshot!(parse(&["--help"]).unwrap_err(), @r"
    Call MCP servers from a terminal

    TARGET says which server is meant:

      https://host/mcp      a server on HTTP, of any revision and either transport
      unix:PATH             a server on a Unix socket
      NAME, NAME@SOURCE     a server of a configuration; `turnbuckle servers` lists them
      -- COMMAND ARGS...    a program that is started for this one command; it stands at the
                            end, and there is no word for TARGET then

    Exit codes: 0 done, 1 the answer is no, 2 it could not be asked.

    Usage: turnbuckle [OPTIONS] <COMMAND>

    Commands:
      tools        List the tools of a server, or show one in full
      call         Call a tool
      resources    List the resources of a server, and the templates of their addresses
      read         Read a resource
      prompts      List the prompts of a server
      prompt       Show a prompt with its arguments filled in
      complete     Ask how an argument of a prompt or a variable of a template could go on
      skills       List the skills of a server, or show the instructions of one
      info         Show what a server says about itself
      listen       Show what changes, until Ctrl-C
      ping         See whether a server answers, and how fast
      check        Check whether a server or a client keeps to the specification
      login        Log in to a server
      logout       Forget the login to a server
      whoami       Show as whom you are logged in, to one server or to all of them
      servers      List the servers of the configurations on this machine
      serve        Run the context server: memory for agents, and search in repositories
      context      Take along, bring back, measure or forget what the context server remembers
      completions  Print the completions of a shell
      man          Print the manual page
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Options of every command:
          --json
              Print JSON: the result as the server gave it, in the newest shape

      -v, --verbose
              Show every message that is sent (>) and received (<) on stderr

          --era <ERA>
              Speak to the server as in this era of the protocol

              Possible values:
              - auto:   Whichever the server knows
              - modern: Every request on its own: 2026-07-28
              - legacy: With a handshake: 2025-11-25 and earlier
              
              [default: auto]

          --timeout <DURATION>
              Wait this long for an answer: 500ms, 30s, 2m

          --header <NAME: VALUE>
              Send this header, too; can be given again

      -y, --yes
              Use what a project's configuration says, and tools that have changed, without asking

          --inherit-env
              Pass all environment variables to a configured program

          --config <FILE>
              Look for servers in this file only

          --color <WHEN>
              When to use colours

              Possible values:
              - auto:   On a terminal, unless NO_COLOR is set
              - always: Always
              - never:  Never
              
              [default: auto]

    Authorization:
          --token <TOKEN>
              Send this token; other users of this machine can see it, so --token-file is better

          --token-file <FILE>
              Send the token that stands in this file; - is stdin

          --client-id <ID>
              Be known to the authorization server by this id, instead of registering there

          --client-secret-file <FILE>
              Show who we are by the secret in this file, which belongs to --client-id; - is stdin

    Examples:
      turnbuckle tools https://example.com/mcp
      turnbuckle call weather forecast city=Oslo days=3
      turnbuckle call echo text=hello -- npx -y @modelcontextprotocol/server-everything
      turnbuckle read unix:/run/notes.sock note://today > today.md
    ");
}

#[test]
fn help_of_a_command_shows_both_ways_to_name_a_server() {
    insta::assert_snapshot!(parse(&["call", "--help"]).unwrap_err(), @r#"
    Call a tool

    KEY=VALUE is typed by the schema of the tool: `days=3` is a number where it asks for one, `tags=a,b`
    or `tags=a tags=b` a list. KEY:=JSON is taken as it is: `days:=3`, `where:='{"lat": 60}'`. Both win
    over what --args says.

    A tool that has changed since it was first seen is shown, and asked for, before it is called; with
    --yes, or once you agreed, it counts as known. What the tools of a server looked like is kept in the
    user's state folder.

    A pipe gets text as it is, and a single picture, sound or file as its bytes.

    Usage: turnbuckle call [OPTIONS] <TARGET> <TOOL> [KEY=VALUE | KEY:=JSON]...
           turnbuckle call [OPTIONS] <TOOL> [KEY=VALUE | KEY:=JSON]... -- <COMMAND>...

    Arguments:
      [TARGET]
              The server: URL, unix:PATH, or its name in a configuration; left out before `-- COMMAND`

      [TOOL]
              The tool

      [KEY=VALUE]...
              Its arguments

      [COMMAND]...
              In place of TARGET: a program to start, which is spoken to on its stdin and stdout

    Options:
          --args <JSON>
              Arguments as one JSON object: the JSON itself, @FILE, or - for stdin

      -o, --output <FILE>
              Write the bytes of the result to this file

      -h, --help
              Print help (see a summary with '-h')

    Options of every command:
          --json
              Print JSON: the result as the server gave it, in the newest shape

      -v, --verbose
              Show every message that is sent (>) and received (<) on stderr

          --era <ERA>
              Speak to the server as in this era of the protocol

              Possible values:
              - auto:   Whichever the server knows
              - modern: Every request on its own: 2026-07-28
              - legacy: With a handshake: 2025-11-25 and earlier
              
              [default: auto]

          --timeout <DURATION>
              Wait this long for an answer: 500ms, 30s, 2m

          --header <NAME: VALUE>
              Send this header, too; can be given again

      -y, --yes
              Use what a project's configuration says, and tools that have changed, without asking

          --inherit-env
              Pass all environment variables to a configured program

          --config <FILE>
              Look for servers in this file only

          --color <WHEN>
              When to use colours

              Possible values:
              - auto:   On a terminal, unless NO_COLOR is set
              - always: Always
              - never:  Never
              
              [default: auto]

    Authorization:
          --token <TOKEN>
              Send this token; other users of this machine can see it, so --token-file is better

          --token-file <FILE>
              Send the token that stands in this file; - is stdin

          --client-id <ID>
              Be known to the authorization server by this id, instead of registering there

          --client-secret-file <FILE>
              Show who we are by the secret in this file, which belongs to --client-id; - is stdin
    "#);
}

#[test]
fn a_wrong_option_is_explained() {
    insta::assert_snapshot!(parse(&["ping", "a", "--timeout", "soon"]).unwrap_err(), @r"
    error: invalid value 'soon' for '--timeout <DURATION>': write it as 500ms, 30s, 2m, 1h or 90d

    For more information, try '--help'.
    ");
}
