//! The client that the official conformance suite runs, once per scenario.
//!
//! `conformance-client URL`: the environment names the scenario and its context. It names the revision of the server too,
//! but the client detects it. Uses only the public API. With `--through-gateway legacy` or `modern` a gateway is between
//! the client and the suite's server, to which the client connects in that era. `run_suite.py` runs the suite and evaluates
//! the result.

mod auth;
mod calls;
mod client_requests;
mod front;
mod headers;
mod login;
mod skills;

use std::{error::Error, process::ExitCode};

use serde_json::Value;
use turnbuckle_client::{Client, ClientBuilder, TracedMessage, http::HttpTarget};

use crate::front::Front;

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
    let outcome = run_scenario(&task).await;
    task.front.close().await;
    outcome
}

async fn run_scenario(task: &Task) -> Result<(), Box<dyn Error>> {
    match &*task.scenario {
        "initialize" => calls::connect(task).await,
        "tools_call" => calls::add_numbers(task).await,
        "sse-retry" => calls::resume_broken_stream(task).await,
        "request-metadata" => calls::send_client_identity(task).await,
        "json-schema-ref-no-deref" => calls::list_without_fetching(task).await,
        "json-schema-2020-12-preservation" => calls::return_schema(task).await,
        "http-standard-headers" => headers::use_every_feature(task).await,
        "http-custom-headers" => headers::send_param_headers(task).await,
        "http-invalid-tool-headers" => headers::skip_invalid_tools(task).await,
        "elicitation-sep1034-client-defaults" => client_requests::accept_defaults(task).await,
        "sep-2322-client-request-state" => client_requests::complete_round_trips(task).await,
        "sep-2640-client-no-prefetch" => skills::list(task).await,
        "sep-2640-client-verify-digest"
        | "sep-2640-client-verify-size"
        | "sep-2640-client-verify-frontmatter" => skills::reject_changed_skill(task).await,
        scenario if scenario.starts_with("auth/") => auth::run(task).await,
        other => Err(format!("unknown scenario `{other}`").into()),
    }
}

/// The scenario to run.
struct Task {
    url: String,
    scenario: String,
    context: Value,
    front: Front,
}

impl Task {
    fn from_process() -> Result<Self, Box<dyn Error>> {
        let variable = |name| std::env::var(format!("MCP_CONFORMANCE_{name}"));
        let context = variable("CONTEXT").unwrap_or_else(|_| "null".to_owned());
        let arguments: Vec<_> = std::env::args().skip(1).collect();
        let (front, url) = match &*arguments {
            [url] => (Front::default(), url),
            [option, era, url] if option == "--through-gateway" => (Front::gateway(era)?, url),
            _ => {
                return Err(
                    "usage: conformance-client [--through-gateway legacy|modern] URL".into(),
                );
            }
        };
        Ok(Self {
            url: url.clone(),
            front,
            scenario: variable("SCENARIO")?,
            context: serde_json::from_str(&context)?,
        })
    }

    /// Returns the client builder that every scenario starts from; the client detects the server's revision.
    fn client(&self) -> ClientBuilder {
        Client::builder("turnbuckle-conformance", env!("CARGO_PKG_VERSION")).on_traffic(show)
    }

    /// Connects with the default builder.
    async fn connect(&self) -> Result<Client, Box<dyn Error>> {
        self.connect_with(self.client()).await
    }

    async fn connect_with(&self, client: ClientBuilder) -> Result<Client, Box<dyn Error>> {
        self.front.connect(client, HttpTarget::new(&self.url)).await
    }
}

/// Prints a message; the suite stores the output with its result.
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
