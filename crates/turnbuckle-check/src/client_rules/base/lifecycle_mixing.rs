//! Detection of the era of a server.

use crate::{
    engine::outcome::{Evidence, NotPassed, Outcome},
    mock_server::{
        Scenario,
        scenario_run::{ScenarioRun, ScenarioRuns},
    },
    rule::{Area, Rule, Transports},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.eras.stays-modern-on-lines", Area::Eras, &["versioning.stdio.probe-modern-error"])
        .requirement("After error -32022 the client does not fall back to `initialize`.")
        .hint("On error -32022, select a version from the list or report that none is supported; do not send `initialize`.")
        .transports(Transports::Ndjson)
        .scenarios(&[Scenario::UnknownRevision], stays_modern),
    Rule::client("client.eras.stays-modern-on-http", Area::Eras, &[
        "versioning.http.modern-error-stay",
        "versioning.http.inspect-400",
    ])
    .requirement("After HTTP 400 with error -32022 the client does not fall back to `initialize`.")
    .hint("Read the body of a 400: on error -32022, select a version from the list or report that none is supported.")
    .transports(Transports::Http)
    .scenarios(&[Scenario::UnknownRevision], stays_modern),
    Rule::client("client.eras.any-code-on-lines", Area::Eras, &["versioning.stdio.no-single-code"])
        .requirement("The client falls back to `initialize` after any error that does not belong to 2026-07-28, not only after one code.")
        .hint("Send `initialize` after every error that does not belong to 2026-07-28, whatever its code.")
        .transports(Transports::Ndjson)
        .scenarios(&[Scenario::LegacyOnly, Scenario::LegacyOnlyUnusualCode], any_code),
    Rule::client("client.eras.falls-back-on-http", Area::Eras, &["versioning.http.fallback"])
        .requirement("The client falls back to `initialize` after any 4xx response without an error of 2026-07-28.")
        .hint("Send `initialize` after every 4xx response with a body that is not an error of 2026-07-28.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::LegacyOnly, Scenario::LegacyOnlyUnusualCode], any_code),
];

fn stays_modern(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::UnknownRevision)?;
    let rejected = run
        .requests()
        .find(|message| message.method() != Some("initialize"));
    let Some(rejected) = rejected else {
        return Err(NotPassed::not_tested(
            "the client sent no request of 2026-07-28",
        ));
    };
    let response = run.response_to(rejected).map(|(number, _)| number);
    let entries = [Some(rejected.number), response].into_iter().flatten();
    match run.requests_for("initialize").next() {
        None => Evidence::from_entries(entries),
        Some(initialize) => {
            let observed = "`initialize` after error -32022";
            Err(NotPassed::violation(
                observed,
                entries.chain([initialize.number]),
            ))
        }
    }
}

fn any_code(runs: &ScenarioRuns) -> Outcome {
    let (usual, unusual) = (
        runs.get(Scenario::LegacyOnly)?,
        runs.get(Scenario::LegacyOnlyUnusualCode)?,
    );
    let falls_back = |run: &ScenarioRun| {
        run.requests_for("initialize")
            .next()
            .map(|message| message.number)
    };
    match (falls_back(usual), falls_back(unusual)) {
        (usually, Some(unusual_run)) => {
            Evidence::from_entries(usually.into_iter().chain([unusual_run]))
        }
        (None, None) => {
            let why = "the client does not fall back to a handshake";
            Err(NotPassed::not_applicable(why))
        }
        (Some(_), None) => {
            let requests = unusual.requests().map(|message| message.number).take(1);
            let response = unusual
                .requests()
                .next()
                .and_then(|message| unusual.response_to(message));
            let entries: Vec<_> = requests.chain(response.map(|(number, _)| number)).collect();
            let observed = "no `initialize` after error -32000, but after -32601";
            Err(NotPassed::violation(observed, entries))
        }
    }
}
