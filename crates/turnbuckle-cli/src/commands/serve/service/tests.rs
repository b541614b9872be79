//! Tests of the files for the service managers.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

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

/// Runs a Python script with the definition of a service on standard input; returns its output.
fn parse_with_python(script: &str, service: &Service) -> String {
    let mut python = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is installed");
    let mut stdin = python.stdin.take().unwrap();
    stdin.write_all(service.definition.as_bytes()).unwrap();
    drop(stdin);
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_launchd_agent_is_a_property_list_with_the_words_of_the_command() {
    let service = service(Platform::MacOs, Path::new("/Users/ada"));

    let parsed = parse_with_python(
        "import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))",
        &service,
    );

    let parsed: Value = serde_json::from_str(&parsed).unwrap();
    assert_eq!(
        parsed,
        json!({
            "Label": "dev.turnbuckle.serve",
            "ProgramArguments": [
                "/opt/my tools/turnbuckle", "serve", "--root", "/home/ada/a & b", "--data", "$d\"%h",
            ],
            "WorkingDirectory": "/home/ada/100% mine",
            "RunAtLoad": true,
            "KeepAlive": { "SuccessfulExit": false },
            "StandardErrorPath": "/Users/ada/Library/Logs/turnbuckle.log",
        })
    );
}

#[test]
fn a_scheduled_task_is_an_xml_document_with_the_words_of_the_command() {
    let service = service(Platform::Windows, Path::new("/ada"));
    let script = r#"
import json, sys, xml.etree.ElementTree as tree
space = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"
task = tree.parse(sys.stdin.buffer).getroot()
command = task.find(f"{space}Actions/{space}Exec")
print(json.dumps([task.tag.removeprefix(space), task.get("version"), *[part.tag.removeprefix(space) for part in task],
    *[part.text for part in command]]))
"#;

    let parsed = parse_with_python(script, &service);

    let parsed: Value = serde_json::from_str(&parsed).unwrap();
    assert_eq!(
        parsed,
        json!([
            "Task",
            "1.2",
            "Triggers",
            "Settings",
            "Actions",
            "/opt/my tools/turnbuckle",
            r#"serve --root "/home/ada/a & b" --data "$d\"%h""#,
            "/home/ada/100% mine",
        ])
    );
}
