//! What a caller must be allowed to do, for each thing that is offered.
//!
//! Lists show it to everyone who may see it: a client that learns what it lacks can ask its user for more.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::json;
use turnbuckle_protocol::{Principal, RpcError, guard::Refusal};

use crate::{Prompt, Resource, ResourceTemplate, Tool, http::Keeper, lifecycle::Caller};

/// The scopes that something takes, all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    scopes: Option<Arc<BTreeSet<String>>>,
}

/// Why a request is not answered with a result.
#[derive(Debug)]
pub(crate) enum Denied {
    /// It cannot be.
    Error(RpcError),
    /// Its sender may not do that.
    Lacking(Box<Lacking>),
}

/// What a caller lacks: the error, and what HTTP says with it.
#[derive(Debug)]
pub(crate) struct Lacking {
    pub(crate) error: RpcError,
    pub(crate) refusal: Refusal,
}

impl Needs {
    /// Of nothing.
    pub(crate) const NOTHING: Self = Self { scopes: None };

    pub(crate) fn is_nothing(&self) -> bool {
        self.scopes.is_none()
    }

    /// Checks that a caller may do it.
    pub(crate) fn check(&self, caller: &Caller) -> Result<(), Denied> {
        match &self.scopes {
            None => Ok(()),
            Some(needed) => check(needed, caller),
        }
    }

    /// Says whether somebody may do it who is known only by name, because no request is at hand.
    pub(crate) fn allow(&self, principal: Option<&Principal>) -> bool {
        match (&self.scopes, principal) {
            (Some(needed), Some(who)) => needed.is_subset(&who.scopes),
            // Whoever watches without a name was let in as the user of this machine.
            _ => true,
        }
    }

    /// Takes both what this takes and what others do.
    pub(crate) fn and(&mut self, other: &Self) {
        match &other.scopes {
            Some(scopes) if self.scopes.is_none() => self.scopes = Some(scopes.clone()),
            Some(scopes) => self.add(scopes.iter()),
            None => {}
        }
    }

    fn add(&mut self, scopes: impl IntoIterator<Item = impl AsRef<str>>) {
        let all = Arc::make_mut(self.scopes.get_or_insert_default());
        for scope in scopes {
            let scope = scope.as_ref();
            assert!(
                is_scope(scope),
                "{scope:?} is no scope: it has visible ASCII characters, and no space, `\"` or `\\`"
            );
            all.insert(scope.to_owned());
        }
    }
}

/// What RFC 6749 (section 3.3) calls a `scope-token`.
fn is_scope(text: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !text.is_empty() && text.bytes().all(is_good)
}

#[cold]
fn check(needed: &BTreeSet<String>, caller: &Caller) -> Result<(), Denied> {
    let refusal = match caller.principal.as_deref() {
        Some(who) if needed.is_subset(&who.scopes) => return Ok(()),
        Some(who) => match caller.extensions.get::<Keeper>() {
            Some(keeper) => keeper.guard().lacking(who, needed),
            None => Refusal::new(403, format!("this takes the scopes {}", words(needed))),
        },
        // On a pipe without a name it is the user of this machine, who could run the server just as well.
        None if caller.headers.is_none() => return Ok(()),
        None => Refusal::new(
            403,
            format!(
                "this takes the scopes {}, and nobody verifies who is asking: the server needs a guard",
                words(needed)
            ),
        ),
    };
    let error =
        RpcError::invalid_request(&*refusal.message).with_data(json!({ "requiredScopes": needed }));
    Err(Denied::Lacking(Box::new(Lacking { error, refusal })))
}

fn words(scopes: &BTreeSet<String>) -> String {
    let quoted: Vec<_> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
    quoted.join(", ")
}

impl From<RpcError> for Denied {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}

impl Tool {
    /// Lets only those call the tool who have all of these scopes. Said twice, both count.
    ///
    /// On HTTP, a call without them is answered with 403 and what the [guard](crate::http::Http::guard) says is lacking,
    /// before anything runs; so is every call if nobody says who is asking. On stdio and other pipes the scopes count
    /// if the [caller has a name](crate::lines::Lines::principal); without one it is the user of this machine, who may
    /// do everything. To hide the tool as well, use [`visible_to`](Self::visible_to).
    ///
    /// ```
    /// use turnbuckle_server::{Tool, ToolError};
    ///
    /// let restart = Tool::new("restart", async || Ok::<_, ToolError>("restarted".to_owned()))
    ///     .scopes(["printers:operate"]);
    /// ```
    ///
    /// # Panics
    ///
    /// If one of them is no scope: empty, or with a space, a quotation mark, a backslash or anything but ASCII.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.needs.add(scopes);
        self
    }
}

impl Prompt {
    /// Lets only those get the prompt, and complete its arguments, who have all of these scopes, as [`Tool::scopes`]
    /// does with tools.
    ///
    /// # Panics
    ///
    /// As [`Tool::scopes`].
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.needs.add(scopes);
        self
    }
}

impl Resource {
    /// Lets only those read the resource, or subscribe to it, who have all of these scopes, as [`Tool::scopes`] does
    /// with tools.
    ///
    /// # Panics
    ///
    /// As [`Tool::scopes`].
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.needs.add(scopes);
        self
    }
}

impl ResourceTemplate {
    /// Lets only those read these resources, subscribe to them or complete their variables, who have all of these
    /// scopes, as [`Tool::scopes`] does with tools.
    ///
    /// # Panics
    ///
    /// As [`Tool::scopes`].
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.needs.add(scopes);
        self
    }
}
