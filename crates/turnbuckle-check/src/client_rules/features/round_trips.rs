//! Round trips: retries of `input_required` results.

use serde_json::Value;

use crate::{
    engine::outcome::{Evidence, NotPassed, ObservedViolation, Outcome},
    mock_server::{
        Scenario,
        scenario_run::{ClientMessage, ScenarioRun, ScenarioRuns},
    },
    rule::{Area, Rule},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.rounds.state", Area::Input, &["mrtr.client.echo-state", "mrtr.client.state-opaque"])
        .requirement("`requestState` is returned unchanged.")
        .hint("Send `requestState` back byte for byte with the retry.")
        .scenarios(&[Scenario::ServerRequests], state),
    Rule::client("client.rounds.no-state", Area::Input, &["mrtr.client.no-state"])
        .requirement("`requestState` is omitted if the result lacks it.")
        .hint("Use `requestState` of the last result only, and omit it if there was none.")
        .scenarios(&[Scenario::ServerRequests], no_state),
    Rule::client("client.rounds.new-id", Area::Input, &["mrtr.client.new-id"])
        .requirement("A retry has a new id.")
        .hint("Use a new id for every retry.")
        .scenarios(&[Scenario::ServerRequests], new_id),
    Rule::client("client.rounds.same-params", Area::Input, &["mrtr.client.same-params"])
        .requirement("A retry has the parameters of the original request.")
        .hint("Repeat the original parameters, and add only `inputResponses` and `requestState`.")
        .scenarios(&[Scenario::ServerRequests], same_params),
    Rule::client("client.rounds.answers", Area::Input, &["mrtr.client.construct", "mrtr.input-response.shape"])
        .requirement("`inputResponses` has a bare result for every key of `inputRequests`.")
        .hint("Put the result of each input request into `inputResponses`, under the same key and without an envelope.")
        .scenarios(&[Scenario::ServerRequests], responses),
    Rule::client("client.rounds.scope", Area::Input, &["mrtr.client.scope"])
        .requirement("`inputResponses` and `requestState` are sent with the retried request only.")
        .hint("Omit `inputResponses` and `requestState` from all other requests.")
        .scenarios(&[Scenario::ServerRequests], scope),
];

/// A request, its `input_required` result and the retry.
struct RoundTrip<'a> {
    first: &'a ClientMessage,
    result: Value,
    responded_at: usize,
    retry: &'a ClientMessage,
}

impl RoundTrip<'_> {
    fn entries(&self) -> [usize; 3] {
        [self.first.number, self.responded_at, self.retry.number]
    }
}

/// Returns all round trips.
fn round_trips(runs: &ScenarioRuns) -> Result<Vec<RoundTrip<'_>>, NotPassed> {
    let run = runs.get(Scenario::ServerRequests)?;
    let calls: Vec<_> = run.requests_for("tools/call").collect();
    if calls.is_empty() {
        return Err(NotPassed::not_tested("the client called no tool"));
    }
    let round_trips: Vec<_> = calls
        .iter()
        .filter_map(|first| round_trip(run, &calls, first))
        .collect();
    if round_trips.is_empty() {
        Err(NotPassed::not_tested(
            "the client does not retry `input_required` results",
        ))
    } else {
        Ok(round_trips)
    }
}

fn round_trip<'a>(
    run: &ScenarioRun,
    calls: &[&'a ClientMessage],
    first: &'a ClientMessage,
) -> Option<RoundTrip<'a>> {
    let (responded_at, message) = run.response_to(first)?;
    let result = message["result"].clone();
    if result["resultType"] != "input_required" {
        return None;
    }
    let responses = |message: &&&ClientMessage| {
        let params = message.params();
        message.number > responded_at
            && params["name"] == first.params()["name"]
            && (params.get("inputResponses").is_some() || params.get("requestState").is_some())
    };
    let retry = calls.iter().find(responses)?;
    Some(RoundTrip {
        first,
        result,
        responded_at,
        retry,
    })
}

/// Checks each round trip. `check` returns `None` if the rule does not apply to it, or the violation if there is one.
fn each<V: Into<ObservedViolation>>(
    runs: &ScenarioRuns,
    none: &str,
    check: impl Fn(&RoundTrip<'_>) -> Option<Option<V>>,
) -> Outcome {
    let mut evidence = Vec::new();
    for round_trip in round_trips(runs)? {
        match check(&round_trip) {
            Some(Some(violation)) => {
                return Err(violation.into().into_not_passed(round_trip.entries()));
            }
            Some(None) => evidence.extend(round_trip.entries()),
            None => {}
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(none))
    } else {
        Evidence::from_entries(evidence)
    }
}

fn state(runs: &ScenarioRuns) -> Outcome {
    each(runs, "no state was issued", |round_trip| {
        let given = round_trip.result.get("requestState")?;
        let back = &round_trip.retry.params()["requestState"];
        Some((back != given).then(|| format!("the state {given} was returned as {back}")))
    })
}

fn no_state(runs: &ScenarioRuns) -> Outcome {
    let none = "no second round trip was possible: the client does not declare elicitation";
    each(runs, none, |round_trip| {
        if round_trip.result.get("requestState").is_some() {
            return None;
        }
        let back = round_trip.retry.params().get("requestState");
        Some(back.map(|back| format!("the state {back} was not issued")))
    })
}

fn new_id(runs: &ScenarioRuns) -> Outcome {
    each(runs, "", |round_trip| {
        let same = round_trip.first.id() == round_trip.retry.id();
        Some(same.then(|| format!("both requests have the id {}", round_trip.retry.value["id"])))
    })
}

fn same_params(runs: &ScenarioRuns) -> Outcome {
    let original_params = |message: &ClientMessage| {
        let mut params = message.params().clone();
        if let Some(params) = params.as_object_mut() {
            for added in ["inputResponses", "requestState", "_meta"] {
                params.remove(added);
            }
        }
        params
    };
    each(runs, "", |round_trip| {
        let (first, retry) = (
            original_params(round_trip.first),
            original_params(round_trip.retry),
        );
        Some((first != retry).then(|| format!("{first} became {retry}")))
    })
}

fn responses(runs: &ScenarioRuns) -> Outcome {
    each(
        runs,
        "the client declares no capability for input requests",
        |round_trip| {
            let client_requests = round_trip.result.get("inputRequests")?.as_object()?;
            let responses = &round_trip.retry.params()["inputResponses"];
            for key in client_requests.keys() {
                let response = &responses[key];
                if !response.is_object() {
                    let observed = format!("`{key}` is missing in the input responses");
                    return Some(Some(("mrtr.client.construct", observed)));
                }
                if response.get("jsonrpc").is_some() || response.get("result").is_some() {
                    let observed = format!("the response for `{key}` has an envelope");
                    return Some(Some(("mrtr.input-response.shape", observed)));
                }
            }
            let more = responses
                .as_object()?
                .keys()
                .find(|key| !client_requests.contains_key(*key));
            Some(more.map(|key| {
                (
                    "mrtr.client.construct",
                    format!("`{key}` was not requested"),
                )
            }))
        },
    )
}

fn scope(runs: &ScenarioRuns) -> Outcome {
    let round_trips = round_trips(runs)?;
    let belongs = |message: &ClientMessage| {
        round_trips
            .iter()
            .any(|round_trip| round_trip.retry.number == message.number)
    };
    for message in runs.requests() {
        let params = message.params();
        let carries =
            params.get("inputResponses").is_some() || params.get("requestState").is_some();
        if carries && !belongs(message) {
            let observed = "input responses or state in an unrelated request";
            return Err(NotPassed::violation(observed, [message.number]));
        }
    }
    Evidence::from_entries(round_trips.iter().map(|round_trip| round_trip.retry.number))
}
