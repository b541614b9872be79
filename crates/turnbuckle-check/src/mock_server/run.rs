//! Runs a client against the mock server and evaluates the rules.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use turnbuckle_protocol::revision::Revision;
use turnbuckle_text::error_chain;

use super::{
    command::ClientCommand,
    host::{MAX_MESSAGES, MockHost},
    scenario::Scenario,
    scenario_run::{ScenarioEnd, ScenarioRun, ScenarioRuns},
    server::{ENDPOINT, MockServer},
    target::{ClientRunner, ClientTarget, LaunchMode, MockServerAddress, TransportKind},
};
use crate::{
    catalog,
    engine::{
        outcome::{NotPassed, Outcome},
        transcript::Transcript,
    },
    error::CheckError,
    options::CheckOptions,
    report::{Report, RuleOutcome, RuleResult, RunReport},
    rule::{Check, Role, Rule},
};

/// The origin of a mock server in this process.
const ORIGIN: &str = "http://127.0.0.1";

/// The maximum number of concurrent runs of a program.
const MAX_CONCURRENT_RUNS: usize = 3;

/// Checks a client in every revision that it supports.
///
/// # Errors
///
/// If the client cannot be started, never connects, or supports none of the revisions.
///
/// # Panics
///
/// Outside of a tokio runtime with time and I/O enabled.
pub async fn check_client(
    target: &ClientTarget,
    options: &CheckOptions,
) -> Result<Report, CheckError> {
    let started = std::time::Instant::now();
    let mut report = Report::new(Role::Client, &target.label);
    let results = run_revisions(target, options).await;
    for (run, skipped) in results {
        report.add(run, skipped);
    }
    if report.runs.iter().all(|run| run.unsupported.is_some()) {
        let reason = |run: &RunReport| (run.revision, run.unsupported.clone().unwrap_or_default());
        let reasons = report.runs.iter().map(reason);
        return Err(CheckError::ClientNoSupportedRevision(reasons.collect()));
    }
    report.duration = started.elapsed();
    Ok(report)
}

/// The results of one revision, and what was skipped.
type RevisionResult = (RunReport, Vec<String>);

async fn run_revisions(target: &ClientTarget, options: &CheckOptions) -> Vec<RevisionResult> {
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_RUNS));
    let mut running = JoinSet::new();
    for (at, &revision) in options.revisions.iter().enumerate() {
        let (target, options, permits) = (target.clone(), options.clone(), permits.clone());
        running.spawn(async move {
            let _permit = permits.acquire_owned().await;
            (at, run_revision(&target, &options, revision).await)
        });
    }
    let mut runs = running.join_all().await;
    runs.sort_by_key(|(at, _)| *at);
    runs.into_iter().map(|(_, results)| results).collect()
}

async fn run_revision(
    target: &ClientTarget,
    options: &CheckOptions,
    revision: Revision,
) -> RevisionResult {
    let transport_kind = target.transport_kind();
    let http_sse = revision < Revision::V2025_03_26;
    let transcript = Transcript::default();
    let mut runs = ScenarioRuns::new(revision);
    let mut report = RunReport::new(revision, target.transport(http_sse));
    let mut skipped = Vec::new();
    let rules: Vec<_> = catalog::for_clients()
        .filter(|rule| options.selects(rule) && rule.applies_in(revision))
        .filter(|rule| target.can_observe(rule.transports, http_sse))
        .collect();
    let expected: HashSet<_> = rules.iter().flat_map(|rule| scenarios(rule)).collect();
    for scenario in Scenario::ALL {
        let plain = scenario == Scenario::Default;
        if !scenario.applies_to(revision, transport_kind)
            || !(plain || expected.contains(&scenario))
        {
            continue;
        }
        let scenario_run = run_scenario(
            target,
            options,
            MockServer::for_scenario(scenario, revision, transport_kind),
            &transcript,
        )
        .await;
        if scenario_run.end == ScenarioEnd::OverLimit {
            skipped.push(format!(
                "{revision}: a run was ended because the client sent more than {MAX_MESSAGES} messages or 64 MiB"
            ));
        }
        if let (true, Err(why)) = (plain, supports_revision(&scenario_run, options)) {
            report.unsupported = Some(why);
            return (report, skipped);
        }
        runs.push(scenario_run);
    }
    for rule in rules {
        let outcome = RuleOutcome::from_outcome(evaluate(rule, &runs), &transcript);
        report
            .results
            .push(RuleResult::new(rule, revision, outcome));
    }
    skipped.dedup();
    (report, skipped)
}

/// Returns the scenarios that a rule needs.
fn scenarios(rule: &Rule) -> &'static [Scenario] {
    match rule.check {
        Check::Scenarios(scenarios, _) => scenarios,
        Check::Unset | Check::Active(_) | Check::Passive(_) => &[],
    }
}

fn evaluate(rule: &Rule, runs: &ScenarioRuns) -> Outcome {
    match rule.check {
        Check::Scenarios(_, look) => look(runs),
        Check::Unset | Check::Active(_) | Check::Passive(_) => {
            Err(NotPassed::not_tested("the rule does not apply to clients"))
        }
    }
}

/// Runs a client once in a scenario.
async fn run_scenario(
    target: &ClientTarget,
    options: &CheckOptions,
    mock: impl FnOnce(String) -> MockServer,
    transcript: &Transcript,
) -> ScenarioRun {
    let from = transcript.len();
    let response_timeout = options.client_idle_timeout * 2 / 3;
    let (host, end) = match &target.launch {
        LaunchMode::InProcess(_, runner) => {
            let host = MockHost::new(mock(ORIGIN.to_owned()), transcript, response_timeout);
            let end = run_in_process(runner, &host, options).await;
            (host, end)
        }
        LaunchMode::Command(command) => {
            run_command(command, mock, transcript, options, response_timeout).await
        }
    };
    host.close().await;
    let end = if host.is_over_limit() {
        ScenarioEnd::OverLimit
    } else {
        end
    };
    let entries = transcript.all().split_off(from);
    let mock = &host.mock;
    ScenarioRun::new(mock.scenario, mock.revision, entries, end, mock.notes())
}

async fn run_in_process(
    runner: &ClientRunner,
    host: &Arc<MockHost>,
    options: &CheckOptions,
) -> ScenarioEnd {
    let (address, mut incoming) = MockServerAddress::new(format!("{ORIGIN}{ENDPOINT}"));
    let accepting_connections = async {
        while let Some(stream) = incoming.recv().await {
            host.serve_connection(stream);
        }
        std::future::pending::<()>().await;
    };
    let running = runner(address);
    let end = tokio::select! {
        () = running => ScenarioEnd::Finished,
        end = wait_until_idle(host, options) => end,
        () = accepting_connections => ScenarioEnd::Finished,
    };
    while let Ok(stream) = incoming.try_recv() {
        host.serve_connection(stream);
    }
    host.drain().await;
    end
}

async fn run_command(
    command: &ClientCommand,
    mock: impl FnOnce(String) -> MockServer,
    transcript: &Transcript,
    options: &CheckOptions,
    response_timeout: Duration,
) -> (Arc<MockHost>, ScenarioEnd) {
    let listener_result = TcpListener::bind(("127.0.0.1", 0)).await;
    let bound = listener_result.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = match bound {
        Ok(bound) => bound,
        Err(error) => {
            let host = MockHost::new(mock(ORIGIN.to_owned()), transcript, response_timeout);
            return (host, ScenarioEnd::NotStarted(error.to_string()));
        }
    };
    let origin = format!("http://{address}");
    let given = match command.transport_kind() {
        TransportKind::Http => format!("{origin}{ENDPOINT}"),
        TransportKind::Ndjson => address.to_string(),
    };
    let host = MockHost::new(mock(origin), transcript, response_timeout);
    let started = match command.child(&given).start() {
        Ok(started) => started,
        Err(error) => return (host, ScenarioEnd::NotStarted(error_chain(&error))),
    };
    let (process, input, mut output) = (started.process, started.input, started.output);
    drop(input);
    // Drain the output of the client so that it does not block.
    let draining =
        tokio::spawn(async move { tokio::io::copy(&mut output, &mut tokio::io::sink()).await });
    let (sender, mut incoming) = mpsc::channel(16);
    let accepting = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            if sender.send(stream).await.is_err() {
                return;
            }
        }
    });
    let accepting_connections = async {
        while let Some(stream) = incoming.recv().await {
            host.serve_connection(stream);
        }
        std::future::pending::<()>().await;
    };
    let end = tokio::select! {
        exit = process.wait() => ScenarioEnd::Exited(exit),
        end = wait_until_idle(&host, options) => end,
        () = accepting_connections => ScenarioEnd::Finished,
    };
    if let ScenarioEnd::Exited(_) = end {
        while let Ok(stream) = incoming.try_recv() {
            host.serve_connection(stream);
        }
        host.drain().await;
    }
    process.end().await;
    accepting.abort();
    draining.abort();
    (host, end)
}

/// Waits until the client is idle or its time is over.
async fn wait_until_idle(host: &MockHost, options: &CheckOptions) -> ScenarioEnd {
    let end = Instant::now() + options.client_run_timeout;
    loop {
        if host.is_over_limit() {
            return ScenarioEnd::OverLimit;
        }
        let quiet = host
            .last_activity()
            .map(|last| last + options.client_idle_timeout);
        let until = quiet.map_or(end, |quiet| quiet.min(end));
        if Instant::now() >= until {
            return if Instant::now() >= end {
                ScenarioEnd::TimedOut
            } else {
                ScenarioEnd::Idle
            };
        }
        // A new message extends the wait; a client that has not sent anything yet may start at any
        // time.
        let step = Instant::now() + options.client_idle_timeout / 8;
        sleep_until(until.min(step)).await;
    }
}

/// Checks that the client supports the revision; returns the reason if not.
fn supports_revision(run: &ScenarioRun, options: &CheckOptions) -> Result<(), String> {
    if let ScenarioEnd::NotStarted(why) = &run.end {
        return Err(format!("the client could not be started: {why}"));
    }
    if run.entries.is_empty() {
        return Err(match &run.end {
            ScenarioEnd::Exited(exit) if exit.stderr_tail.is_empty() => {
                format!("the client never connected, and {}", exit.exit)
            }
            ScenarioEnd::Exited(exit) => format!(
                "the client never connected, and {}, after printing: {}",
                exit.exit, exit.stderr_tail
            ),
            ScenarioEnd::TimedOut => format!(
                "the client did not connect within {:?}",
                options.client_run_timeout
            ),
            _ => "the client never connected".to_owned(),
        });
    }
    let modern = run.server_revision.is_stateless();
    let Some(first) = run.requests().next() else {
        return Err("the client sent no request".into());
    };
    let mut initializes = run.requests_for("initialize").peekable();
    let tried = initializes.peek().is_some();
    let completed = initializes.find(|initialize| run.response_to(initialize).is_some());
    match (modern, completed) {
        (true, _) if first.method() != Some("initialize") => Ok(()),
        (true, _) => Err("the client starts with a handshake".into()),
        (false, None) if tried => Err("the client did not complete a handshake".into()),
        (false, None) => {
            Err("the client starts without a handshake and does not fall back to one".into())
        }
        (false, Some(initialize)) => {
            let later = |number: usize| number > initialize.number;
            let continues = |method: Option<&str>| {
                !matches!(
                    method,
                    Some("initialize" | "server/discover" | "notifications/cancelled")
                )
            };
            let on = run
                .messages()
                .iter()
                .any(|message| later(message.number) && continues(message.method()));
            if on {
                Ok(())
            } else {
                let proposed = initialize.params()["protocolVersion"].as_str();
                Err(format!(
                    "the client proposes {} and stops when the server responds with {}",
                    proposed.unwrap_or("nothing"),
                    run.server_revision
                ))
            }
        }
    }
}
