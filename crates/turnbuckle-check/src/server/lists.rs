//! What the lists of tools, resources and prompts have in common.

use std::collections::BTreeSet;

use serde_json::json;

use crate::discovery::List;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::session::{Answer, Session};
use crate::visit::Visit;

/// A list that a server may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// The capability that says so.
    pub(super) capability: &'static str,
    /// How it is asked for.
    pub(super) method: &'static str,
    /// Where the items are in a result.
    pub(super) field: &'static str,
    /// What tells one item from another.
    pub(super) key: &'static str,
}

pub(super) const TOOLS: Kind = Kind {
    capability: "tools",
    method: "tools/list",
    field: "tools",
    key: "name",
};

pub(super) const RESOURCES: Kind = Kind {
    capability: "resources",
    method: "resources/list",
    field: "resources",
    key: "uri",
};

pub(super) const TEMPLATES: Kind = Kind {
    capability: "resources",
    method: "resources/templates/list",
    field: "resourceTemplates",
    key: "uriTemplate",
};

pub(super) const PROMPTS: Kind = Kind {
    capability: "prompts",
    method: "prompts/list",
    field: "prompts",
    key: "name",
};

/// All of them.
pub(super) const ALL: [Kind; 4] = [TOOLS, RESOURCES, TEMPLATES, PROMPTS];

impl Kind {
    /// Reads it.
    pub(super) async fn read(self, session: &Session) -> Result<List, Unmet> {
        let list = List::read(session, self.field, self.method).await;
        list.items()?;
        Ok(list)
    }

    /// Returns what tells its items apart.
    pub(super) fn keys(self, list: &List) -> impl Iterator<Item = &str> {
        list.iter().filter_map(move |item| item[self.key].as_str())
    }
}

/// Whoever declares it answers with it.
pub(super) async fn is_answered(visit: &Visit, kind: Kind) -> Outcome {
    visit.capability(&format!("/{}", kind.capability)).await?;
    let answer = visit.session().await?.ask(kind.method, json!({})).await?;
    answer.result()?;
    answer.seen()
}

/// Whoever has something on it declares it.
pub(super) async fn is_declared(visit: &Visit, kind: Kind) -> Outcome {
    let session = visit.session().await?;
    let opening = session.opening.iter();
    let opening: Vec<_> = opening.flat_map(Answer::entries).collect();
    let capabilities = session.capabilities();
    if !capabilities.is_object() {
        return Err(Unmet::not_tested(
            "the server does not say what it declares",
        ));
    }
    if capabilities.get(kind.capability).is_some() {
        return Seen::at(opening);
    }
    // That an unknown method gets no answer is for another rule to say.
    let answer = session
        .ask(kind.method, json!({}))
        .await
        .map_err(Unmet::aside)?;
    let count = answer.value["result"][kind.field]
        .as_array()
        .map_or(0, Vec::len);
    match count {
        0 => Err(Unmet::not_applicable(format!(
            "the server has no {}",
            kind.field
        ))),
        count => Err(Unmet::broken(
            format!(
                "`{}` gives {count} of them, but `{}` is not declared",
                kind.method, kind.capability
            ),
            opening.into_iter().chain(answer.entries()),
        )),
    }
}

/// It is the same for every connection, whatever was asked before.
pub(super) async fn is_same_for_all(visit: &Visit, kind: Kind) -> Outcome {
    visit.capability(&format!("/{}", kind.capability)).await?;
    let used = visit.session().await?;
    let before = kind.read(used).await?;
    let fresh = visit.fresh().await?;
    let anew = kind.read(&fresh).await?;
    // A list may change over time: only what is there before and after, or neither, tells something.
    let after = kind.read(used).await?;
    let [before, new, later] =
        [&before, &anew, &after].map(|list| kind.keys(list).collect::<BTreeSet<_>>());
    let entries = anew.entries().chain(after.entries());
    if before != later {
        return Err(Unmet::not_tested("the list changed meanwhile"));
    }
    let Some(odd) = before.symmetric_difference(&new).next() else {
        return Seen::at(entries);
    };
    let place = match new.contains(odd) {
        true => "on a new connection only",
        false => "on a connection with earlier requests only",
    };
    Err(Unmet::broken(format!("`{odd}` is listed {place}"), entries))
}
