//! Sessions on HTTP.

use crate::client::Scene;
use crate::client::take::{Ending, Takes};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.sessions.id-sent", Area::Sessions, &["http.session.client-sends"])
        .says("Every request of a session names it.")
        .cure("Send the `Mcp-Session-Id` that came with the answer to `initialize` with every later POST, GET and DELETE.")
        .on(On::Http)
        .watch(&[], id_sent),
    Rule::client("client.sessions.restarted", Area::Sessions, &["http.session.client-restart"])
        .says("A client whose session is lost begins another.")
        .cure("When a request with a session id gets 404, send `initialize` without a session id.")
        .on(On::Http)
        .watch(&[Scene::Forgetful], restarted),
    Rule::client("client.sessions.deleted", Area::Sessions, &["http.session.delete"])
        .says("A client that needs a session no longer says so.")
        .cure("Send DELETE with the `Mcp-Session-Id` before you leave.")
        .on(On::Http)
        .watch(&[], deleted),
];

fn id_sent(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    for take in takes.all() {
        let hellos: Vec<_> = take.asked("initialize").collect();
        let Some((answered, _)) = hellos.iter().find_map(|hello| take.answer(hello)) else {
            continue;
        };
        if take.scene == Scene::Strange {
            continue;
        }
        for (number, head, _) in take.exchanges().filter(|(number, ..)| *number > answered) {
            let elsewhere = !head.line.ends_with(" /mcp");
            // A request for another session has no id, and so may have what crossed with it.
            let begins = hellos.iter().any(|hello| hello.number == number);
            if elsewhere || begins || take.probes(number) {
                continue;
            }
            match head.header("mcp-session-id") {
                Some(id) if id.starts_with("turnbuckle-session-") => seen.push(number),
                Some(id) => {
                    let what = format!("the session is named `{id}`");
                    return Err(Unmet::broken(what, [answered, number]));
                }
                None => {
                    let what = "`Mcp-Session-Id` is missing";
                    return Err(Unmet::broken(what, [answered, number]));
                }
            }
        }
    }
    Seen::at(seen.into_iter().take(3))
}

fn restarted(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Forgetful)?;
    let refused = take.exchanges().find(|(number, head, _)| {
        head.header("mcp-session-id") == Some("turnbuckle-session-1")
            && take.entries.iter().any(|(_, entry)| {
                let refuses = entry.head.as_ref().is_some_and(|head| head.line == "404");
                refuses && entry.answers == Some(*number)
            })
    });
    let Some((refused, ..)) = refused else {
        return Err(Unmet::not_tested("the client used no session"));
    };
    let again = take
        .asked("initialize")
        .find(|hello| hello.number > refused);
    match again {
        Some(hello) if hello.header("mcp-session-id").is_none() => {
            Seen::at([refused, hello.number])
        }
        Some(hello) => {
            let what = "the other `initialize` has the id of the lost session";
            Err(Unmet::broken(what, [refused, hello.number]))
        }
        None => Err(Unmet::broken(
            "the client begins no other session",
            [refused],
        )),
    }
}

fn deleted(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Plain)?;
    let deleted = take
        .exchanges()
        .find(|(_, head, _)| head.line == "DELETE /mcp");
    let last = take.exchanges().last();
    match (deleted, &take.ending) {
        (Some((number, ..)), _) => Seen::at([number]),
        (None, Ending::Finished | Ending::Exited(_)) => {
            let last = last.map(|(number, ..)| number);
            Err(Unmet::broken("the client left without DELETE", last))
        }
        (None, _) => Err(Unmet::not_tested("the client did not end by itself")),
    }
}
