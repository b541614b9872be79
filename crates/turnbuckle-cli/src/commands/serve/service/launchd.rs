//! The launchd agent of macOS.

use turnbuckle_text::shell;

use super::{MARKER, Service, ServiceProgram, xml_text};
use crate::environment::Environment;

/// The label of the launchd agent.
const LABEL: &str = "dev.turnbuckle.serve";

pub(super) fn service(environment: &Environment, program: &ServiceProgram) -> Option<Service> {
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
