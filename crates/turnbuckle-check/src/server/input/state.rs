//! The state that a server leaves with its client.

use serde_json::Value;

use super::rounds::{first_retry, retry};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::session::Answer;
use crate::trials::Trial;
use crate::visit::Visit;

/// A state that no server has given.
const GARBAGE: &str = "check-made-up-state";

pub(super) async fn tampered(visit: &Visit) -> Outcome {
    let (trial, params) = first_retry(visit).await?;
    let Some(state) = params["requestState"].as_str().map(str::to_owned) else {
        return Err(Unmet::not_applicable(
            "the server leaves no state with its client",
        ));
    };
    let refused = refused(visit, trial, &params).await?;
    let mut seen: Vec<_> = refused.entries().collect();
    for changed in changes(&state) {
        let mut params = params.clone();
        params["requestState"] = changed.into();
        let answer = retry(visit, trial, params, true).await?;
        if is_done(&answer) {
            let what = "a state of which one character was changed is accepted";
            return Err(answer.broken(what));
        }
        seen.extend(answer.entries());
    }
    Seen::at(seen)
}

pub(super) async fn of_another_request(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    let (trial, params) = first_retry(visit).await?;
    if params["requestState"].is_null() {
        return Err(Unmet::not_applicable(
            "the server leaves no state with its client",
        ));
    }
    let others = trials
        .made
        .iter()
        .filter(|other| other.call.name != trial.call.name);
    let mut others = others.filter_map(|other| Some((other, other.first_retry()?)));
    let Some((other, mut theirs)) = others.next() else {
        return Err(trials.none("asks the client anything beside the one that does"));
    };
    refused(visit, other, &theirs).await?;
    theirs["requestState"] = params["requestState"].clone();
    let answer = retry(visit, other, theirs, true).await?;
    match is_done(&answer) {
        true => Err(answer.broken(format!(
            "the state of a call of `{}` is accepted for `{}`",
            trial.call.name, other.call.name
        ))),
        false => answer.seen(),
    }
}

/// Comes back with a state that is none, and returns how that is refused.
///
/// Where anything will do, the state decides nothing, and nothing needs to be protected.
async fn refused(visit: &Visit, trial: &Trial, params: &Value) -> Result<Answer, Unmet> {
    let mut made_up = params.clone();
    made_up["requestState"] = GARBAGE.into();
    let answer = retry(visit, trial, made_up, true).await?;
    match is_done(&answer) {
        true => Err(Unmet::not_tested(
            "the state decides nothing: any other does as well",
        )),
        false => Ok(answer),
    }
}

/// Says whether a call was done as if nothing were wrong.
fn is_done(answer: &Answer) -> bool {
    let result = &answer.value["result"];
    result.is_object()
        && result["resultType"] != "input_required"
        && result["isError"] != Value::Bool(true)
}

/// Returns the state with one character changed, at several places; the ends may be padding.
///
/// Never only from lower to upper case: where those are digits, they are the same ones.
fn changes(state: &str) -> Vec<String> {
    let characters: Vec<char> = state.chars().collect();
    let places = [1, 2, 3].map(|quarter| characters.len() * quarter / 4);
    let changed = |at: usize| {
        let mut characters = characters.clone();
        let character = characters.get_mut(at)?;
        *character = match *character {
            'A' => 'B',
            'a' => 'b',
            '0' => '1',
            digit if digit.is_ascii_digit() => '0',
            _ => 'A',
        };
        Some(characters.into_iter().collect())
    };
    places.into_iter().filter_map(changed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_state_differs_whatever_case_counts_for() {
        for state in ["aaaaaaaa", "AAAAAAAA", "00000000", "d41d8cd9", "ZzZzZzZz"] {
            let changed = changes(state);
            assert_eq!(changed.len(), 3);
            for changed in changed {
                assert!(!changed.eq_ignore_ascii_case(state), "{state} {changed}");
            }
        }
    }
}
