use super::*;
use crate::environment::{Platform, TerminalInfo};

fn environment() -> Environment {
    Environment {
        platform: Platform::Linux,
        home: Some("/home/ada".into()),
        cwd: "/work".into(),
        vars: std::collections::BTreeMap::new(),
        user: "ada".to_owned(),
        user_id: None,
        terminal: TerminalInfo {
            is_interactive: false,
            stdout_is_terminal: false,
            width: 100,
        },
    }
}

fn parse(text: &str) -> Result<ServeConfig> {
    ServeConfig::parse(
        text,
        Path::new("/etc/turnbuckle/serve.toml"),
        &environment(),
    )
}

fn error_text(text: &str) -> String {
    crate::output::style::strip(&parse(text).unwrap_err().render())
}

#[test]
fn every_setting_can_be_in_the_file() {
    let config = parse(
        r#"
        listen = "127.0.0.1:9000"
        data = "~/memory"
        half-life = "90d"
        roots = ["src", "/srv"]
        tools = "core"
        log-file = "~/serve.log"
        quota = "2GB"
        deadline = "10s"
        index-deadline = "1h"
        allow-hosts = ["box.example"]
        [embeddings]
        url = "http://127.0.0.1:11434/v1/embeddings"
        model = "small"
        api-key-env = "KEY"
        [limits]
        max-connections = 100
        max-sessions = 50
        max-sessions-per-caller = 5
        "#,
    )
    .unwrap();

    assert_eq!(config.listen.unwrap().to_string(), "127.0.0.1:9000");
    assert_eq!(config.data.unwrap(), Path::new("/home/ada/memory"));
    assert_eq!(config.tools, Some(ToolSetOption::Core));
    assert_eq!(config.log_file.unwrap(), Path::new("/home/ada/serve.log"));
    assert_eq!(config.half_life, Some(Duration::from_secs(90 * 86_400)));
    let roots = [Path::new("/etc/turnbuckle/src"), Path::new("/srv")];
    assert_eq!(config.roots.unwrap(), roots);
    assert_eq!(config.quota, Some(QuotaOption(Some(2_000_000_000))));
    assert_eq!(config.deadline, Some(Duration::from_secs(10)));
    assert_eq!(config.index_deadline, Some(Duration::from_secs(3_600)));
    assert_eq!(config.embeddings.unwrap().api_key_env.unwrap(), "KEY");
    let limits = ServeLimits {
        max_connections: NonZeroUsize::new(100),
        max_sessions: NonZeroUsize::new(50),
        max_sessions_per_caller: NonZeroUsize::new(5),
    };
    assert_eq!(config.limits, limits);
}

#[test]
fn an_empty_root_list_allows_no_project() {
    assert_eq!(parse("roots = []").unwrap().roots, Some(Vec::new()));
    assert_eq!(parse("").unwrap().roots, None);
}

#[test]
fn a_socket_is_found_from_the_folder_of_the_file() {
    let config = parse("listen = \"unix:s\"").unwrap();
    assert_eq!(config.listen.unwrap().to_string(), "unix:/etc/turnbuckle/s");
}

#[test]
fn an_unknown_key_is_reported_with_its_line() {
    let error = error_text("data = \"a\"\nlisten-on = \"b\"\n");

    assert!(
        error.contains("invalid configuration /etc/turnbuckle/serve.toml"),
        "{error}"
    );
    assert!(error.contains("line 2"), "{error}");
    assert!(error.contains("unknown field `listen-on`"), "{error}");
}

#[test]
fn an_invalid_value_is_reported_with_its_line() {
    for wrong in [
        "\n\nlisten = \"nowhere\"",
        "\n\nhalf-life = \"soon\"",
        "\n\nroots = 3",
    ] {
        let error = error_text(wrong);
        assert!(error.contains("line 3"), "{error}");
    }
}

#[test]
fn an_error_describes_the_expected_value_without_rust_types() {
    for (wrong, expected) in [
        ("limits = 3", "invalid type: number `3`, expected object"),
        ("roots = 3", "invalid type: number `3`, expected array"),
        (
            "limits.max-sessions = 0",
            "invalid value: number `0`, expected positive integer",
        ),
    ] {
        let error = error_text(wrong);
        assert!(error.trim_end().ends_with(expected), "{error}");
    }
}

#[test]
fn sizes_have_decimal_and_binary_units() {
    for (text, bytes) in [
        ("500MB", Some(500_000_000)),
        ("4 GB", Some(4_000_000_000)),
        ("1GiB", Some(1 << 30)),
        ("1000", Some(1_000)),
        ("none", None),
    ] {
        assert_eq!(parse_quota(text), Ok(QuotaOption(bytes)), "{text}");
    }
    for wrong in ["", "GB", "0", "-1", "4 pints", "99999999999GB"] {
        assert!(parse_quota(wrong).is_err(), "{wrong}");
    }
}
