//! The user, who logs in: in a browser here, in one elsewhere, or by a code on another device.

use std::io;

use tokio::io::AsyncBufReadExt as _;
use turnbuckle_auth::Failure;
use turnbuckle_auth::client::device::DeviceCode;
use turnbuckle_auth::client::{Interact, Loopback};
use turnbuckle_protocol::guard::BoxFuture;

use super::page::Page;
use crate::commands::Wish;
use crate::context::Context;
use crate::environment::{Environment, Platform};
use crate::output::{plain, style};
use crate::visit;
use crate::voice::Voice;

/// The user at the terminal.
pub(super) struct Person {
    loopback: Loopback,
    voice: Voice,
    /// Whether the user can paste the address that a browser on another machine ended at.
    can_paste: bool,
}

impl Person {
    /// Speaks with the user.
    pub(super) fn new(wish: &Wish, context: &Context) -> Self {
        let can_paste = context.environment.terminal.asks;
        let opens = !wish.no_browser && Self::has_browser(&context.environment);
        let (pages, codes) = (context.voice.clone(), context.voice.clone());
        let open = move |url: &str| {
            let page = Page::look_at(url).ok_or_else(no_page)?;
            pages.say(&at(&page));
            match opens.then(|| visit::open(url)) {
                Some(Ok(())) => pages.say("It is opened in your browser; Ctrl-C gives up.\n"),
                Some(Err(error)) => {
                    pages.say(&format!("No browser could be started: {error}.\n"));
                    pages.say(by_hand(can_paste));
                }
                None => pages.say(by_hand(can_paste)),
            }
            Ok(())
        };
        let mut loopback = Loopback::new(open).show_codes(move |code| codes.say(&told(code)));
        if let Some(uri) = &wish.redirect_uri {
            loopback = loopback.at(uri);
        }
        if let Some(patience) = context.options.timeout {
            loopback = loopback.patience(patience);
        }
        Self {
            loopback,
            voice: context.voice.clone(),
            can_paste,
        }
    }

    /// Says whether a browser can be expected to open: on Linux, only where there is a screen.
    pub(super) fn has_browser(environment: &Environment) -> bool {
        let screens = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"];
        match environment.platform {
            Platform::Linux => screens.iter().any(|name| environment.var(name).is_some()),
            Platform::MacOs | Platform::Windows => true,
        }
    }

    async fn log_in(&self, url: &str) -> Result<String, Failure> {
        let answer = self.loopback.visit(url);
        if !self.can_paste {
            return answer.await;
        }
        tokio::select! {
            answer = answer => answer,
            pasted = self.pasted() => Ok(pasted),
        }
    }

    /// Waits for an address that the user pastes; whatever it is, it is looked at by whoever began the login.
    async fn pasted(&self) -> String {
        let mut lines = tokio::io::BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            match line.trim() {
                "" => {}
                line if line.contains("state=") => return line.to_owned(),
                _ => self
                    .voice
                    .say("This is not the address that the login ended at.\n"),
            }
        }
        std::future::pending().await
    }
}

impl Interact for Person {
    fn redirect_uri<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        self.loopback.redirect_uri(wanted)
    }

    fn visit<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(self.log_in(url))
    }

    fn device<'a>(&'a self, code: &'a DeviceCode) -> BoxFuture<'a, Result<(), Failure>> {
        self.loopback.device(code)
    }
}

fn no_page() -> io::Error {
    io::Error::other("the page to log in at is neither `https` nor on this machine")
}

/// Shows the whole address, and its host apart from it: whose page it is decides whether to type a password there.
fn at(page: &Page<'_>) -> String {
    let host = style::paint(style::NAME, &plain::line(page.host));
    let odd = match page.may_look_like_another() {
        true => "The host has letters that can pass for others.\n",
        false => "",
    };
    format!("Log in at {host}:\n\n  {}\n\n{odd}", plain::line(page.url))
}

fn by_hand(can_paste: bool) -> &'static str {
    match can_paste {
        true => {
            "Open it in a browser on this machine; Ctrl-C gives up.\n\
             In a browser elsewhere, the login ends at a page that cannot be shown: paste its address here.\n"
        }
        false => "Open it in a browser on this machine; Ctrl-C gives up.\n",
    }
}

fn told(code: &DeviceCode) -> String {
    let place = plain::line(&code.verification_uri);
    let typed = style::paint(style::NAME, &plain::line(&code.user_code));
    let minutes = code.expires_in.as_secs().div_ceil(60);
    let direct = match &code.verification_uri_complete {
        Some(url) => format!("or at once by {}\n\n", plain::line(url)),
        None => String::new(),
    };
    format!(
        "Log in on any device, within {minutes} min:\n\n  page  {place}\n  code  {typed}\n\n{direct}\
         Waiting for that; Ctrl-C gives up.\n"
    )
}
