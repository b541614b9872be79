//! From the command line to what the checker may do.

use turnbuckle_check::rule::{Role, Rule};
use turnbuckle_check::{Options, catalogue};
use turnbuckle_protocol::revision::Revision;

use super::{Check, calls};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::target::Target;

impl Check {
    /// Makes sure that every name of a rule means something.
    pub(super) fn ensure_rules(&self) -> Result {
        for name in self.only.iter().chain(&self.skip) {
            catalogue::ensure(name).map_err(|unknown| {
                Failure::not_asked(unknown.to_string())
                    .hint("list them with `turnbuckle check --list`")
            })?;
        }
        // A check of nothing would find nothing, and say that all is well.
        let (role, whom) = match self.client {
            true => (Role::Client, "clients"),
            false => (Role::Server, "servers"),
        };
        let options = self.choice();
        let binds = |rule: &Rule| options.revisions.iter().any(|&date| rule.binds_in(date));
        let mut rules = catalogue::all().filter(|rule| self.list || rule.role == role);
        if rules.any(|rule| options.wants(rule) && binds(rule)) {
            return Ok(());
        }
        let message = format!("no rule for {whom} is left to look at");
        Err(Failure::not_asked(message).hint("list them with `turnbuckle check --list`"))
    }

    pub(super) async fn options(&self, target: &Target, context: &Context) -> Result<Options> {
        let mut options = self.choice();
        options.calls = calls::prepare(&self.calls, target, context).await?;
        options.allow_writes = self.allow_writes;
        Ok(watched(options, context))
    }

    pub(super) fn options_for_client(&self, context: &Context) -> Options {
        let mut options = watched(self.choice(), context);
        if let Some(timeout) = context.options.timeout {
            options.longest = timeout;
            options.quiet = options.quiet.max(timeout / 4);
        }
        options
    }

    /// Returns which rules are looked at, in which revisions.
    pub(super) fn choice(&self) -> Options {
        let mut options = Options::default();
        if !self.revisions.is_empty() {
            options.revisions.clone_from(&self.revisions);
            options.revisions.sort();
            options.revisions.dedup();
        }
        options.only.clone_from(&self.only);
        options.skip.clone_from(&self.skip);
        options
    }
}

/// Takes the time that the user gave, and shows how far the check has come.
fn watched(mut options: Options, context: &Context) -> Options {
    if let Some(timeout) = context.options.timeout {
        options.patience = timeout;
    }
    let voice = context.voice.clone();
    options.on_progress(move |progress| voice.checking(progress))
}

pub(super) fn revision(text: &str) -> std::result::Result<Revision, String> {
    text.parse().map_err(|_| {
        let known = Revision::ALL.map(Revision::as_str);
        format!("there is {}", known.join(", "))
    })
}
