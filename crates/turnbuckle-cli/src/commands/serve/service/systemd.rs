//! The systemd user unit of Linux.

use super::{MARKER, Service, ServiceProgram};
use crate::environment::Environment;

/// The name of the systemd unit.
const UNIT: &str = "turnbuckle.service";

/// Variables that decide where data and settings are, which a service manager may not have.
const VARIABLES: [&str; 2] = ["XDG_CONFIG_HOME", "XDG_DATA_HOME"];

pub(super) fn service(environment: &Environment, program: &ServiceProgram) -> Option<Service> {
    let file = environment.config_dir()?.join("systemd/user").join(UNIT);
    // In a command line, `$` starts a variable.
    let words = program.words();
    let words: Vec<_> = words
        .iter()
        .map(|word| systemd_word(word).replace('$', "$$"))
        .collect();
    let variables: String = VARIABLES
        .iter()
        .filter_map(|name| Some((name, environment.var(name)?)))
        .map(|(name, value)| format!("Environment={}\n", systemd_word(&format!("{name}={value}"))))
        .collect();
    let definition = format!(
        "# {MARKER}\n\
         [Unit]\n\
         Description=Turnbuckle context server\n\
         \n\
         [Service]\n\
         ExecStart={}\n\
         WorkingDirectory={}\n\
         {variables}\
         Restart=on-failure\n\
         RestartSec=2\n\
         NoNewPrivileges=true\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        words.join(" "),
        environment.cwd.display().to_string().replace('%', "%%"),
    );
    let control = |words: &str| format!("systemctl --user {words}");
    let commands = vec![
        (
            "Start",
            format!(
                "{} && {}",
                control("daemon-reload"),
                control(&format!("enable --now {UNIT}"))
            ),
        ),
        ("Restart", control(&format!("restart {UNIT}"))),
        ("Stop", control(&format!("disable --now {UNIT}"))),
        ("State", control(&format!("status {UNIT}"))),
        ("Log", format!("journalctl --user --unit {UNIT}")),
        ("Run without a login", "loginctl enable-linger".to_owned()),
    ];
    let removal = vec![(
        "Stop",
        format!(
            "{}; {}",
            control(&format!("disable --now {UNIT}")),
            control("daemon-reload")
        ),
    )];
    Some(Service {
        file,
        definition,
        commands,
        removal,
    })
}

/// Quotes a word for a unit file: systemd.syntax(7), "Quoting", and systemd.unit(5), "Specifiers".
fn systemd_word(word: &str) -> String {
    let mut quoted = String::from('"');
    for character in word.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '%' => quoted.push_str("%%"),
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
