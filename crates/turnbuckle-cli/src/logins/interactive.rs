//! The user who logs in: in a browser on this or another machine, or with a code on another device.
//!
//! A login URL is checked and shown with its host before a browser opens it.

use std::io;

use tokio::io::AsyncBufReadExt as _;
use turnbuckle_auth::{
    AuthorizationError,
    client::{LoopbackUserAgent, UserAgent, device::DeviceCode},
};
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_text::url::HttpUrl;

use crate::{
    commands::LoginOptions,
    context::CommandContext,
    elicitation::url,
    environment::{Environment, Platform},
    output::{sanitize, style},
    ui::Ui,
};

/// Lets the user at the terminal log in.
pub(super) struct InteractiveUser {
    loopback: LoopbackUserAgent,
    ui: Ui,
    /// True if the user can paste the redirect URL of a browser on another machine.
    can_paste: bool,
}

impl InteractiveUser {
    /// Creates the interaction for a login command.
    pub(super) fn new(options: &LoginOptions, context: &CommandContext) -> Self {
        let can_paste = context.environment.terminal.is_interactive;
        let opens = !options.no_browser && Self::has_browser(&context.environment);
        let (login_ui, device_ui) = (context.ui.clone(), context.ui.clone());
        let open = move |url: &str| {
            let page = LoginUrl::parse(url).ok_or_else(unsafe_url)?;
            login_ui.print(&login_message(&page));
            match opens.then(|| url::open_browser(url)) {
                Some(Ok(())) => login_ui.print("Opened in your browser; press Ctrl-C to cancel.\n"),
                Some(Err(error)) => {
                    login_ui.print(&format!("Could not start a browser: {error}.\n"));
                    login_ui.print(manual_instructions(can_paste));
                }
                None => login_ui.print(manual_instructions(can_paste)),
            }
            Ok(())
        };
        let mut loopback = LoopbackUserAgent::new(open)
            .on_device_code(move |code| device_ui.print(&device_message(code)));
        if let Some(uri) = &options.redirect_uri {
            loopback = loopback.with_redirect_uri(uri);
        }
        if let Some(timeout) = context.options.timeout {
            loopback = loopback.timeout(timeout);
        }
        Self {
            loopback,
            ui: context.ui.clone(),
            can_paste,
        }
    }

    /// Returns whether a browser can be expected to open. On Linux that needs a display.
    pub(super) fn has_browser(environment: &Environment) -> bool {
        let screens = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"];
        match environment.platform {
            Platform::Linux => screens.iter().any(|name| environment.var(name).is_some()),
            Platform::MacOs | Platform::Windows => true,
        }
    }

    async fn log_in(&self, url: &str) -> Result<String, AuthorizationError> {
        let response = self.loopback.open_url(url);
        if !self.can_paste {
            return response.await;
        }
        tokio::select! {
            response = response => response,
            pasted = self.read_pasted_url() => Ok(pasted),
        }
    }

    /// Waits for a redirect URL that the user pastes. The login validates it.
    async fn read_pasted_url(&self) -> String {
        let mut lines = tokio::io::BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            match line.trim() {
                "" => {}
                line if line.contains("state=") => return line.to_owned(),
                _ => self
                    .ui
                    .print("This is not the redirect URL of the login.\n"),
            }
        }
        std::future::pending().await
    }
}

impl UserAgent for InteractiveUser {
    fn redirect_uri<'a>(
        &'a self,
        preferred: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        self.loopback.redirect_uri(preferred)
    }

    fn open_url<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        Box::pin(self.log_in(url))
    }

    fn show_device_code<'a>(
        &'a self,
        code: &'a DeviceCode,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        self.loopback.show_device_code(code)
    }
}

fn unsafe_url() -> io::Error {
    io::Error::other("the login URL is neither `https` nor on this machine")
}

/// Returns the full URL and its host, so that the user can see where the password would go.
fn login_message(page: &LoginUrl<'_>) -> String {
    let host = style::styled(style::NAME, &sanitize::line(page.host));
    let warning = if page.has_punycode {
        "Warning: the host has characters that can look like others.\n"
    } else {
        ""
    };
    format!(
        "Log in at {host}:\n\n  {}\n\n{warning}",
        sanitize::line(page.url)
    )
}

fn manual_instructions(can_paste: bool) -> &'static str {
    if can_paste {
        "Open it in a browser on this machine; press Ctrl-C to cancel.\n\
             With a browser on another machine, the last page cannot be loaded: paste its URL here.\n"
    } else {
        "Open it in a browser on this machine; press Ctrl-C to cancel.\n"
    }
}

fn device_message(code: &DeviceCode) -> String {
    let page = sanitize::line(&code.verification_uri);
    let typed = style::styled(style::NAME, &sanitize::line(&code.user_code));
    let minutes = code.expires_in.as_secs().div_ceil(60);
    let direct = match &code.verification_uri_complete {
        Some(url) => format!("or directly: {}\n\n", sanitize::line(url)),
        None => String::new(),
    };
    format!(
        "Log in on any device, within {minutes} min:\n\n  page  {page}\n  code  {typed}\n\n{direct}\
         Waiting; press Ctrl-C to cancel.\n"
    )
}

/// A login URL that may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoginUrl<'a> {
    /// The full URL.
    pub(super) url: &'a str,
    /// The host with its port.
    pub(super) host: &'a str,
    /// True if the host has characters that can look like others.
    pub(super) has_punycode: bool,
}

impl<'a> LoginUrl<'a> {
    /// Accepts `https` URLs, and `http` on loopback.
    pub(super) fn parse(url: &'a str) -> Option<Self> {
        let parsed = HttpUrl::parse(url)
            .ok()
            .filter(HttpUrl::is_https_or_loopback)?;
        let (_, host) = parsed.origin.split_once("://")?;
        Some(Self {
            url,
            host,
            has_punycode: parsed.authority.host.is_internationalized(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_and_loopback_urls_are_accepted() {
        for (url, host) in [
            ("https://auth.example/authorize?a=b", "auth.example"),
            ("HTTPS://auth.example:8443", "auth.example:8443"),
            ("http://127.0.0.1:8080/authorize", "127.0.0.1:8080"),
            ("http://[::1]:8080/", "[::1]:8080"),
            ("http://localhost/", "localhost"),
        ] {
            let expected = LoginUrl {
                url,
                host,
                has_punycode: false,
            };
            assert_eq!(LoginUrl::parse(url), Some(expected));
        }
    }

    #[test]
    fn all_other_urls_are_rejected() {
        for url in [
            "http://auth.example/authorize",
            "http://127.0.0.1.auth.example/",
            "http://localhost.example/",
            "file:///etc/passwd",
            "javascript:alert(1)//x",
            "javascript://%0aalert(1)",
            "https://",
            "https:///path",
            "https://auth.example@evil.example/",
            "https://auth.example\\@evil.example/",
            "https://auth.example/\u{1b}[2J",
            "https://auth.example/a b",
            "https://аuth.example/",
            "-a",
            "",
        ] {
            assert_eq!(LoginUrl::parse(url), None, "{url}");
        }
    }

    #[test]
    fn punycode_hosts_are_detected() {
        let has_punycode = |url| LoginUrl::parse(url).unwrap().has_punycode;

        assert!(has_punycode("https://auth.XN--mnchen-3ya.example/"));
        assert!(!has_punycode("https://auth.example/xn--"));
    }
}
