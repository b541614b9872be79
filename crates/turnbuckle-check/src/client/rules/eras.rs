//! How a client finds out which era a server is of.

use crate::client::Scene;
use crate::client::take::{Take, Takes};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.eras.stays-modern-on-lines", Area::Eras, &["versioning.stdio.probe-modern-error"])
        .says("A server that refuses a version as 2026-07-28 does is not asked for a handshake.")
        .cure("When the error is -32022, choose a version that it lists, or say that there is none; do not send `initialize`.")
        .on(On::Lines)
        .watch(&[Scene::Strange], stays_modern),
    Rule::client("client.eras.stays-modern-on-http", Area::Eras, &[
        "versioning.http.modern-error-stay",
        "versioning.http.inspect-400",
    ])
    .says("A server that refuses a version as 2026-07-28 does is not asked for a handshake.")
    .cure("Read the body of a 400: when the error is -32022, choose a version that it lists, or say that there is none.")
    .on(On::Http)
    .watch(&[Scene::Strange], stays_modern),
    Rule::client("client.eras.any-code-on-lines", Area::Eras, &["versioning.stdio.no-single-code"])
        .says("That a server knows only the handshake shows by any error, not by one code.")
        .cure("Try `initialize` after every error that is not one of 2026-07-28, whatever its code.")
        .on(On::Lines)
        .watch(&[Scene::OnlyHandshake, Scene::OnlyHandshakeOddly], any_code),
    Rule::client("client.eras.falls-back-on-http", Area::Eras, &["versioning.http.fallback"])
        .says("That a server knows only the handshake shows by any refusal that is not one of 2026-07-28.")
        .cure("Try `initialize` after every 4xx whose body is no error of 2026-07-28.")
        .on(On::Http)
        .watch(&[Scene::OnlyHandshake, Scene::OnlyHandshakeOddly], any_code),
];

fn stays_modern(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Strange)?;
    let refused = take
        .requests()
        .find(|said| said.method() != Some("initialize"));
    let Some(refused) = refused else {
        return Err(Unmet::not_tested(
            "the client asked nothing as 2026-07-28 does",
        ));
    };
    let answer = take.answer(refused).map(|(number, _)| number);
    let shown = [Some(refused.number), answer].into_iter().flatten();
    match take.asked("initialize").next() {
        None => Seen::at(shown),
        Some(hello) => {
            let what = "`initialize` after the error -32022";
            Err(Unmet::broken(what, shown.chain([hello.number])))
        }
    }
}

fn any_code(takes: &Takes) -> Outcome {
    let (usual, odd) = (
        takes.of(Scene::OnlyHandshake)?,
        takes.of(Scene::OnlyHandshakeOddly)?,
    );
    let falls_back = |take: &Take| take.asked("initialize").next().map(|said| said.number);
    match (falls_back(usual), falls_back(odd)) {
        (usually, Some(oddly)) => Seen::at(usually.into_iter().chain([oddly])),
        (None, None) => {
            let why = "the client does not turn to servers with a handshake";
            Err(Unmet::not_applicable(why))
        }
        (Some(_), None) => {
            let asked = odd.requests().map(|said| said.number).take(1);
            let answered = odd.requests().next().and_then(|said| odd.answer(said));
            let shown: Vec<_> = asked.chain(answered.map(|(number, _)| number)).collect();
            let what = "no `initialize` after the error -32000, but after -32601";
            Err(Unmet::broken(what, shown))
        }
    }
}
