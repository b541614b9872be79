//! The measured client: ours, as a program would use it, with the defaults.

use std::sync::Arc;

use serde::Serialize;
use turnbuckle::client::{Client, LifecycleMode, Target, http::HttpTarget, stdio::ServerCommand};
use turnbuckle_bench::{
    Failure,
    client::{Plan, Server, Stopwatch},
    message::Era,
    options::Options,
};

/// Makes the calls and prints their cost.
#[tokio::main]
pub(super) async fn run(options: Options) -> Result<bool, Failure> {
    let plan = Plan::parse(options)?;
    let client = connect(&plan).await?;
    let message: Arc<str> = plan.message.as_str().into();

    let time = Stopwatch::start()?;
    let callers: Vec<_> = plan
        .shares()
        .map(|calls| tokio::spawn(call(client.clone(), calls, Arc::clone(&message))))
        .collect();
    for caller in callers {
        caller.await??;
    }
    println!("{}", time.report(plan.calls)?);
    client.close().await;
    Ok(true)
}

/// The arguments of `echo`: a type, as in the bare client.
#[derive(Serialize)]
struct Echo<'a> {
    message: &'a str,
}

async fn connect(plan: &Plan) -> Result<Client, Failure> {
    let server: Target = match &plan.server {
        Server::Url(url) => HttpTarget::new(url).into(),
        Server::Child(command) => {
            let (program, arguments) = command.split_first().ok_or("no command")?;
            ServerCommand::new(program).args(arguments).into()
        }
    };
    let era = match plan.era {
        Era::Legacy => LifecycleMode::Legacy,
        Era::Modern => LifecycleMode::Modern,
    };
    let client = Client::builder("bench", "0.0.0").lifecycle_mode(era);
    Ok(client.connect(server).await?)
}

async fn call(client: Client, calls: u64, message: Arc<str>) -> Result<(), Failure> {
    for _ in 0..calls {
        let arguments = Echo { message: &message };
        let text = client.call_tool("echo", arguments).await?.text();
        if text != *message {
            return Err(format!("wrong response: {text:.300}").into());
        }
    }
    Ok(())
}
