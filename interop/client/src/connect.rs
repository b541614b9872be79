//! Reaches a server.

use std::error::Error;

use turnbuckle_client::stdio::{Child, Stderr};
use turnbuckle_client::{Client, ClientBuilder, EraChoice};
use turnbuckle_protocol::types::LogLevel;

use crate::answers::Answers;

/// Connects a client that can be asked everything.
pub(crate) async fn connect(
    era: &str,
    transport: &str,
    target: &[String],
    answers: &Answers,
) -> Result<Client, Box<dyn Error>> {
    let builder = builder(era, answers);
    match transport {
        "stdio" => {
            let child = Child::new(&target[0]).args(&target[1..]);
            Ok(builder.connect(child.stderr(Stderr::Inherited)).await?)
        }
        _ => Err("there is no such transport".into()),
    }
}

fn builder(era: &str, answers: &Answers) -> ClientBuilder {
    let choice = match era {
        "modern" => EraChoice::Modern,
        "legacy" => EraChoice::Legacy,
        _ => EraChoice::Auto,
    };
    let (logged, odd) = (answers.clone(), answers.clone());
    Client::builder("interop", "1")
        .era(choice)
        .log_level(LogLevel::Info)
        .on_log(move |message| logged.logged(message))
        .on_oddity(move |oddity| odd.odd(&oddity))
}
