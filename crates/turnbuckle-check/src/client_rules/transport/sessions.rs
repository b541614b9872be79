//! HTTP sessions.

use crate::{
    engine::outcome::{Evidence, NotPassed, Outcome},
    mock_server::{
        Scenario,
        scenario_run::{ScenarioEnd, ScenarioRuns},
    },
    rule::{Area, Rule, Transports},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.sessions.id-sent", Area::Sessions, &["http.session.client-sends"])
        .requirement("Every request of a session has `Mcp-Session-Id`.")
        .hint("Send the `Mcp-Session-Id` of the response to `initialize` with every later POST, GET and DELETE.")
        .transports(Transports::Http)
        .scenarios(&[], id_sent),
    Rule::client("client.sessions.restarted", Area::Sessions, &["http.session.client-restart"])
        .requirement("After a 404, the client starts a new session.")
        .hint("Send `initialize` without a session id when a request with a session id gets 404.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::LostSession], restarted),
    Rule::client("client.sessions.deleted", Area::Sessions, &["http.session.delete"])
        .requirement("The client deletes its session.")
        .hint("Send DELETE with the `Mcp-Session-Id` before disconnecting.")
        .transports(Transports::Http)
        .scenarios(&[], deleted),
];

fn id_sent(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    for run in runs.all() {
        let initializes: Vec<_> = run.requests_for("initialize").collect();
        let Some((responded_at, _)) = initializes
            .iter()
            .find_map(|initialize| run.response_to(initialize))
        else {
            continue;
        };
        if run.scenario == Scenario::UnknownRevision {
            continue;
        }
        for (number, head, _) in run
            .http_requests()
            .filter(|(number, ..)| *number > responded_at)
        {
            let is_other_path = !head.start_line.ends_with(" /mcp");
            // Requests for a new session, and requests in flight at that time, lack the id.
            let starts_session = initializes
                .iter()
                .any(|initialize| initialize.number == number);
            if is_other_path || starts_session || run.is_version_probe(number) {
                continue;
            }
            match head.header("mcp-session-id") {
                Some(id) if id.starts_with("turnbuckle-session-") => evidence.push(number),
                Some(id) => {
                    let observed = format!("the session id is `{id}`");
                    return Err(NotPassed::violation(observed, [responded_at, number]));
                }
                None => {
                    let observed = "`Mcp-Session-Id` is missing";
                    return Err(NotPassed::violation(observed, [responded_at, number]));
                }
            }
        }
    }
    Evidence::from_entries(evidence.into_iter().take(3))
}

fn restarted(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::LostSession)?;
    let rejected = run.http_requests().find(|(number, head, _)| {
        head.header("mcp-session-id") == Some("turnbuckle-session-1")
            && run.entries.iter().any(|(_, entry)| {
                let is_404 = entry
                    .head
                    .as_ref()
                    .is_some_and(|head| head.start_line == "404");
                is_404 && entry.response_to == Some(*number)
            })
    });
    let Some((rejected, ..)) = rejected else {
        return Err(NotPassed::not_tested("the client used no session"));
    };
    let again = run
        .requests_for("initialize")
        .find(|initialize| initialize.number > rejected);
    match again {
        Some(initialize) if initialize.header("mcp-session-id").is_none() => {
            Evidence::from_entries([rejected, initialize.number])
        }
        Some(initialize) => {
            let observed = "the new `initialize` has the id of the lost session";
            Err(NotPassed::violation(
                observed,
                [rejected, initialize.number],
            ))
        }
        None => Err(NotPassed::violation(
            "the client does not start a new session",
            [rejected],
        )),
    }
}

fn deleted(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::Default)?;
    let deleted = run
        .http_requests()
        .find(|(_, head, _)| head.start_line == "DELETE /mcp");
    let last = run.http_requests().last();
    match (deleted, &run.end) {
        (Some((number, ..)), _) => Evidence::from_entries([number]),
        (None, ScenarioEnd::Finished | ScenarioEnd::Exited(_)) => {
            let last = last.map(|(number, ..)| number);
            Err(NotPassed::violation(
                "the client disconnected without DELETE",
                last,
            ))
        }
        (None, _) => Err(NotPassed::not_tested("the client did not exit on its own")),
    }
}
