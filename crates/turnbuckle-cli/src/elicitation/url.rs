//! URL elicitation at the terminal.
//!
//! The prompt shows the full URL and its host. Nothing is opened without the user's consent.

use std::{
    io,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use turnbuckle_protocol::types::ElicitAction;
use turnbuckle_text::url::HttpScheme;

use crate::{
    elicitation::form_prompt::{PromptError, Prompter},
    environment::Platform,
    output::{sanitize, style},
};

/// A URL that a server asks the user to open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElicitedUrl<'a> {
    /// The message of the server.
    pub(crate) message: &'a str,
    /// The full URL.
    pub(crate) url: &'a str,
    /// The host of the URL.
    pub(crate) host: &'a str,
    /// True if the host has characters that can look like others.
    pub(crate) has_punycode: bool,
}

/// Asks whether to open a URL, and opens it on yes.
pub(crate) fn confirm_and_open(
    server: &str,
    url: &ElicitedUrl<'_>,
    prompter: &mut Prompter<'_>,
    open: impl FnOnce(&str) -> io::Result<()>,
) -> io::Result<ElicitAction> {
    match prompt_consent(server, url, prompter, open) {
        Ok(()) => Ok(ElicitAction::Accept),
        Err(PromptError::Declined) => Ok(ElicitAction::Decline),
        Err(PromptError::Cancelled) => Ok(ElicitAction::Cancel),
        Err(PromptError::Io(error)) => Err(error),
    }
}

fn prompt_consent(
    server: &str,
    url: &ElicitedUrl<'_>,
    prompter: &mut Prompter<'_>,
    open: impl FnOnce(&str) -> io::Result<()>,
) -> Result<(), PromptError> {
    let server = style::styled(style::NAME, &sanitize::line(server));
    prompter.print(&format!("\n{server} asks you to open a URL:\n"))?;
    prompter.quote(url.message)?;
    prompter.print(&format!("  URL   {}\n", sanitize::line(url.url)))?;
    let host = style::styled(style::NAME, &sanitize::line(url.host));
    prompter.print(&format!("  host  {host}\n"))?;
    if url.has_punycode {
        prompter.print("Warning: the host has characters that can look like others.\n")?;
    }
    loop {
        let answer = prompter.read_answer("Open it? [y]es, I open it [m]yself, [n]o: ")?;
        match answer.to_lowercase().as_str() {
            "m" | "myself" => return Ok(()),
            "n" | "no" => return Err(PromptError::Declined),
            "y" | "yes" => break,
            _ => {}
        }
    }
    if let Err(error) = open(url.url) {
        prompter.print(&format!(
            "Could not start a browser ({error}). Open the URL yourself.\n"
        ))?;
    }
    Ok(())
}

/// Opens a URL in the user's browser, without a shell.
pub(crate) fn open_browser(url: &str) -> io::Result<()> {
    // Other schemes could start other programs.
    if HttpScheme::split(url).is_err() {
        return Err(io::Error::other("not an HTTP URL"));
    }
    let (program, before): (_, &[&str]) = match Platform::CURRENT {
        Platform::Linux => ("xdg-open", &[]),
        Platform::MacOs => ("open", &[]),
        Platform::Windows => ("rundll32", &["url.dll,FileProtocolHandler"]),
    };
    let mut command = Command::new(program);
    command.args(before).arg(url);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut opener = command.spawn()?;
    // Without a browser the opener fails immediately. Otherwise it may run as long as the browser.
    for _ in 0..OPENER_POLLS {
        thread::sleep(OPENER_POLL_INTERVAL);
        match opener.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => return Err(io::Error::other(format!("`{program}` failed"))),
            None => {}
        }
    }
    Ok(())
}

/// The number and interval of checks whether the opener failed.
const OPENER_POLLS: u32 = 25;
const OPENER_POLL_INTERVAL: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(url: &str, typed: &str) -> (ElicitAction, Option<String>, String) {
        let mut shown = Vec::new();
        let mut opened = None;
        let mut reader = typed.as_bytes();
        let url = ElicitedUrl {
            message: "Sign in",
            url,
            host: "a.example",
            has_punycode: url.contains("xn--"),
        };
        let open = |url: &str| {
            opened = Some(url.to_owned());
            Ok(())
        };
        let prompter = &mut Prompter::new(&mut reader, &mut shown);
        let action = confirm_and_open("weather", &url, prompter, open).unwrap();
        (
            action,
            opened,
            style::strip(&String::from_utf8(shown).unwrap()),
        )
    }

    #[test]
    fn a_page_is_opened_only_on_yes() {
        let (action, opened, shown) = prompt("https://a.example/in?x=1", "perhaps\ny\n");

        assert_eq!(action, ElicitAction::Accept);
        assert_eq!(opened.as_deref(), Some("https://a.example/in?x=1"));
        insta::assert_snapshot!(shown, @r"
        weather asks you to open a URL:
        │ Sign in
          URL   https://a.example/in?x=1
          host  a.example
        Open it? [y]es, I open it [m]yself, [n]o: Open it? [y]es, I open it [m]yself, [n]o:
        ");
    }

    #[test]
    fn opening_it_yourself_is_accepted_and_no_is_declined() {
        let outcome = |typed| {
            let (action, opened, _) = prompt("https://a.example/", typed);
            (action, opened.is_some())
        };

        assert_eq!(outcome("m\n"), (ElicitAction::Accept, false));
        assert_eq!(outcome("n\n"), (ElicitAction::Decline, false));
        assert_eq!(outcome(""), (ElicitAction::Cancel, false));
    }

    #[test]
    fn only_http_urls_are_opened() {
        for url in ["file:///etc/passwd", "javascript:alert(1)", "-a", "é"] {
            assert!(open_browser(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_punycode_host_is_pointed_out() {
        let (_, _, shown) = prompt("https://xn--mnchen-3ya.example/", "n\n");

        assert!(shown.contains("can look like others"), "{shown}");
    }
}
