//! Reaches a server.

use std::error::Error;
use std::process::Stdio;

use tokio::process::Command;
use turnbuckle_client::lines::Lines;
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
            let mut child = Command::new(&target[0])
                .args(&target[1..])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let (reader, writer) = (child.stdout.take(), child.stdin.take());
            let lines = Lines::new(reader.expect("it is piped"), writer.expect("it is piped"));
            Ok(builder.connect(lines).await?)
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
