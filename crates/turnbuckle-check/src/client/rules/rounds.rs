//! Results that want input first: the request is made again, with answers.

use serde_json::Value;

use crate::client::Scene;
use crate::client::take::{Said, Take, Takes};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.rounds.state", Area::Input, &["mrtr.client.echo-state", "mrtr.client.state-opaque"])
        .says("The state that a server gives comes back as it is.")
        .cure("Send `requestState` back byte for byte with the request that you make again.")
        .watch(&[Scene::Asking], state),
    Rule::client("client.rounds.no-state", Area::Input, &["mrtr.client.no-state"])
        .says("Where the server gives no state, none comes back.")
        .cure("Take `requestState` from the last result only, and leave it out if there was none.")
        .watch(&[Scene::Asking], no_state),
    Rule::client("client.rounds.new-id", Area::Input, &["mrtr.client.new-id"])
        .says("A request that is made again has an id of its own.")
        .cure("Give every round another id.")
        .watch(&[Scene::Asking], new_id),
    Rule::client("client.rounds.same-params", Area::Input, &["mrtr.client.same-params"])
        .says("A request that is made again has the parameters that it had.")
        .cure("Repeat the parameters of the first round, and add only `inputResponses` and `requestState`.")
        .watch(&[Scene::Asking], same_params),
    Rule::client("client.rounds.answers", Area::Input, &["mrtr.client.construct", "mrtr.input-response.shape"])
        .says("Every question is answered under its key, with the bare result.")
        .cure("Put the result of each of `inputRequests` into `inputResponses`, under the same key and without an envelope.")
        .watch(&[Scene::Asking], answers),
    Rule::client("client.rounds.scope", Area::Input, &["mrtr.client.scope"])
        .says("Answers and state belong to one request alone.")
        .cure("Leave `inputResponses` and `requestState` out of all other requests.")
        .watch(&[Scene::Asking], scope),
];

/// A request that wanted input, what was wanted, and the request that was made again.
struct Round<'a> {
    first: &'a Said,
    result: Value,
    answered: usize,
    again: &'a Said,
}

impl Round<'_> {
    fn entries(&self) -> [usize; 3] {
        [self.first.number, self.answered, self.again.number]
    }
}

/// Returns all rounds that the client went along with.
fn rounds(takes: &Takes) -> Result<Vec<Round<'_>>, Unmet> {
    let take = takes.of(Scene::Asking)?;
    let calls: Vec<_> = take.asked("tools/call").collect();
    if calls.is_empty() {
        return Err(Unmet::not_tested("the client called no tool"));
    }
    let rounds: Vec<_> = calls
        .iter()
        .filter_map(|first| round(take, &calls, first))
        .collect();
    match rounds.is_empty() {
        true => Err(Unmet::not_tested(
            "the client does not go along when a result wants input first",
        )),
        false => Ok(rounds),
    }
}

fn round<'a>(take: &Take, calls: &[&'a Said], first: &'a Said) -> Option<Round<'a>> {
    let (answered, message) = take.answer(first)?;
    let result = message["result"].clone();
    if result["resultType"] != "input_required" {
        return None;
    }
    let answers = |said: &&&Said| {
        let params = said.params();
        said.number > answered
            && params["name"] == first.params()["name"]
            && (params.get("inputResponses").is_some() || params.get("requestState").is_some())
    };
    let again = calls.iter().find(answers)?;
    Some(Round {
        first,
        result,
        answered,
        again,
    })
}

/// Judges each round; `wrong` says what is wrong with one, and nothing of one that it is not about.
fn each(
    takes: &Takes,
    none: &str,
    wrong: impl Fn(&Round<'_>) -> Option<Option<String>>,
) -> Outcome {
    let mut seen = Vec::new();
    for round in rounds(takes)? {
        match wrong(&round) {
            Some(Some(what)) => return Err(Unmet::broken(what, round.entries())),
            Some(None) => seen.extend(round.entries()),
            None => {}
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested(none)),
        false => Seen::at(seen),
    }
}

fn state(takes: &Takes) -> Outcome {
    each(takes, "no state was given", |round| {
        let given = round.result.get("requestState")?;
        let back = &round.again.params()["requestState"];
        Some((back != given).then(|| format!("the state {given} came back as {back}")))
    })
}

fn no_state(takes: &Takes) -> Outcome {
    let none = "the client could not be asked a second time: it declares no elicitation";
    each(takes, none, |round| {
        if round.result.get("requestState").is_some() {
            return None;
        }
        let back = round.again.params().get("requestState");
        Some(back.map(|back| format!("the state {back}, which nobody gave")))
    })
}

fn new_id(takes: &Takes) -> Outcome {
    each(takes, "", |round| {
        let same = round.first.id() == round.again.id();
        Some(same.then(|| format!("both have the id {}", round.again.message["id"])))
    })
}

fn same_params(takes: &Takes) -> Outcome {
    let bare = |said: &Said| {
        let mut params = said.params().clone();
        if let Some(params) = params.as_object_mut() {
            for added in ["inputResponses", "requestState", "_meta"] {
                params.remove(added);
            }
        }
        params
    };
    each(takes, "", |round| {
        let (first, again) = (bare(round.first), bare(round.again));
        Some((first != again).then(|| format!("{first} became {again}")))
    })
}

fn answers(takes: &Takes) -> Outcome {
    each(
        takes,
        "the client declares nothing that it could be asked",
        |round| {
            let questions = round.result.get("inputRequests")?.as_object()?;
            let answers = &round.again.params()["inputResponses"];
            for key in questions.keys() {
                let answer = &answers[key];
                if !answer.is_object() {
                    return Some(Some(format!("`{key}` is not answered")));
                }
                if answer.get("jsonrpc").is_some() || answer.get("result").is_some() {
                    return Some(Some(format!("the answer to `{key}` has an envelope")));
                }
            }
            let more = answers
                .as_object()?
                .keys()
                .find(|key| !questions.contains_key(*key));
            Some(more.map(|key| format!("nobody asked for `{key}`")))
        },
    )
}

fn scope(takes: &Takes) -> Outcome {
    let rounds = rounds(takes)?;
    let belongs = |said: &Said| rounds.iter().any(|round| round.again.number == said.number);
    for said in takes.requests() {
        let params = said.params();
        let carries =
            params.get("inputResponses").is_some() || params.get("requestState").is_some();
        if carries && !belongs(said) {
            let what = "answers or state with a request that wanted none";
            return Err(Unmet::broken(what, [said.number]));
        }
    }
    Seen::at(rounds.iter().map(|round| round.again.number))
}
