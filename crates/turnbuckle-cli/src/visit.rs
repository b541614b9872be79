//! A server wants the user to visit a page.
//!
//! The whole address is shown, and its host apart from it; nothing is opened unless the user says so.

use std::io;
use std::process::{Command, Stdio};

use turnbuckle_protocol::types::{ElicitAction, ElicitUrlParams};

use crate::environment::Platform;
use crate::form::{Ended, Talk};
use crate::output::{plain, style};

/// Asks whether to visit a page, and opens it on yes.
pub(crate) fn ask(
    server: &str,
    visit: &ElicitUrlParams,
    talk: &mut Talk<'_>,
    open: impl FnOnce(&str) -> io::Result<()>,
) -> io::Result<ElicitAction> {
    match consent(server, visit, talk, open) {
        Ok(()) => Ok(ElicitAction::Accept),
        Err(Ended::Declined) => Ok(ElicitAction::Decline),
        Err(Ended::Cancelled) => Ok(ElicitAction::Cancel),
        Err(Ended::Io(error)) => Err(error),
    }
}

fn consent(
    server: &str,
    visit: &ElicitUrlParams,
    talk: &mut Talk<'_>,
    open: impl FnOnce(&str) -> io::Result<()>,
) -> Result<(), Ended> {
    let server = style::paint(style::NAME, &plain::line(server));
    talk.say(&format!("\n{server} wants you to visit a page:\n"))?;
    talk.quote(&visit.message)?;
    talk.say(&format!("  URL   {}\n", plain::line(&visit.url)))?;
    let Some(host) = host(&visit.url) else {
        talk.say("This is no address of the web, so it is declined.\n")?;
        return Err(Ended::Declined);
    };
    talk.say(&format!("  host  {}\n", style::paint(style::NAME, host)))?;
    if !host.is_ascii() {
        talk.say("Its host has letters that may look like others.\n")?;
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
    if let Err(error) = open(&visit.url) {
        talk.say(&format!(
            "No browser could be started ({error}): open it yourself.\n"
        ))?;
    }
    Ok(())
}

/// Opens a page in the user's browser. No shell sees the address.
pub(crate) fn open(url: &str) -> io::Result<()> {
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
    command.spawn().map(drop)
}

/// Returns the host of an address of the web, as a browser would find it.
fn host(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let odd = url
        .chars()
        .any(|letter| plain::is_unsafe(letter) || letter.is_whitespace());
    // Browsers read a backslash as a slash.
    let authority = rest.split(['/', '\\', '?', '#']).next()?;
    let place = authority.rsplit('@').next()?;
    let host = match place.find(']') {
        Some(end) => &place[..=end],
        None => place.split(':').next()?,
    };
    (web && !odd && !host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(url: &str, typed: &str) -> (ElicitAction, Option<String>, String) {
        let mut shown = Vec::new();
        let mut opened = None;
        let mut reader = typed.as_bytes();
        let visit = ElicitUrlParams::new("Sign in", url);
        let open = |url: &str| {
            opened = Some(url.to_owned());
            Ok(())
        };
        let talk = &mut Talk::new(&mut reader, &mut shown);
        let action = ask("weather", &visit, talk, open).unwrap();
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
    fn only_the_web_can_be_visited() {
        for url in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://",
            "https://a\u{202e}b/",
            "a.example",
        ] {
            let (action, opened, shown) = answer(url, "y\n");

            assert_eq!(action, ElicitAction::Decline, "{url}");
            assert_eq!(opened, None, "{url}");
            assert!(shown.contains("declined"), "{shown}");
        }
    }

    #[test]
    fn the_host_is_the_one_a_browser_would_ask() {
        assert_eq!(
            host("https://bank.example@evil.example:8080/x"),
            Some("evil.example")
        );
        assert_eq!(
            host("https://evil.example\\@bank.example/"),
            Some("evil.example")
        );
        assert_eq!(host("HTTP://[::1]:80/"), Some("[::1]"));
        assert_eq!(host("https://a.example?@b"), Some("a.example"));
    }
}
