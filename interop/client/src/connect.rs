//! Reaches a server.

use std::error::Error;
use std::future::ready;

use turnbuckle_client::http::Http;
use turnbuckle_client::stdio::{Child, Stderr};
use turnbuckle_client::{
    Client, ClientBuilder, EraChoice, FormRequest, Roots, SampleRequest, VisitRequest,
};
use turnbuckle_protocol::types::LogLevel;

use crate::answers::Answers;

/// Connects a client that can be asked everything.
pub(crate) async fn connect(
    era: &str,
    transport: &str,
    target: &[String],
    answers: &Answers,
    roots: &Roots,
) -> Result<Client, Box<dyn Error>> {
    let builder = builder(era, answers).roots(roots.clone());
    match transport {
        "stdio" => {
            let child = Child::new(&target[0]).args(&target[1..]);
            Ok(builder.connect(child.stderr(Stderr::Inherited)).await?)
        }
        // The older transport is found out by the client too.
        _ => Ok(builder.connect(Http::new(&target[0])).await?),
    }
}

fn builder(era: &str, answers: &Answers) -> ClientBuilder {
    let choice = match era {
        "modern" => EraChoice::Modern,
        "legacy" => EraChoice::Legacy,
        _ => EraChoice::Auto,
    };
    let [form, visit, sample, logged, odd] = std::array::from_fn(|_| answers.clone());
    Client::builder("interop", "1")
        .era(choice)
        .on_form(move |question: FormRequest| ready(form.form(&question)))
        .on_visit(move |question: VisitRequest| ready(visit.visit(&question)))
        .on_sample(move |question: SampleRequest| ready(Ok(sample.sample(&question))))
        .log_level(LogLevel::Info)
        .on_log(move |message| logged.logged(message))
        .on_oddity(move |oddity| odd.odd(&oddity))
}
