//! What a server has, found out by its lists; and which of its tools may be called.

mod arguments;
mod calls;
mod reads;

use std::{collections::HashSet, ops::Deref};

use serde_json::{Value, json};

use crate::outcome::Unmet;
use crate::session::{Answer, Session};
use crate::visit::Visit;

pub(crate) use self::calls::Call;
pub(crate) use self::reads::{Read, get_prompts, is_complete, read_resources, required};

/// How many pages of a list are read.
const PAGES: usize = 20;

/// What a server has. What is wrong with one list leaves the others alone.
#[derive(Debug, Default)]
pub(crate) struct Discovered {
    pub(crate) tools: List,
    pub(crate) resources: List,
    pub(crate) templates: List,
    pub(crate) prompts: List,
    /// The calls of tools that may be made.
    pub(crate) calls: Vec<Call>,
    left_out: Vec<String>,
}

/// A list of a server's: its items, which are none if there was trouble.
#[derive(Debug, Default)]
pub(crate) struct List {
    items: Vec<Value>,
    /// The answers that it came in.
    pub(crate) pages: Vec<Answer>,
    /// Whether all of it was read.
    pub(crate) whole: bool,
    /// Why no page came after the last one, although it named one.
    pub(crate) broken_off: Option<Unmet>,
    trouble: Option<Unmet>,
}

impl Discovered {
    /// Reads all lists.
    pub(crate) async fn of(visit: &Visit) -> Result<Self, Unmet> {
        let session = visit.session().await?;
        let mut found = Self {
            tools: List::read(session, "tools", "tools/list").await,
            resources: List::read(session, "resources", "resources/list").await,
            templates: List::read(session, "resourceTemplates", "resources/templates/list").await,
            prompts: List::read(session, "prompts", "prompts/list").await,
            calls: Vec::new(),
            left_out: Vec::new(),
        };
        (found.calls, found.left_out) = calls::choose(visit, &found.tools).await;
        Ok(found)
    }

    /// Says what was left out, and why; a sentence each.
    pub(crate) fn left_out(&self) -> &[String] {
        &self.left_out
    }
}

impl List {
    /// Reads a list, page by page.
    pub(crate) async fn read(session: &Session, field: &str, method: &str) -> Self {
        let mut list = Self::default();
        let trouble = list.fill(session, field, method).await.err();
        match list.pages.is_empty() {
            true => list.trouble = trouble,
            false => list.broken_off = trouble,
        }
        list
    }

    /// Returns the items; if there was trouble, why there are none.
    pub(crate) fn items(&self) -> Result<&[Value], Unmet> {
        match &self.trouble {
            Some(trouble) => Err(trouble.clone().aside()),
            None => Ok(&self.items),
        }
    }

    /// Returns the entries of the tape that show it.
    pub(crate) fn entries(&self) -> impl Iterator<Item = usize> + '_ {
        self.pages.iter().flat_map(Answer::entries)
    }

    async fn fill(&mut self, session: &Session, field: &str, method: &str) -> Result<(), Unmet> {
        let capability = method.split('/').next().unwrap_or(method);
        if session.capabilities().get(capability).is_none() {
            let why = format!("the server does not declare the capability `{capability}`");
            return Err(Unmet::not_applicable(why));
        }
        let mut cursors = HashSet::new();
        let mut params = json!({});
        for _ in 0..PAGES {
            let answer = session.ask(method, params).await?;
            let result = answer.result()?;
            let Some(items) = result[field].as_array() else {
                return Err(answer.broken(format!("a result without the list `{field}`")));
            };
            self.items.extend(items.iter().cloned());
            let next = result["nextCursor"].as_str().map(str::to_owned);
            self.pages.push(answer);
            match next {
                // Whoever hands out the same cursor again would never come to an end.
                Some(cursor) if cursors.insert(cursor.clone()) => {
                    params = json!({ "cursor": cursor });
                }
                Some(_) => return Ok(()),
                None => {
                    self.whole = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

impl<'a> IntoIterator for &'a List {
    type Item = &'a Value;
    type IntoIter = std::slice::Iter<'a, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}
