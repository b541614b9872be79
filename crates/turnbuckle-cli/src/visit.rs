//! A server wants the user to visit a page.
//!
//! The whole address is shown, and its host apart from it; nothing is opened unless the user says so.

use std::io;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use turnbuckle_protocol::types::ElicitAction;

use crate::environment::Platform;
use crate::form::{Ended, Talk};
use crate::output::{plain, style};

/// A page that a server wants visited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    /// What the server says about it.
    pub(crate) message: &'a str,
    /// Its whole address.
    pub(crate) url: &'a str,
    /// The host in it.
    pub(crate) host: &'a str,
    /// Whether the host has letters that can pass for others.
    pub(crate) may_look_like_another: bool,
}

/// Asks whether to visit a page, and opens it on yes.
pub(crate) fn ask(
    server: &str,
    page: &Page<'_>,
    talk: &mut Talk<'_>,
    open: impl FnOnce(&str) -> io::Result<()>,
) -> io::Result<ElicitAction> {
    match consent(server, page, talk, open) {
        Ok(()) => Ok(ElicitAction::Accept),
        Err(Ended::Declined) => Ok(ElicitAction::Decline),
        Err(Ended::Cancelled) => Ok(ElicitAction::Cancel),
        Err(Ended::Io(error)) => Err(error),
    }
}

fn consent(
    server: &str,
    page: &Page<'_>,
    talk: &mut Talk<'_>,
    open: impl FnOnce(&str) -> io::Result<()>,
) -> Result<(), Ended> {
    let server = style::paint(style::NAME, &plain::line(server));
    talk.say(&format!("\n{server} wants you to visit a page:\n"))?;
    talk.quote(page.message)?;
    talk.say(&format!("  URL   {}\n", plain::line(page.url)))?;
    let host = style::paint(style::NAME, &plain::line(page.host));
    talk.say(&format!("  host  {host}\n"))?;
    if page.may_look_like_another {
        talk.say("The host has letters that can pass for others.\n")?;
    }
    loop {
        let answer = talk.ask("Visit it? [y]es, I open it [m]yself, [n]o: ")?;
        match answer.to_lowercase().as_str() {
            "m" | "myself" => return Ok(()),
            "n" | "no" => return Err(Ended::Declined),
            "y" | "yes" => break,
            _ => {}
        }
    }
    if let Err(error) = open(page.url) {
        talk.say(&format!(
            "No browser could be started ({error}): open it yourself.\n"
        ))?;
    }
    Ok(())
}

/// Opens a page in the user's browser. No shell sees the address.
pub(crate) fn open(url: &str) -> io::Result<()> {
    // Other schemes start other programs.
    if !is_web(url) {
        return Err(io::Error::other("it is no address of the web"));
    }
    let (program, before): (_, &[&str]) = match Platform::HERE {
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
    // It ends at once if there is no browser, and may stay as long as one that it has started.
    for _ in 0..LOOKS {
        thread::sleep(PAUSE);
        match opener.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => return Err(io::Error::other(format!("`{program}` has found none"))),
            None => {}
        }
    }
    Ok(())
}

/// How often, and in which distance, to look whether a browser could be started.
const LOOKS: u32 = 25;
const PAUSE: Duration = Duration::from_millis(20);

fn is_web(url: &str) -> bool {
    let begins = |scheme: &str| {
        let begin = url.get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    begins("https://") || begins("http://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(url: &str, typed: &str) -> (ElicitAction, Option<String>, String) {
        let mut shown = Vec::new();
        let mut opened = None;
        let mut reader = typed.as_bytes();
        let page = Page {
            message: "Sign in",
            url,
            host: "a.example",
            may_look_like_another: url.contains("xn--"),
        };
        let open = |url: &str| {
            opened = Some(url.to_owned());
            Ok(())
        };
        let talk = &mut Talk::new(&mut reader, &mut shown);
        let action = ask("weather", &page, talk, open).unwrap();
        (
            action,
            opened,
            style::without(&String::from_utf8(shown).unwrap()),
        )
    }

    #[test]
    fn a_page_is_opened_only_on_yes() {
        let (action, opened, shown) = answer("https://a.example/in?x=1", "what\ny\n");

        assert_eq!(action, ElicitAction::Accept);
        assert_eq!(opened.as_deref(), Some("https://a.example/in?x=1"));
        insta::assert_snapshot!(shown, @r"
        weather wants you to visit a page:
        │ Sign in
          URL   https://a.example/in?x=1
          host  a.example
        Visit it? [y]es, I open it [m]yself, [n]o: Visit it? [y]es, I open it [m]yself, [n]o:
        ");
    }

    #[test]
    fn whoever_opens_it_agrees_too_and_others_do_not() {
        let said = |typed| {
            let (action, opened, _) = answer("https://a.example/", typed);
            (action, opened.is_some())
        };

        assert_eq!(said("m\n"), (ElicitAction::Accept, false));
        assert_eq!(said("n\n"), (ElicitAction::Decline, false));
        assert_eq!(said(""), (ElicitAction::Cancel, false));
    }

    #[test]
    fn only_the_web_can_be_opened() {
        for url in ["file:///etc/passwd", "javascript:alert(1)", "-a", "é"] {
            assert!(open(url).is_err(), "{url}");
        }
        assert!(is_web("HTTPS://a.example"));
    }

    #[test]
    fn a_host_that_may_be_another_is_pointed_out() {
        let (_, _, shown) = answer("https://xn--mnchen-3ya.example/", "n\n");

        assert!(shown.contains("can pass for others"), "{shown}");
    }
}
