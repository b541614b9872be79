//! The lists of a server, and samples of its resources and prompts.

use std::{collections::HashSet, ops::Deref};

use serde_json::{Map, Value, json};

use super::safe_calls::{self, SafeCall};
use crate::{
    engine::{check_context::CheckContext, outcome::NotPassed},
    session::{ProbeResponse, Session},
};

/// The maximum number of pages to read.
const MAX_PAGES: usize = 20;

/// The lists of a server. A failure of one list does not affect the others.
#[derive(Debug, Default)]
pub(crate) struct ServerInventory {
    pub(crate) tools: ListedItems,
    pub(crate) resources: ListedItems,
    pub(crate) templates: ListedItems,
    pub(crate) prompts: ListedItems,
    /// The tool calls that may be made.
    pub(crate) calls: Vec<SafeCall>,
    skipped: Vec<String>,
}

/// The items of one list; empty if reading failed.
#[derive(Debug, Default)]
pub(crate) struct ListedItems {
    items: Vec<Value>,
    /// The responses with the pages.
    pub(crate) pages: Vec<ProbeResponse>,
    /// The list was read to its end.
    pub(crate) is_complete: bool,
    /// The reason why a further page could not be read.
    pub(crate) page_failure: Option<NotPassed>,
    failure: Option<NotPassed>,
}

impl ServerInventory {
    /// Reads all lists.
    pub(crate) async fn read(ctx: &CheckContext) -> Result<Self, NotPassed> {
        let session = ctx.session().await?;
        let mut found = Self {
            tools: ListedItems::read(session, "tools", "tools/list").await,
            resources: ListedItems::read(session, "resources", "resources/list").await,
            templates: ListedItems::read(session, "resourceTemplates", "resources/templates/list")
                .await,
            prompts: ListedItems::read(session, "prompts", "prompts/list").await,
            calls: Vec::new(),
            skipped: Vec::new(),
        };
        (found.calls, found.skipped) = safe_calls::select_safe(ctx, &found.tools).await;
        Ok(found)
    }

    /// Returns what was skipped and why, one sentence each.
    pub(crate) fn skipped(&self) -> &[String] {
        &self.skipped
    }
}

impl ListedItems {
    /// Reads a list, page by page.
    pub(crate) async fn read(session: &Session, field: &str, method: &str) -> Self {
        let mut list = Self::default();
        let failure = list.fill(session, field, method).await.err();
        if list.pages.is_empty() {
            list.failure = failure;
        } else {
            list.page_failure = failure;
        }
        list
    }

    /// Returns the items, or the reason why reading failed.
    pub(crate) fn items(&self) -> Result<&[Value], NotPassed> {
        match &self.failure {
            Some(failure) => Err(failure.clone().into_not_tested()),
            None => Ok(&self.items),
        }
    }

    /// Returns the transcript entries of the pages.
    pub(crate) fn entries(&self) -> impl Iterator<Item = usize> + '_ {
        self.pages.iter().flat_map(ProbeResponse::entries)
    }

    async fn fill(
        &mut self,
        session: &Session,
        field: &str,
        method: &str,
    ) -> Result<(), NotPassed> {
        let capability = method.split('/').next().unwrap_or(method);
        if session.capabilities().get(capability).is_none() {
            let why = format!("the server does not declare the capability `{capability}`");
            return Err(NotPassed::not_applicable(why));
        }
        let mut cursors = HashSet::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let response = session.request(method, params).await?;
            let result = response.result()?;
            let Some(items) = result[field].as_array() else {
                return Err(response.violation(format!("a result without the array `{field}`")));
            };
            self.items.extend(items.iter().cloned());
            let next = result["nextCursor"].as_str().map(str::to_owned);
            self.pages.push(response);
            match next {
                // A repeated cursor would loop without end.
                Some(cursor) if cursors.insert(cursor.clone()) => {
                    params = json!({ "cursor": cursor });
                }
                Some(_) => return Ok(()),
                None => {
                    self.is_complete = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Deref for ListedItems {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

impl<'a> IntoIterator for &'a ListedItems {
    type Item = &'a Value;
    type IntoIter = std::slice::Iter<'a, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

/// The maximum number of items to read from a list.
const MAX_SAMPLES: usize = 10;
/// The maximum size of a resource to read, as far as the server declares sizes.
const MAX_RESOURCE_BYTES: u64 = 1024 * 1024;

/// A listed item that was requested.
#[derive(Debug)]
pub(crate) struct ReadSample {
    /// The item in the list.
    pub(crate) listed: Value,
    /// The response.
    pub(crate) response: Result<ProbeResponse, NotPassed>,
}

impl ReadSample {
    /// Returns the response and its result, if the result is complete.
    pub(crate) fn result(&self) -> Option<(&ProbeResponse, &Value)> {
        let response = self.response.as_ref().ok()?;
        let result = response.value.get("result")?;
        is_complete(result).then_some((response, result))
    }
}

/// Returns whether a result is final, not `input_required` or a task.
pub(crate) fn is_complete(result: &Value) -> bool {
    matches!(result["resultType"].as_str(), None | Some("complete"))
}

/// Reads the first resources of a list.
pub(crate) async fn read_resources(session: &Session, list: &[Value]) -> Vec<ReadSample> {
    let small = |listed: &&Value| {
        listed["size"]
            .as_u64()
            .is_none_or(|size| size <= MAX_RESOURCE_BYTES)
    };
    let mut read = Vec::new();
    for listed in list.iter().filter(small).take(MAX_SAMPLES) {
        let params = json!({ "uri": listed["uri"] });
        read.push(ReadSample {
            listed: listed.clone(),
            response: session.request("resources/read", params).await,
        });
    }
    read
}

/// Gets the first prompts of a list, with a text for every required argument.
pub(crate) async fn get_prompts(session: &Session, list: &[Value]) -> Vec<ReadSample> {
    let mut read = Vec::new();
    for listed in list.iter().take(MAX_SAMPLES) {
        let arguments: Map<_, _> = required(listed)
            .map(|name| (name.to_owned(), json!("check")))
            .collect();
        let mut params = json!({ "name": listed["name"] });
        if !arguments.is_empty() {
            params["arguments"] = arguments.into();
        }
        read.push(ReadSample {
            listed: listed.clone(),
            response: session.request("prompts/get", params).await,
        });
    }
    read
}

/// Returns the names of the required arguments of a prompt.
pub(crate) fn required(prompt: &Value) -> impl Iterator<Item = &str> {
    let arguments = prompt["arguments"].as_array().into_iter().flatten();
    arguments
        .filter(|argument| argument["required"] == true)
        .filter_map(|argument| argument["name"].as_str())
}
