use super::*;
use crate::environment::{Platform, Terminal};

fn environment() -> Environment {
    Environment {
        platform: Platform::Linux,
        home: Some("/home/ada".into()),
        cwd: "/work".into(),
        vars: std::collections::BTreeMap::new(),
        user: "ada".to_owned(),
        user_id: None,
        terminal: Terminal {
            asks: false,
            reads: false,
            width: 100,
        },
    }
}

fn parse(text: &str) -> Result<Config> {
    Config::parse(
        text,
        Path::new("/etc/turnbuckle/serve.toml"),
        &environment(),
    )
}

fn complaint(text: &str) -> String {
    crate::output::style::without(&parse(text).unwrap_err().render())
}

#[test]
fn everything_can_be_said_in_a_file() {
    let config = parse(
        r#"
        listen = "127.0.0.1:9000"
        data = "~/memory"
        half-life = "90d"
        roots = ["src", "/srv"]
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
    assert_eq!(config.half_life, Some(Duration::from_secs(90 * 86_400)));
    let roots = [Path::new("/etc/turnbuckle/src"), Path::new("/srv")];
    assert_eq!(config.roots.unwrap(), roots);
    assert_eq!(config.quota, Some(Quota(Some(2_000_000_000))));
    assert_eq!(config.deadline, Some(Duration::from_secs(10)));
    assert_eq!(config.index_deadline, Some(Duration::from_secs(3_600)));
    assert_eq!(config.embeddings.unwrap().api_key_env.unwrap(), "KEY");
    let limits = Limits {
        max_connections: NonZeroUsize::new(100),
        max_sessions: NonZeroUsize::new(50),
        max_sessions_per_caller: NonZeroUsize::new(5),
    };
    assert_eq!(config.limits, limits);
}

#[test]
fn no_roots_are_not_all() {
    assert_eq!(parse("roots = []").unwrap().roots, Some(Vec::new()));
    assert_eq!(parse("").unwrap().roots, None);
}

#[test]
fn a_socket_is_found_from_the_folder_of_the_file() {
    let config = parse("listen = \"unix:s\"").unwrap();
    assert_eq!(config.listen.unwrap().to_string(), "unix:/etc/turnbuckle/s");
}

#[test]
fn a_key_that_nobody_knows_is_named_with_its_line() {
    let complaint = complaint("data = \"a\"\nlisten-on = \"b\"\n");

    assert!(
        complaint.contains("/etc/turnbuckle/serve.toml cannot be used"),
        "{complaint}"
    );
    assert!(complaint.contains("line 2"), "{complaint}");
    assert!(
        complaint.contains("unknown field `listen-on`"),
        "{complaint}"
    );
}

#[test]
fn a_value_that_makes_no_sense_is_named_with_its_line() {
    for wrong in [
        "\n\nlisten = \"nowhere\"",
        "\n\nhalf-life = \"soon\"",
        "\n\nroots = 3",
    ] {
        let complaint = complaint(wrong);
        assert!(complaint.contains("line 3"), "{complaint}");
    }
}
