//! The client that the official conformance suite runs, once per scenario.
//!
//! `conformance-client URL`: the suite names the scenario and what else there is to know in the environment. It names the
//! revision of its server too, but that we find out. Uses nothing but the public API. `judge.py` runs the suite and says
//! how it went.

mod auth;
mod calls;
mod headers;
mod login;
mod questions;
mod skills;

use std::{error::Error, process::ExitCode};

use serde_json::Value;
use turnbuckle_client::{Client, ClientBuilder, TracedMessage, http::HttpTarget};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&*error);
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let task = Task::from_process()?;
    match &*task.scenario {
        "initialize" => calls::connect(&task).await,
        "tools_call" => calls::add_numbers(&task).await,
        "sse-retry" => calls::wait_for_a_stream_that_breaks(&task).await,
        "request-metadata" => calls::say_who_asks(&task).await,
        "json-schema-ref-no-deref" => calls::list_without_looking_things_up(&task).await,
        "json-schema-2020-12-preservation" => calls::hand_back_a_schema(&task).await,
        "http-standard-headers" => headers::ask_for_everything(&task).await,
        "http-custom-headers" => headers::mirror_arguments(&task).await,
        "http-invalid-tool-headers" => headers::leave_bad_tools_alone(&task).await,
        "elicitation-sep1034-client-defaults" => questions::accept_defaults(&task).await,
        "sep-2322-client-request-state" => questions::go_several_rounds(&task).await,
        "sep-2640-client-no-prefetch" => skills::list(&task).await,
        "sep-2640-client-verify-digest"
        | "sep-2640-client-verify-size"
        | "sep-2640-client-verify-frontmatter" => skills::refuse_a_changed_one(&task).await,
        scenario if scenario.starts_with("auth/") => auth::run(&task).await,
        other => Err(format!("there is no scenario `{other}` here").into()),
    }
}

/// What the suite wants done.
struct Task {
    url: String,
    scenario: String,
    context: Value,
}

impl Task {
    fn from_process() -> Result<Self, Box<dyn Error>> {
        let variable = |name| std::env::var(format!("MCP_CONFORMANCE_{name}"));
        let context = variable("CONTEXT").unwrap_or_else(|_| "null".to_owned());
        Ok(Self {
            url: std::env::args()
                .nth(1)
                .ok_or("usage: conformance-client URL")?,
            scenario: variable("SCENARIO")?,
            context: serde_json::from_str(&context)?,
        })
    }

    /// Describes the client that every scenario starts from; it finds out what the server speaks.
    fn client(&self) -> ClientBuilder {
        Client::builder("turnbuckle-conformance", env!("CARGO_PKG_VERSION")).on_traffic(show)
    }

    /// Connects with nothing special.
    async fn connect(&self) -> Result<Client, Box<dyn Error>> {
        self.connect_as(self.client()).await
    }

    async fn connect_as(&self, client: ClientBuilder) -> Result<Client, Box<dyn Error>> {
        Ok(client.connect(HttpTarget::new(&self.url)).await?)
    }
}

/// The suite keeps what is printed beside its verdict.
#[expect(clippy::print_stderr, reason = "a program may")]
fn show(traffic: TracedMessage<'_>) {
    eprintln!("{:?}: {}", traffic.direction, traffic.message);
}

#[expect(clippy::print_stderr, reason = "a program may")]
fn report(error: &dyn Error) {
    let mut next = Some(error);
    while let Some(error) = next {
        eprintln!("{error}");
        next = error.source();
    }
}
