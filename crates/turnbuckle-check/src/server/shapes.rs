//! The shape of every message that the server sends, as its revision describes it.
//!
//! A flaw belongs to one rule, its [`Topic`]: what is wrong with a content block is told once, whatever result it is in.

mod gather;
mod heard;
mod topic;

use std::collections::HashMap;

use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, Rule};
use crate::shape::Flaw;
use crate::tape::Tape;
use crate::visit::Visit;

use self::topic::Topic;

pub(crate) use self::gather::Gathered;

pub(crate) const RULES: &[Rule] = &[
    rule(
        "shapes.envelope",
        &[
            "base.jsonrpc.conform",
            "base.jsonrpc.version-field",
            "base.request.id-type",
            "base.request.id-not-null",
            "base.request.method-string",
            "base.notification.method-string",
            "base.response.one-of",
            "base.batch.removed",
            "schema.message-valid",
        ],
    )
    .says("Every message is one of JSON-RPC 2.0: a request, a notification, a result or an error.")
    .cure("Build messages as basic/index#messages says: `jsonrpc` is \"2.0\", ids are strings or integers, and an answer has either `result` or `error`.")
    .look(|visit, tape| judge(visit, tape, Topic::Envelope)),
    rule(
        "shapes.errors",
        &[
            "base.error.code-message",
            "base.error.code-integer",
        ],
    )
    .says("Every error has an integer `code` and a string `message`.")
    .cure("Send errors as basic/index#error-responses says: `code` is an integer, `message` a string.")
    .look(|visit, tape| judge(visit, tape, Topic::Errors)),
    rule("shapes.initialize", &["lifecycle.init.server-response"])
        .says("The result of `initialize` has the version, the capabilities and who the server is.")
        .cure("Answer `initialize` as basic/lifecycle#initialization shows.")
        .look(|visit, tape| judge(visit, tape, Topic::Initialize)),
    rule("shapes.discover", &["versioning.discover.result"])
        .says("The result of `server/discover` has the supported versions and the capabilities.")
        .cure("Answer `server/discover` as server/discover shows.")
        .look(|visit, tape| judge(visit, tape, Topic::Discover)),
    rule("shapes.server-info", &["lifecycle.info.shape"])
        .says("The server is named by a string `name` and a string `version`.")
        .cure("Describe the server as schema#implementation says: `name` and `version` are strings, everything else may be left out.")
        .look(|visit, tape| judge(visit, tape, Topic::ServerInfo)),
    rule(
        "shapes.result-type",
        &[
            "base.result-type.present",
            "base.result-type.allowed-set",
        ],
    )
    .says("Every result says of which type it is, and it is one that there is.")
    .cure("Put `resultType` into every result, as basic/index#resulttype says: \"complete\" unless it asks for input.")
    .look(|visit, tape| judge(visit, tape, Topic::ResultType)),
    rule(
        "shapes.caching",
        &[
            "caching.hints.required",
            "caching.ttl.integer",
            "caching.ttl.non-negative",
            "caching.scope.value",
        ],
    )
    .says("Results that may be cached say for how long and for whom.")
    .cure("Put `ttlMs` (an integer of 0 or more) and `cacheScope` (\"public\" or \"private\") into the result, as server/utilities/caching#cacheable-results says.")
    .look(|visit, tape| judge(visit, tape, Topic::Caching)),
    rule("shapes.meta", &["schema.message-valid"])
        .says("`_meta` of a result is an object.")
        .cure("Make `_meta` an object as basic/index#meta says, or leave it out.")
        .look(|visit, tape| judge(visit, tape, Topic::Meta)),
    rule(
        "shapes.tool-list",
        &[
            "tools.list.shape",
            "tools.input-schema.type-object",
            "tools.input-schema.object",
            "tools.output-schema.root-object",
        ],
    )
    .says("The list of tools and every tool in it have the shape of the revision.")
    .cure("Describe tools as server/tools#tool says: a `name`, and an `inputSchema` whose `type` is \"object\".")
    .look(|visit, tape| judge(visit, tape, Topic::ToolList)),
    rule(
        "shapes.tool-result",
        &["tools.result.content-array", "tools.output.structured-object"],
    )
    .says("The result of a tool has the shape of the revision.")
    .cure("Return results of tools as server/tools#tool-result says: `content` is an array, even if it is empty.")
    .look(|visit, tape| judge(visit, tape, Topic::ToolResult)),
    rule(
        "shapes.content",
        &[
            "content.types.by-revision",
            "content.binary.base64",
            "content.annotations.values",
            "prompts.content.image",
            "prompts.content.audio",
        ],
    )
    .says("Every block of content is of a type that the revision has, with all that belongs to it.")
    .cure("Build content as schema#contentblock says, of the types of the revision that is spoken.")
    .look(|visit, tape| judge(visit, tape, Topic::Content)),
    rule(
        "shapes.resources",
        &[
            "resources.list.shape",
            "resources.read.shape",
            "resources.security.encode-binary",
        ],
    )
    .says("Resources, templates and what is read have the shape of the revision.")
    .cure("Describe resources as server/resources#resource says, and return `contents` with a `uri` and either `text` or `blob`.")
    .look(|visit, tape| judge(visit, tape, Topic::Resources)),
    rule("shapes.prompts", &["prompts.get.shape"])
        .says("The list of prompts and every prompt have the shape of the revision.")
        .cure("Describe prompts as server/prompts#data-types says; each of their messages has a `role` and one block of content.")
        .look(|visit, tape| judge(visit, tape, Topic::Prompts)),
    rule("shapes.completion", &["completion.result.shape"])
        .says("The result of `completion/complete` has an array of strings.")
        .cure("Return `completion.values` as server/utilities/completion#completion-results says.")
        .look(|visit, tape| judge(visit, tape, Topic::Completion)),
    rule(
        "shapes.empty-results",
        &["resources.subscribe.legacy-methods"],
    )
    .says("What has nothing to tell is answered with an empty object.")
    .cure("Answer `ping`, `logging/setLevel` and `resources/subscribe` with the result {}.")
    .look(|visit, tape| judge(visit, tape, Topic::EmptyResults)),
    rule(
        "shapes.notifications",
        &["progress.shape", "logging.message.shape", "logging.levels"],
    )
    .says("Every notification has the parameters that belong to it.")
    .cure("Send notifications with the parameters that the schema page of the revision lists.")
    .look(|visit, tape| judge(visit, tape, Topic::Notifications)),
    rule(
        "shapes.requests",
        &[
            "sampling.message.shape",
            "sampling.max-tokens.required",
            "elicitation.request.fields",
            "elicitation.form.fields",
            "elicitation.url.fields-2025-11-25",
            "elicitation.url.fields",
            "mrtr.input-request.shape",
        ],
    )
    .says("What the server asks of the client has the shape of the revision.")
    .cure("Ask as client/sampling, client/elicitation and client/roots show, with all parameters that they require.")
    .look(|visit, tape| judge(visit, tape, Topic::Requests)),
    rule(
        "shapes.tasks",
        &[
            "tasks.id.string",
            "tasks.get.created-at",
            "tasks.get.updated-at",
            "tasks.get.ttl",
            "ext-tasks.create.flat",
            "ext-tasks.get.input-required",
            "ext-tasks.get.completed",
            "ext-tasks.get.failed",
        ],
    )
    .says("Every task has its id, its status, its times and how long it is kept.")
    .cure("Describe tasks as the page on tasks says; a `ttl` (2026-07-28: `ttlMs`) is there even if it is null.")
    .look(|visit, tape| judge(visit, tape, Topic::Tasks)),
];

const fn rule(id: &'static str, rows: &'static [&'static str]) -> Rule {
    Rule::server(id, Area::Shapes, rows)
}

/// How many entries show that all is well.
const EVIDENCE: usize = 3;
/// How many flaws are told.
const TOLD: usize = 3;

/// What was found in all that the server said.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Entries with something of a topic.
    seen: HashMap<Topic, Vec<usize>>,
    flaws: HashMap<Topic, Vec<Finding>>,
}

/// A flaw, and where it was seen.
#[derive(Debug)]
struct Finding {
    flaw: Flaw,
    entries: Vec<usize>,
}

fn judge(visit: &Visit, tape: &Tape, topic: Topic) -> Outcome {
    let findings = visit.findings.get_or_init(|| heard::listen(visit, tape));
    if let Some(found) = findings.flaws.get(&topic) {
        let told: Vec<_> = found
            .iter()
            .take(TOLD)
            .map(|it| it.flaw.to_string())
            .collect();
        let more = match found.len() - told.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let entries = found[0].entries.iter().copied();
        return Err(Unmet::broken(told.join("; ") + &more, entries));
    }
    match findings.seen.get(&topic) {
        Some(seen) => Seen::at(seen.iter().copied().take(EVIDENCE)),
        None => Err(visit.why_unseen(topic)),
    }
}

impl Visit {
    /// Returns why nothing of a topic was seen.
    fn why_unseen(&self, topic: Topic) -> Unmet {
        let gathered = self.gathered.get();
        match gathered.and_then(|gathered| gathered.why_not(topic)) {
            Some(why) => why.clone(),
            None => Unmet::not_applicable(format!("the server has sent no {}", topic.noun())),
        }
    }
}
