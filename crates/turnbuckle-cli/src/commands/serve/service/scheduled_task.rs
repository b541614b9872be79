//! The scheduled task of Windows.

use super::{MARKER, Service, ServiceProgram, xml_text};
use crate::environment::Environment;

/// The name of the scheduled task.
const TASK: &str = "Turnbuckle";

pub(super) fn service(environment: &Environment, program: &ServiceProgram) -> Option<Service> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
