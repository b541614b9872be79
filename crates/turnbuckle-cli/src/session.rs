//! From a target to a client: connects, and closes in the end.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use turnbuckle_client::{Call, Client, ClientBuilder, EraChoice, Oddity, Patience};
use turnbuckle_protocol::types::LogLevel;

use crate::arguments::Era;
use crate::context::Context;
use crate::failure::{Failure, Result, warning};
use crate::logins;
use crate::output::plain;
use crate::place::{self, Place};
use crate::questions::Questions;
use crate::stop_signals::stop;
use crate::target::Target;

/// How long a server may be silent while its user may be typing.
const LENIENT: Duration = Duration::from_secs(600);

/// Connects to a server, does something with it, and closes the connection whatever comes of it.
///
/// Ctrl-C and other signals that ask us to end stop what is being done, which cancels it, and close the connection too.
pub(crate) async fn with<T>(
    target: &Target,
    context: &Context,
    work: impl AsyncFnOnce(&Client) -> Result<T>,
) -> Result<T> {
    let place = place::find(target, context)?;
    let names_us = place.names_us();
    let done = async {
        let client = interruptible(connect(place, target, context)).await?;
        let done = interruptible(work(&client)).await;
        context.voice.quiet();
        client.close().await;
        done
    };
    let advice = || logins::advice(target, names_us);
    done.await
        .map_err(|failure: Failure| failure.or_login(advice))
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

/// Does something until it is done, or the user has had enough.
pub(crate) async fn interruptible<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    // Before anything is started, so that no signal ends us without what we started.
    let stop = stop();
    tokio::select! {
        // Whoever takes Ctrl-C for something else does so first.
        biased;
        done = work => done,
        () = stop => Err(Failure::interrupted()),
    }
}

async fn connect(place: Place, target: &Target, context: &Context) -> Result<Client> {
    let place = match place {
        Place::Here(place) => place,
        Place::Web(remote) => logins::authorized(target, &remote, context).await?.into(),
    };
    Ok(builder(target, context).connect(place).await?)
}

/// Prepares a client that speaks with the user.
pub(crate) fn builder(target: &Target, context: &Context) -> ClientBuilder {
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
        let traffic = context.voice.clone();
        builder = builder.on_traffic(move |message| traffic.traffic(message));
    }
    builder.on_oddity(report_oddity(context))
}

/// Shows what is odd about a server: a tool that is left out, once, and everything else if the user wants to see it all.
fn report_oddity(context: &Context) -> impl Fn(Oddity) + Send + Sync + 'static {
    let (voice, verbose) = (context.voice.clone(), context.options.verbose);
    let left_out = Mutex::new(BTreeSet::new());
    move |oddity| match oddity {
        Oddity::BadMark { tool, error } => {
            let mut left_out = left_out.lock().unwrap_or_else(PoisonError::into_inner);
            if left_out.insert(tool.clone()) {
                let message = format!("the tool `{tool}` is left out: {error}");
                voice.say(&warning(&plain::line(&message)));
            }
        }
        oddity if verbose => voice.aside("?", &oddity.to_string()),
        _ => {}
    }
}
