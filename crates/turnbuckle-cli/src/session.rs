//! From a target to a client: finds the server, asks for consent, connects, and closes in the end.

use std::io;
use std::path::Path;
use std::time::Duration;

use turnbuckle_client::http::Http;
use turnbuckle_client::stdio::Child;
use turnbuckle_client::unix::Unix;
use turnbuckle_client::{self as client, Call, Client, ClientBuilder, EraChoice, Patience};
use turnbuckle_protocol::types::LogLevel;

use crate::arguments::Era;
use crate::context::Context;
use crate::failure::{Failure, Result, warning};
use crate::questions::Questions;
use crate::secret::Secret;
use crate::servers::{self, Entry, Remote, Server, Start};
use crate::target::Target;
use crate::trust::{self, Asking};

/// How long a server may be silent while its user may be typing.
const LENIENT: Duration = Duration::from_secs(600);

/// Connects to a server, does something with it, and closes the connection whatever comes of it.
///
/// Ctrl-C stops what is being done, which cancels it, and closes the connection too.
pub(crate) async fn with<T>(
    target: &Target,
    context: &Context,
    work: impl AsyncFnOnce(&Client) -> Result<T>,
) -> Result<T> {
    let connecting = connect(target, context);
    let client = interruptible(connecting).await?;
    let done = interruptible(work(&client)).await;
    context.voice.quiet();
    client.close().await;
    done
}

/// Gives a call the time that the user gave it, and shows how far it has come.
pub(crate) fn patiently<T: Send + 'static>(call: Call<T>, context: &Context) -> Call<T> {
    let voice = context.voice.clone();
    let call = call.on_progress(move |progress| voice.progress(&progress));
    match (context.options.timeout, context.environment.terminal.asks) {
        (None, true) => call.timeout(LENIENT),
        _ => call,
    }
}

/// Does something with a server until it is over or the user has had enough, which is an end like any other.
pub(crate) async fn until_stopped(
    target: &Target,
    context: &Context,
    work: impl AsyncFnOnce(&Client) -> Result,
) -> Result {
    let stoppable = async |client: &Client| {
        tokio::select! {
            done = work(client) => done,
            () = stop() => Ok(()),
        }
    };
    with(target, context, stoppable).await
}

async fn interruptible<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        // Whoever takes Ctrl-C for something else does so first.
        biased;
        done = work => done,
        () = stop() => Err(Failure::interrupted()),
    }
}

/// Waits until we are told to stop, by Ctrl-C or by SIGTERM.
///
/// A program that we started has a process group of its own, so nobody but us ends it.
#[cfg(unix)]
async fn stop() {
    use tokio::signal::unix::{SignalKind, signal};

    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

/// Waits until we are told to stop.
#[cfg(not(unix))]
async fn stop() {
    let _ = tokio::signal::ctrl_c().await;
}

async fn connect(target: &Target, context: &Context) -> Result<Client> {
    let place = place(target, context)?;
    Ok(builder(target, context).connect(place).await?)
}

fn builder(target: &Target, context: &Context) -> ClientBuilder {
    let options = &context.options;
    let log = context.voice.clone();
    let can_ask = context.environment.terminal.asks;
    let forms = Questions::new(target.label(), can_ask, context.voice.clone());
    let visits = forms.clone();
    let mut builder = Client::builder("turnbuckle", env!("CARGO_PKG_VERSION"))
        .era(match options.era {
            Era::Auto => EraChoice::Auto,
            Era::Modern => EraChoice::Modern,
            Era::Legacy => EraChoice::Legacy,
        })
        .log_level(match options.verbose {
            true => LogLevel::Debug,
            false => LogLevel::Info,
        })
        .on_log(move |message| log.log(&message))
        .on_form(move |form| forms.clone().form(form))
        .on_visit(move |visit| visits.clone().visit(visit));
    if let Some(timeout) = options.timeout {
        let mut patience = Patience::default();
        patience.silence = timeout;
        patience.total = patience.total.max(timeout);
        builder = builder.patience(patience);
    }
    if options.verbose {
        let (traffic, oddities) = (context.voice.clone(), context.voice.clone());
        builder = builder
            .on_traffic(move |message| traffic.traffic(message))
            .on_oddity(move |oddity| oddities.aside("?", &oddity.to_string()));
    }
    builder
}

/// Finds out where a server is.
fn place(target: &Target, context: &Context) -> Result<client::Target> {
    let headers = &context.options.headers;
    match target {
        Target::Url(url) => Ok(http(url, headers, false, context).into()),
        Target::Unix(path) => Ok(Unix::new(context.environment.cwd.join(path)).into()),
        Target::Command(words) => {
            let (program, arguments) = words
                .split_first()
                .ok_or_else(|| Failure::not_asked("there is no command behind `--`"))?;
            Ok(listened(Child::new(program).args(arguments), context).into())
        }
        Target::Named(name) => configured(name, context),
    }
}

fn configured(name: &str, context: &Context) -> Result<client::Target> {
    let environment = &context.environment;
    let found = servers::find(environment, context.options.config.as_deref());
    for message in &found.warnings {
        context.voice.say(&warning(message));
    }
    let server = found.pick(name).ok_or_else(|| {
        Failure::not_asked(format!("no server `{name}` is configured"))
            .hint("`turnbuckle servers` lists those that are; a program is started by `-- PROGRAM`")
    })?;
    let entry = server.resolve(environment).map_err(|error| {
        let file = server.file.display();
        Failure::not_asked(format!("`{name}` of {file} cannot be used: {error}"))
    })?;
    ensure_trust(server, &entry, context)?;
    Ok(match &entry {
        Entry::Start(start) => child(start, server, context).into(),
        Entry::Remote(remote) => remote_place(remote, context).into(),
    })
}

fn ensure_trust(server: &Server, entry: &Entry, context: &Context) -> Result {
    let mut reader = io::stdin().lock();
    let mut writer = anstream::stderr().lock();
    let asking = match (context.options.yes, context.environment.terminal.asks) {
        (true, _) => Asking::Yes,
        (false, true) => Asking::Terminal(&mut reader, &mut writer),
        (false, false) => Asking::NoTerminal,
    };
    trust::ensure(server, entry, &context.environment, asking)
}

fn child(start: &Start, server: &Server, context: &Context) -> Child {
    let folder = start.folder(server);
    // A path is meant from the folder of its file, wherever we stand.
    let program = match Path::new(&start.program).components().count() {
        0 | 1 => start.program.clone().into(),
        _ => folder.join(&start.program),
    };
    let variables = start.env.iter().map(|(name, value)| (name, value.reveal()));
    let child = Child::new(program)
        .args(&start.arguments)
        .envs(variables)
        .current_dir(folder);
    listened(child, context)
}

fn listened(child: Child, context: &Context) -> Child {
    if !context.options.verbose {
        return child;
    }
    let voice = context.voice.clone();
    child.on_stderr(move |line| voice.aside("!", line))
}

fn remote_place(remote: &Remote, context: &Context) -> Http {
    let given = context.options.headers.iter();
    let named = |name: &str| {
        given
            .clone()
            .any(|(other, _)| other.eq_ignore_ascii_case(name))
    };
    // What is said on the command line counts more.
    let mut headers = remote.headers.clone();
    headers.retain(|(name, _)| !named(name));
    headers.extend(given.clone().cloned());
    http(&remote.url, &headers, remote.sse, context)
}

fn http(url: &str, headers: &[(String, Secret)], sse: bool, context: &Context) -> Http {
    if context.options.verbose {
        let shown = headers.iter().map(|(name, _)| format!(", {name}: ***"));
        let shown: String = shown.collect();
        context.voice.aside(
            "*",
            &format!("{}{shown}", url.split('?').next().unwrap_or(url)),
        );
    }
    let place = Http::new(url);
    let place = if sse { place.only_http_sse() } else { place };
    headers.iter().fold(place, |place, (name, value)| {
        place.header(name, value.reveal())
    })
}
