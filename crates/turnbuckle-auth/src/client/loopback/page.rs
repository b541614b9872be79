//! The page that the browser shows when a login is over.
//!
//! It holds nothing that came with the request: whoever sent it is not known yet.

/// What is answered to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// The answer to the login, and it brings a code.
    Done,
    /// The answer to the login, and it says no.
    Refused,
    /// Not the answer to this login.
    Stranger,
    /// Something else than the answer to a login.
    NotFound,
    /// Another method than `GET`.
    Method,
    /// Not HTTP, as far as it is read here.
    Malformed,
    /// More than is read.
    TooLarge,
}

impl Page {
    /// Returns the whole answer, as it is sent.
    pub(super) fn response(self) -> String {
        let (status, title, text) = self.parts();
        let body = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n<main>\n<h1>{title}</h1>\n<p>{text}</p>\n</main>\n</html>\n"
        );
        format!(
            "HTTP/1.1 {status}\r\n\
             Content-Type: text/html; charset=utf-8\r\n\
             Content-Length: {length}\r\n\
             Cache-Control: no-store\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
             Referrer-Policy: no-referrer\r\n\
             X-Content-Type-Options: nosniff\r\n\
             Connection: close\r\n\r\n{body}",
            length = body.len(),
        )
    }

    fn parts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Page::Done => (
                "200 OK",
                "Login received",
                "You can close this window and go back to the program.",
            ),
            Page::Refused => (
                "200 OK",
                "Login not completed",
                "Nothing was granted. You can close this window; the program says more.",
            ),
            Page::Stranger => (
                "400 Bad Request",
                "Not this login",
                "This answer belongs to another login. The program still waits for its own.",
            ),
            Page::NotFound => (
                "404 Not Found",
                "Nothing here",
                "Only the answer to a login is heard here.",
            ),
            Page::Method => (
                "405 Method Not Allowed\r\nAllow: GET",
                "Nothing here",
                "Only the answer to a login is heard here.",
            ),
            Page::Malformed => (
                "400 Bad Request",
                "Not understood",
                "This is no request that a browser sends.",
            ),
            Page::TooLarge => (
                "431 Request Header Fields Too Large",
                "Too much",
                "This request is longer than the answer to a login can be.",
            ),
        }
    }
}

const STYLE: &str = "\
:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}\
body{margin:0;min-height:100vh;display:grid;place-items:center}\
main{max-width:32rem;padding:2rem}\
h1{font-size:1.5rem;font-weight:600;margin:0 0 .5rem}\
p{margin:0;opacity:.8}";
