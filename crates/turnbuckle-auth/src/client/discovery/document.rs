//! One document at one place: there, not there, or no answer that says which.

use crate::{
    Failure, Step,
    client::told::{self, Told},
    fetch::{Fetch, Request, Response},
};

/// Whoever asks, and what goes along with every question.
pub(super) struct Asking<'a> {
    pub(super) fetch: &'a dyn Fetch,
    pub(super) revision: &'a str,
}

/// A document as it was answered.
pub(super) struct Document {
    url: String,
    pub(super) body: Vec<u8>,
}

impl Asking<'_> {
    /// Asks at a place where the document must be.
    pub(super) async fn document(&self, url: &str, step: Step) -> Result<Document, Failure> {
        let response = self.ask(url, step).await?;
        match response.is_success() {
            true => Ok(Document::new(url, response)),
            false => Err(missing(url, step, &response)),
        }
    }

    /// Asks at a place where the document may be; `None` if it is not there.
    ///
    /// Only a refusal says that there is none. A server in trouble might have it there at another time, and to take another
    /// document instead would let whoever can bring trouble upon it choose which.
    pub(super) async fn probe(&self, url: &str, step: Step) -> Result<Option<Document>, Failure> {
        let response = self.ask(url, step).await?;
        match response.status {
            200..300 if is_page(&response) => Ok(None),
            200..300 => Ok(Some(Document::new(url, response))),
            400..500 => Ok(None),
            _ => Err(missing(url, step, &response)),
        }
    }

    async fn ask(&self, url: &str, step: Step) -> Result<Response, Failure> {
        let request = Request::get(url).header("mcp-protocol-version", self.revision);
        told::fetched(self.fetch, request, step).await
    }
}

impl Document {
    fn new(url: &str, response: Response) -> Document {
        Document {
            url: url.to_owned(),
            body: response.body,
        }
    }

    /// Says why it must not be used.
    pub(super) fn refuse(&self, step: Step, reason: impl Into<String>) -> Failure {
        self.blame(Failure::new(step, reason))
            .cure("nothing of it is used; whoever runs the server must correct it")
    }

    /// Says that it was this document.
    pub(super) fn blame(&self, failure: Failure) -> Failure {
        failure.request(Request::get(&self.url))
    }
}

/// Whether it is a page for people: some sites answer so to whatever they do not know.
fn is_page(response: &Response) -> bool {
    let kind = response.header("content-type").unwrap_or_default();
    kind.to_ascii_lowercase().starts_with("text/html")
}

fn missing(url: &str, step: Step, response: &Response) -> Failure {
    let (reason, cure) = match response.status {
        500.. => (
            "there is trouble where the metadata may be",
            "try again later",
        ),
        _ => (
            "the metadata is not where the server says that it is",
            "whoever runs the server must correct the `resource_metadata` that it announces",
        ),
    };
    Told::new(response, &[])
        .fill(Failure::new(step, reason))
        .request(Request::get(url))
        .cure(cure)
}
