//! Connects to a server.

use std::{error::Error, future::ready};

use turnbuckle_client::{
    Client, ClientBuilder, FormRequest, LifecycleMode, Roots, SamplingRequest,
    UrlElicitationRequest,
    http::HttpTarget,
    stdio::{ServerCommand, StderrMode},
};
use turnbuckle_protocol::types::LogLevel;

use crate::handlers::ClientHandlers;

/// Connects a client with every capability.
pub(crate) async fn connect(
    era: &str,
    transport: &str,
    target: &[String],
    handlers: &ClientHandlers,
    roots: &Roots,
) -> Result<Client, Box<dyn Error>> {
    let builder = builder(era, handlers).roots(roots.clone());
    match transport {
        "stdio" => {
            let child = ServerCommand::new(&target[0]).args(&target[1..]);
            Ok(builder.connect(child.stderr(StderrMode::Inherited)).await?)
        }
        // The client detects the older transport, too.
        _ => Ok(builder.connect(HttpTarget::new(&target[0])).await?),
    }
}

fn builder(era: &str, handlers: &ClientHandlers) -> ClientBuilder {
    let choice = match era {
        "modern" => LifecycleMode::Modern,
        "legacy" => LifecycleMode::Legacy,
        _ => LifecycleMode::Auto,
    };
    let [form, visit, sample, logged, odd] = std::array::from_fn(|_| handlers.clone());
    Client::builder("interop", "1")
        .lifecycle_mode(choice)
        .on_form_elicitation(move |question: FormRequest| ready(form.form(&question)))
        .on_url_elicitation(move |question: UrlElicitationRequest| ready(visit.open_url(&question)))
        .on_sampling(move |question: SamplingRequest| ready(Ok(sample.sample(&question))))
        .log_level(LogLevel::Info)
        .on_log(move |message| logged.record_log(message))
        .on_anomaly(move |anomaly| odd.record_anomaly(&anomaly))
}
