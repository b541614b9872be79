//! `--install-service` and `--uninstall-service`: a definition for the service manager of the user.
//!
//! A systemd user unit on Linux, a launchd agent on macOS, a scheduled task on Windows. The command only writes or
//! removes the file and prints the commands that start and stop the service; it does not run them. The crate
//! `service-manager` was not used: it runs the commands itself, and pulls in an XML writer and a program search for
//! three templates.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use turnbuckle_text::shell;

use crate::{
    context::CommandContext,
    environment::{Environment, Platform},
    error::{CliError, Result},
    output::sanitize,
};

/// The text by which a file is recognized as written by this command. A comment in XML must not contain `--`.
const MARKER: &str = "Written by `turnbuckle serve` (option install-service)";

/// The options of the service.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Service")]
pub(super) struct ServiceFlags {
    /// Write a service that runs with the other options
    ///
    /// A systemd user unit on Linux, a launchd agent on macOS, a scheduled task on Windows. Prints the file, and the
    /// commands that start and stop the service.
    #[arg(long, conflicts_with = "stdio")]
    install_service: bool,

    /// Remove the service that --install-service wrote
    #[arg(long, conflicts_with_all = ["stdio", "install_service"])]
    uninstall_service: bool,

    /// Print what would be written or removed
    #[arg(long)]
    dry_run: bool,
}

/// What to do with the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceAction {
    /// Write its file.
    Install,
    /// Remove its file.
    Uninstall,
}

impl ServiceFlags {
    /// Returns the requested action, if there is one.
    pub(super) fn action(&self) -> Result<Option<ServiceAction>> {
        match (self.install_service, self.uninstall_service) {
            (true, _) => Ok(Some(ServiceAction::Install)),
            (_, true) => Ok(Some(ServiceAction::Uninstall)),
            _ if self.dry_run => Err(CliError::could_not_run(
                "--dry-run needs --install-service or --uninstall-service",
            )),
            _ => Ok(None),
        }
    }

    /// Runs the action, and prints what it did.
    pub(super) fn run(&self, action: ServiceAction, context: &CommandContext) -> Result {
        let service = Service::new(&context.environment, &ServiceProgram::current()?)?;
        let text = match action {
            ServiceAction::Install => service.install(self.dry_run)?,
            ServiceAction::Uninstall => service.uninstall(self.dry_run)?,
        };
        context.print(&sanitize::block(&text))
    }
}

/// The program of the service, with its arguments.
#[derive(Debug)]
struct ServiceProgram {
    path: PathBuf,
    arguments: Vec<String>,
}

impl ServiceProgram {
    /// Returns this process, without the options that manage the service.
    fn current() -> Result<Self> {
        let words = std::env::args_os().skip(1).map(|word| {
            word.into_string().map_err(|word| {
                let word = word.display();
                CliError::could_not_run(format!(
                    "`{word}` is not Unicode, so a service cannot have it"
                ))
            })
        });
        let words = words.collect::<Result<Vec<_>>>()?;
        let path = std::env::current_exe().map_err(|error| {
            CliError::could_not_run(format!("cannot find this program: {error}"))
        })?;
        let is_kept = |word: &String| {
            !["--install-service", "--uninstall-service", "--dry-run"].contains(&word.as_str())
        };
        Ok(Self {
            path,
            arguments: words.into_iter().filter(is_kept).collect(),
        })
    }

    /// Returns the program and its arguments.
    fn words(&self) -> Vec<String> {
        let path = self.path.display().to_string();
        [path].into_iter().chain(self.arguments.clone()).collect()
    }
}

/// The file of the service, and the commands for it.
#[derive(Debug)]
struct Service {
    file: PathBuf,
    definition: String,
    /// What a command does, and the command.
    commands: Vec<(&'static str, String)>,
    /// The commands before the file is removed.
    removal: Vec<(&'static str, String)>,
}

impl Service {
    fn new(environment: &Environment, program: &ServiceProgram) -> Result<Self> {
        let service = match environment.platform {
            Platform::Linux => systemd(environment, program),
            Platform::MacOs => launchd(environment, program),
            Platform::Windows => scheduled_task(environment, program),
        };
        service
            .ok_or_else(|| CliError::could_not_run("the home directory of the user is not known"))
    }

    fn install(&self, dry_run: bool) -> Result<String> {
        let file = &self.file;
        self.check_file()?;
        if !dry_run {
            let folder = file.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(file, &self.definition))
                .map_err(|error| self.error("write", &error))?;
        }
        let verb = if dry_run { "Would write" } else { "Wrote" };
        let mut text = format!("{verb} {}:\n\n", file.display());
        for line in self.definition.lines() {
            let indented = format!("  {line}");
            let _ = writeln!(text, "{}", indented.trim_end());
        }
        text.push('\n');
        write_commands(&mut text, &self.commands);
        Ok(text)
    }

    fn uninstall(&self, dry_run: bool) -> Result<String> {
        if !self.check_file()? {
            let file = self.file.display();
            return Err(CliError::negative_result(format!("{file} does not exist")));
        }
        if !dry_run {
            fs::remove_file(&self.file).map_err(|error| self.error("remove", &error))?;
        }
        let verb = if dry_run { "Would remove" } else { "Removed" };
        let mut text = format!("{verb} {}.\n\n", self.file.display());
        write_commands(&mut text, &self.removal);
        Ok(text)
    }

    /// Returns whether the file exists, or an error if another program wrote it.
    fn check_file(&self) -> Result<bool> {
        match fs::read(&self.file) {
            Ok(bytes) if contains(&bytes, MARKER) => Ok(true),
            Ok(_) => {
                let file = self.file.display();
                let message = format!("{file} exists, and `turnbuckle` did not write it");
                Err(CliError::could_not_run(message)
                    .hint("move it away, then run this command again"))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.error("read", &error)),
        }
    }

    fn error(&self, verb: &str, error: &io::Error) -> CliError {
        CliError::could_not_run(format!("cannot {verb} {}: {error}", self.file.display()))
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

fn write_commands(text: &mut String, commands: &[(&str, String)]) {
    let width = commands.iter().map(|(label, _)| label.len()).max();
    let width = width.unwrap_or_default();
    for (label, command) in commands {
        let _ = writeln!(text, "{label:<width$}  {command}");
    }
}

/// The name of the systemd unit.
const UNIT: &str = "turnbuckle.service";

/// Variables that decide where data and settings are, which a service manager may not have.
const VARIABLES: [&str; 2] = ["XDG_CONFIG_HOME", "XDG_DATA_HOME"];

fn systemd(environment: &Environment, program: &ServiceProgram) -> Option<Service> {
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

/// The label of the launchd agent.
const LABEL: &str = "dev.turnbuckle.serve";

fn launchd(environment: &Environment, program: &ServiceProgram) -> Option<Service> {
    let file = environment
        .below_home("Library/LaunchAgents")?
        .join(format!("{LABEL}.plist"));
    let log = environment.below_home("Library/Logs/turnbuckle.log")?;
    let log = log.display().to_string();
    let words: String = program
        .words()
        .iter()
        .map(|word| format!("    <string>{}</string>\n", xml_text(word)))
        .collect();
    let definition = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <!-- {MARKER} -->\n\
         <plist version=\"1.0\">\n\
         <dict>\n\
         \u{20} <key>Label</key><string>{LABEL}</string>\n\
         \u{20} <key>ProgramArguments</key>\n\
         \u{20} <array>\n\
         {words}\
         \u{20} </array>\n\
         \u{20} <key>WorkingDirectory</key><string>{}</string>\n\
         \u{20} <key>RunAtLoad</key><true/>\n\
         \u{20} <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n\
         \u{20} <key>StandardErrorPath</key><string>{}</string>\n\
         </dict>\n\
         </plist>\n",
        xml_text(&environment.cwd.display().to_string()),
        xml_text(&log),
    );
    let path = file.display().to_string();
    let stop = format!("launchctl bootout gui/$(id -u)/{LABEL}");
    let commands = vec![
        (
            "Start",
            format!("launchctl bootstrap gui/$(id -u) {}", shell::quote(&path)),
        ),
        (
            "Restart",
            format!("launchctl kickstart -k gui/$(id -u)/{LABEL}"),
        ),
        ("Stop", stop.clone()),
        ("State", format!("launchctl print gui/$(id -u)/{LABEL}")),
        ("Log", format!("tail -f {}", shell::quote(&log))),
    ];
    Some(Service {
        file,
        definition,
        commands,
        removal: vec![("Stop", stop)],
    })
}

/// The name of the scheduled task.
const TASK: &str = "Turnbuckle";

fn scheduled_task(environment: &Environment, program: &ServiceProgram) -> Option<Service> {
    let file = environment
        .config_dir()?
        .join("turnbuckle")
        .join("serve-task.xml");
    let arguments: Vec<_> = program
        .arguments
        .iter()
        .map(|word| windows_word(word))
        .collect();
    let definition = format!(
        "<?xml version=\"1.0\"?>\n\
         <!-- {MARKER} -->\n\
         <Task version=\"1.2\" xmlns=\"http://schemas.microsoft.com/windows/2004/02/mit/task\">\n\
         \u{20} <Triggers><LogonTrigger><Enabled>true</Enabled></LogonTrigger></Triggers>\n\
         \u{20} <Settings>\n\
         \u{20}   <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>\n\
         \u{20}   <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>\n\
         \u{20}   <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>\n\
         \u{20}   <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>\n\
         \u{20}   <RestartOnFailure><Interval>PT1M</Interval><Count>10</Count></RestartOnFailure>\n\
         \u{20} </Settings>\n\
         \u{20} <Actions>\n\
         \u{20}   <Exec>\n\
         \u{20}     <Command>{}</Command>\n\
         \u{20}     <Arguments>{}</Arguments>\n\
         \u{20}     <WorkingDirectory>{}</WorkingDirectory>\n\
         \u{20}   </Exec>\n\
         \u{20} </Actions>\n\
         </Task>\n",
        xml_text(&program.path.display().to_string()),
        xml_text(&arguments.join(" ")),
        xml_text(&environment.cwd.display().to_string()),
    );
    let task = |words: &str| format!("schtasks {words} /TN {TASK}");
    let create = format!("schtasks /Create /TN {TASK} /XML \"{}\"", file.display());
    let commands = vec![
        ("Create", create),
        ("Start", task("/Run")),
        ("Stop", task("/End")),
        ("State", task("/Query /V /FO LIST")),
    ];
    let removal = vec![("Stop", task("/End")), ("Delete", task("/Delete /F"))];
    Some(Service {
        file,
        definition,
        commands,
        removal,
    })
}

/// Quotes an argument as the C runtime of Windows parses it.
fn windows_word(word: &str) -> String {
    if !word.is_empty() && !word.contains([' ', '\t', '"', '\n']) {
        return word.to_owned();
    }
    let mut quoted = String::from('"');
    let mut backslashes = 0;
    for character in word.chars() {
        match character {
            '\\' => backslashes += 1,
            '"' => {
                quoted.extend(std::iter::repeat_n('\\', backslashes * 2 + 1));
                backslashes = 0;
            }
            _ => {
                quoted.extend(std::iter::repeat_n('\\', backslashes));
                backslashes = 0;
            }
        }
        if character != '\\' {
            quoted.push(character);
        }
    }
    quoted.extend(std::iter::repeat_n('\\', backslashes * 2));
    quoted.push('"');
    quoted
}

fn xml_text(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::TerminalInfo;

    fn environment(platform: Platform, home: &Path) -> Environment {
        Environment {
            platform,
            home: Some(home.to_owned()),
            cwd: "/home/ada/100% mine".into(),
            vars: [("XDG_DATA_HOME".to_owned(), "/data/ada".to_owned())].into(),
            user: "ada".to_owned(),
            user_id: None,
            terminal: TerminalInfo {
                is_interactive: false,
                stdout_is_terminal: false,
                width: 100,
            },
        }
    }

    fn service(platform: Platform, home: &Path) -> Service {
        let program = ServiceProgram {
            path: "/opt/my tools/turnbuckle".into(),
            arguments: ["serve", "--root", "/home/ada/a & b", "--data", "$d\"%h"]
                .map(str::to_owned)
                .to_vec(),
        };
        Service::new(&environment(platform, home), &program).unwrap()
    }

    #[test]
    fn a_systemd_unit_has_quoted_words_and_the_variables_of_the_directories() {
        let text = service(Platform::Linux, Path::new("/home/ada"))
            .install(true)
            .unwrap();

        insta::assert_snapshot!(text, @r##"
        Would write /home/ada/.config/systemd/user/turnbuckle.service:

          # Written by `turnbuckle serve` (option install-service)
          [Unit]
          Description=Turnbuckle context server

          [Service]
          ExecStart="/opt/my tools/turnbuckle" "serve" "--root" "/home/ada/a & b" "--data" "$$d\"%%h"
          WorkingDirectory=/home/ada/100%% mine
          Environment="XDG_DATA_HOME=/data/ada"
          Restart=on-failure
          RestartSec=2
          NoNewPrivileges=true

          [Install]
          WantedBy=default.target

        Start                systemctl --user daemon-reload && systemctl --user enable --now turnbuckle.service
        Restart              systemctl --user restart turnbuckle.service
        Stop                 systemctl --user disable --now turnbuckle.service
        State                systemctl --user status turnbuckle.service
        Log                  journalctl --user --unit turnbuckle.service
        Run without a login  loginctl enable-linger
        "##);
    }

    #[test]
    fn a_launchd_agent_has_escaped_words() {
        let text = service(Platform::MacOs, Path::new("/Users/ada"))
            .install(true)
            .unwrap();

        insta::assert_snapshot!(text, @r##"
        Would write /Users/ada/Library/LaunchAgents/dev.turnbuckle.serve.plist:

          <?xml version="1.0" encoding="UTF-8"?>
          <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
          <!-- Written by `turnbuckle serve` (option install-service) -->
          <plist version="1.0">
          <dict>
            <key>Label</key><string>dev.turnbuckle.serve</string>
            <key>ProgramArguments</key>
            <array>
              <string>/opt/my tools/turnbuckle</string>
              <string>serve</string>
              <string>--root</string>
              <string>/home/ada/a &amp; b</string>
              <string>--data</string>
              <string>$d"%h</string>
            </array>
            <key>WorkingDirectory</key><string>/home/ada/100% mine</string>
            <key>RunAtLoad</key><true/>
            <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
            <key>StandardErrorPath</key><string>/Users/ada/Library/Logs/turnbuckle.log</string>
          </dict>
          </plist>

        Start    launchctl bootstrap gui/$(id -u) /Users/ada/Library/LaunchAgents/dev.turnbuckle.serve.plist
        Restart  launchctl kickstart -k gui/$(id -u)/dev.turnbuckle.serve
        Stop     launchctl bootout gui/$(id -u)/dev.turnbuckle.serve
        State    launchctl print gui/$(id -u)/dev.turnbuckle.serve
        Log      tail -f /Users/ada/Library/Logs/turnbuckle.log
        "##);
    }

    #[test]
    fn a_scheduled_task_has_escaped_words() {
        let text = service(Platform::Windows, Path::new("/ada"))
            .install(true)
            .unwrap();

        insta::assert_snapshot!(text, @r##"
        Would write /ada/AppData/Roaming/turnbuckle/serve-task.xml:

          <?xml version="1.0"?>
          <!-- Written by `turnbuckle serve` (option install-service) -->
          <Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
            <Triggers><LogonTrigger><Enabled>true</Enabled></LogonTrigger></Triggers>
            <Settings>
              <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
              <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
              <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
              <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
              <RestartOnFailure><Interval>PT1M</Interval><Count>10</Count></RestartOnFailure>
            </Settings>
            <Actions>
              <Exec>
                <Command>/opt/my tools/turnbuckle</Command>
                <Arguments>serve --root "/home/ada/a &amp; b" --data "$d\"%h"</Arguments>
                <WorkingDirectory>/home/ada/100% mine</WorkingDirectory>
              </Exec>
            </Actions>
          </Task>

        Create  schtasks /Create /TN Turnbuckle /XML "/ada/AppData/Roaming/turnbuckle/serve-task.xml"
        Start   schtasks /Run /TN Turnbuckle
        Stop    schtasks /End /TN Turnbuckle
        State   schtasks /Query /V /FO LIST /TN Turnbuckle
        "##);
    }

    #[test]
    fn arguments_are_quoted_as_windows_parses_them() {
        for (word, quoted) in [
            ("serve", "serve"),
            ("", "\"\""),
            ("a b", "\"a b\""),
            (r#"a"b"#, r#""a\"b""#),
            (r"C:\my data\", r#""C:\my data\\""#),
            (r"C:\data\", r"C:\data\"),
            (r#"a \"b"#, r#""a \\\"b""#),
        ] {
            assert_eq!(windows_word(word), quoted);
        }
    }

    #[test]
    fn a_file_of_another_program_is_neither_replaced_nor_removed() {
        let home = tempfile::tempdir().unwrap();
        let service = service(Platform::Linux, home.path());
        fs::create_dir_all(service.file.parent().unwrap()).unwrap();
        fs::write(&service.file, "[Service]\n").unwrap();

        for done in [service.install(false), service.uninstall(false)] {
            let error = crate::output::style::strip(&done.unwrap_err().render());
            assert!(error.contains("`turnbuckle` did not write it"), "{error}");
        }
        assert_eq!(fs::read_to_string(&service.file).unwrap(), "[Service]\n");
    }

    #[test]
    fn a_service_is_written_replaced_and_removed() {
        let home = tempfile::tempdir().unwrap();
        for platform in [Platform::Linux, Platform::MacOs, Platform::Windows] {
            let service = service(platform, home.path());

            assert!(service.uninstall(false).is_err(), "{platform:?}");
            service.install(true).unwrap();
            assert!(!service.file.exists(), "{platform:?}");
            service.install(false).unwrap();
            service.install(false).unwrap();
            assert_eq!(
                fs::read_to_string(&service.file).unwrap(),
                service.definition
            );
            service.uninstall(true).unwrap();
            assert!(service.file.exists(), "{platform:?}");
            service.uninstall(false).unwrap();
            assert!(!service.file.exists(), "{platform:?}");
        }
    }
}
