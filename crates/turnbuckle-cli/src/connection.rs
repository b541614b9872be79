//! Connects to a target, runs a command with the client, and closes the connection.

use std::{collections::BTreeSet, sync::Mutex, time::Duration};

use turnbuckle_client::{Anomaly, Call, Client, ClientBuilder, LifecycleMode, Timeouts};
use turnbuckle_protocol::types::LogLevel;

use crate::{
    cli::EraOption,
    context::CommandContext,
    elicitation::TerminalElicitation,
    error::{CliError, Result, warning},
    lock, logins,
    output::sanitize,
    signals::interrupt_signal,
    target::{
        CliTarget,
        resolve::{self, ResolvedTarget},
    },
};

/// The idle timeout of a call while the user may be typing.
const INTERACTIVE_TIMEOUT: Duration = Duration::from_secs(600);

/// Connects to a server, calls `work` with the client, and closes the connection in every case.
///
/// Ctrl-C and other terminating signals cancel the work and close the connection.
pub(crate) async fn with_client<T>(
    target: &CliTarget,
    context: &CommandContext,
    work: impl AsyncFnOnce(&Client) -> Result<T>,
) -> Result<T> {
    let resolved = resolve::resolve(target, context)?;
    let has_credentials = resolved.has_credentials();
    let done = async {
        let client = or_interrupted(connect(resolved, target, context)).await?;
        let done = or_interrupted(work(&client)).await;
        context.ui.clear_progress();
        client.close().await;
        done
    };
    let login_hint = || logins::login_hint(target, has_credentials);
    done.await
        .map_err(|failure: CliError| failure.with_login_hint(login_hint))
}

/// Shows the progress of a call. Without `--timeout`, a call at a terminal gets a longer timeout.
pub(crate) fn with_progress_and_timeout<T: Send + 'static>(
    call: Call<T>,
    context: &CommandContext,
) -> Call<T> {
    let ui = context.ui.clone();
    let call = call.on_progress(move |progress| {
        let message = progress.message.as_deref().unwrap_or_default();
        ui.progress(progress.progress, progress.total, message);
    });
    match (
        context.options.timeout,
        context.environment.terminal.is_interactive,
    ) {
        (None, true) => call.timeout(INTERACTIVE_TIMEOUT),
        _ => call,
    }
}

/// Calls `work` with a client until it ends or the user interrupts it; both count as success.
pub(crate) async fn until_interrupted(
    target: &CliTarget,
    context: &CommandContext,
    work: impl AsyncFnOnce(&Client) -> Result,
) -> Result {
    let interruptible = async |client: &Client| {
        tokio::select! {
            done = work(client) => done,
            () = interrupt_signal() => Ok(()),
        }
    };
    with_client(target, context, interruptible).await
}

/// Runs a future until it ends; an interrupt is an error.
pub(crate) async fn or_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    // Registered first, so that no signal can end this process before its children are cleaned up.
    let interrupted = interrupt_signal();
    tokio::select! {
        // If the work is done, that counts, even if a signal has arrived.
        biased;
        done = work => done,
        () = interrupted => Err(CliError::interrupted()),
    }
}

async fn connect(
    resolved: ResolvedTarget,
    target: &CliTarget,
    context: &CommandContext,
) -> Result<Client> {
    let server = match resolved {
        ResolvedTarget::Local(target) => target,
        ResolvedTarget::Http(http_entry) => logins::authorized_http(target, &http_entry, context)
            .await?
            .into(),
    };
    Ok(client_builder(target, context).connect(server).await?)
}

/// Returns a client builder with callbacks that use the terminal.
pub(crate) fn client_builder(target: &CliTarget, context: &CommandContext) -> ClientBuilder {
    let options = &context.options;
    let log = context.ui.clone();
    let is_interactive = context.environment.terminal.is_interactive;
    let forms = TerminalElicitation::new(target.label(), is_interactive, context.ui.clone());
    let urls = forms.clone();
    let mut builder = Client::builder("turnbuckle", env!("CARGO_PKG_VERSION"))
        .validate_output(true)
        .lifecycle_mode(match options.era {
            EraOption::Auto => LifecycleMode::Auto,
            EraOption::Modern => LifecycleMode::Modern,
            EraOption::Legacy => LifecycleMode::Legacy,
        })
        .log_level(if options.verbose {
            LogLevel::Debug
        } else {
            LogLevel::Info
        })
        .on_log(move |message| log.log(&message))
        .on_form_elicitation(move |form| forms.clone().elicit_form(form))
        .on_url_elicitation(move |request| urls.clone().elicit_url(request));
    if let Some(timeout) = options.timeout {
        let mut timeouts = Timeouts::default();
        timeouts.idle = timeout;
        timeouts.total = timeouts.total.max(timeout);
        builder = builder.timeouts(timeouts);
    }
    if options.verbose {
        let traffic = context.ui.clone();
        builder = builder.on_traffic(move |message| traffic.traffic(message));
    }
    builder.on_anomaly(report_anomaly(context))
}

/// Reports anomalies of a server: an excluded item once, all others with `--verbose`.
fn report_anomaly(context: &CommandContext) -> impl Fn(Anomaly) + Send + Sync + 'static {
    let (ui, verbose) = (context.ui.clone(), context.options.verbose);
    let reported = Mutex::new(BTreeSet::new());
    let printer = ui.clone();
    let report_excluded = move |message: String| {
        let mut reported = lock(&reported);
        let message = sanitize::line(&message);
        if reported.insert(message.clone()) {
            printer.print(&warning(&message));
        }
    };
    move |anomaly| match anomaly {
        Anomaly::InvalidParamHeader { tool, error } => {
            report_excluded(format!("the tool `{tool}` is excluded: {error}"));
        }
        Anomaly::InvalidListItem { kind, name, error } => {
            report_excluded(format!("the {kind} `{name}` is excluded: {error}"));
        }
        anomaly if verbose => ui.note("?", &anomaly.to_string()),
        _ => {}
    }
}
