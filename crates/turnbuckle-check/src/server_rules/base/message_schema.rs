//! The shape of every message that the server sends, as its revision describes it.
//!
//! A flaw belongs to one rule, its [`SchemaTopic`]: what is wrong with a content block is told once, whatever result it is in.

mod scan;
mod topic;

use std::collections::HashMap;

use serde_json::{Value, json};

use self::topic::SchemaTopic;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::Transcript,
    },
    message_schema::SchemaViolation,
    rule::{Area, Rule},
};

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
    .requirement("Every message is one of JSON-RPC 2.0: a request, a notification, a result or an error.")
    .fix("Build messages as basic/index#messages says: `jsonrpc` is \"2.0\", ids are strings or integers, and an answer has either `result` or `error`.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Envelope)),
    rule(
        "shapes.errors",
        &[
            "base.error.code-message",
            "base.error.code-integer",
        ],
    )
    .requirement("Every error has an integer `code` and a string `message`.")
    .fix("Send errors as basic/index#error-responses says: `code` is an integer, `message` a string.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Errors)),
    rule("shapes.initialize", &["lifecycle.init.server-response"])
        .requirement("The result of `initialize` has the version, the capabilities and who the server is.")
        .fix("Answer `initialize` as basic/lifecycle#initialization shows.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Initialize)),
    rule("shapes.discover", &["versioning.discover.result"])
        .requirement("The result of `server/discover` has the supported versions and the capabilities.")
        .fix("Answer `server/discover` as server/discover shows.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Discover)),
    rule("shapes.server-info", &["lifecycle.info.shape"])
        .requirement("The server is named by a string `name` and a string `version`.")
        .fix("Describe the server as schema#implementation says: `name` and `version` are strings, everything else may be left out.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::ServerInfo)),
    rule(
        "shapes.result-type",
        &[
            "base.result-type.present",
            "base.result-type.allowed-set",
        ],
    )
    .requirement("Every result says of which type it is, and it is one that there is.")
    .fix("Put `resultType` into every result, as basic/index#resulttype says: \"complete\" unless it asks for input.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::ResultType)),
    rule(
        "shapes.caching",
        &[
            "caching.hints.required",
            "caching.ttl.integer",
            "caching.ttl.non-negative",
            "caching.scope.value",
        ],
    )
    .requirement("Results that may be cached say for how long and for whom.")
    .fix("Put `ttlMs` (an integer of 0 or more) and `cacheScope` (\"public\" or \"private\") into the result, as server/utilities/caching#cacheable-results says.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Caching)),
    rule("shapes.meta", &["schema.message-valid"])
        .requirement("`_meta` of a result is an object.")
        .fix("Make `_meta` an object as basic/index#meta says, or leave it out.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Meta)),
    rule(
        "shapes.tool-list",
        &[
            "tools.list.shape",
            "tools.input-schema.type-object",
            "tools.input-schema.object",
            "tools.output-schema.root-object",
        ],
    )
    .requirement("The list of tools and every tool in it have the shape of the revision.")
    .fix("Describe tools as server/tools#tool says: a `name`, and an `inputSchema` whose `type` is \"object\".")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::ToolList)),
    rule(
        "shapes.tool-result",
        &["tools.result.content-array", "tools.output.structured-object"],
    )
    .requirement("The result of a tool has the shape of the revision.")
    .fix("Return results of tools as server/tools#tool-result says: `content` is an array, even if it is empty.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::ToolResult)),
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
    .requirement("Every block of content is of a type that the revision has, with all that belongs to it.")
    .fix("Build content as schema#contentblock says, of the types of the revision that is spoken.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Content)),
    rule(
        "shapes.resources",
        &[
            "resources.list.shape",
            "resources.read.shape",
            "resources.security.encode-binary",
        ],
    )
    .requirement("Resources, templates and what is read have the shape of the revision.")
    .fix("Describe resources as server/resources#resource says, and return `contents` with a `uri` and either `text` or `blob`.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Resources)),
    rule("shapes.prompts", &["prompts.get.shape"])
        .requirement("The list of prompts and every prompt have the shape of the revision.")
        .fix("Describe prompts as server/prompts#data-types says; each of their messages has a `role` and one block of content.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Prompts)),
    rule("shapes.completion", &["completion.result.shape"])
        .requirement("The result of `completion/complete` has an array of strings.")
        .fix("Return `completion.values` as server/utilities/completion#completion-results says.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Completion)),
    rule(
        "shapes.empty-results",
        &["resources.subscribe.legacy-methods"],
    )
    .requirement("What has nothing to tell is answered with an empty object.")
    .fix("Answer `ping`, `logging/setLevel` and `resources/subscribe` with the result {}.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::EmptyResults)),
    rule(
        "shapes.notifications",
        &["progress.shape", "logging.message.shape", "logging.levels"],
    )
    .requirement("Every notification has the parameters that belong to it.")
    .fix("Send notifications with the parameters that the schema page of the revision lists.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Notifications)),
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
    .requirement("What the server asks of the client has the shape of the revision.")
    .fix("Ask as client/sampling, client/elicitation and client/roots show, with all parameters that they require.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Requests)),
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
    .requirement("Every task has its id, its status, its times and how long it is kept.")
    .fix("Describe tasks as the page on tasks says; a `ttl` (2026-07-28: `ttlMs`) is there even if it is null.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Tasks)),
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
pub(crate) struct SchemaFindings {
    /// Entries with something of a topic.
    evidence: HashMap<SchemaTopic, Vec<usize>>,
    violations: HashMap<SchemaTopic, Vec<SchemaFinding>>,
}

/// A flaw, and where it was seen.
#[derive(Debug)]
struct SchemaFinding {
    violation: SchemaViolation,
    entries: Vec<usize>,
}

fn evaluate(ctx: &CheckContext, transcript: &Transcript, topic: SchemaTopic) -> Outcome {
    let findings = ctx
        .schema_findings
        .get_or_init(|| scan::listen(ctx, transcript));
    if let Some(found) = findings.violations.get(&topic) {
        let told: Vec<_> = found
            .iter()
            .take(TOLD)
            .map(|it| it.violation.to_string())
            .collect();
        let more = match found.len() - told.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let entries = found[0].entries.iter().copied();
        return Err(NotPassed::violation(told.join("; ") + &more, entries));
    }
    match findings.evidence.get(&topic) {
        Some(evidence) => Evidence::from_entries(evidence.iter().copied().take(EVIDENCE)),
        None => Err(ctx.why_unseen(topic)),
    }
}

impl CheckContext {
    /// Returns why nothing of a topic was seen.
    fn why_unseen(&self, topic: SchemaTopic) -> NotPassed {
        let gathered = self.schema_samples.get();
        match gathered.and_then(|gathered| gathered.why_not(topic)) {
            Some(why) => why.clone(),
            None => NotPassed::not_applicable(format!("the server has sent no {}", topic.noun())),
        }
    }
}

/// Why there is nothing of a topic to look at.
#[derive(Debug, Default)]
pub(crate) struct CollectedMessages(HashMap<SchemaTopic, NotPassed>);

impl CollectedMessages {
    /// Asks for something of everything that the server has.
    pub(crate) async fn collect(ctx: &CheckContext) -> Self {
        let mut missing = Self::default();
        let Ok(inventory) = ctx.inventory().await else {
            return missing;
        };
        missing.note(SchemaTopic::ToolList, inventory.tools.items().err());
        let calls = ctx.tool_runs().await.err();
        missing.note(SchemaTopic::ToolResult, calls.clone());
        missing.note(SchemaTopic::Content, calls);
        missing.note(SchemaTopic::Resources, inventory.resources.items().err());
        missing.note(SchemaTopic::Prompts, inventory.prompts.items().err());
        // What comes of these is for the rules that look; here it matters only that they were asked.
        let _ = ctx.resource_samples().await;
        let _ = ctx.prompt_samples().await;
        let Ok(session) = ctx.session().await else {
            return missing;
        };
        if session.capabilities().get("completions").is_some()
            && let Some(params) = inventory.prompts.iter().find_map(completion)
        {
            send_request(ctx, "completion/complete", params).await;
        }
        if session.request_builder.has_handshake() {
            send_request(ctx, "ping", json!({})).await;
        }
        missing
    }

    /// Returns why there is nothing of a topic.
    fn why_not(&self, topic: SchemaTopic) -> Option<&NotPassed> {
        self.0.get(&topic)
    }

    fn note(&mut self, topic: SchemaTopic, why: Option<NotPassed>) {
        if let Some(why) = why {
            self.0.insert(topic, why.as_not_tested());
        }
    }
}

async fn send_request(ctx: &CheckContext, method: &str, params: Value) {
    if let Ok(session) = ctx.session().await {
        let _ = session.request(method, params).await;
    }
}

/// Returns what asks for completions of the first argument of a prompt.
fn completion(prompt: &Value) -> Option<Value> {
    let argument = prompt["arguments"].get(0)?["name"].as_str()?;
    let prompt = json!({ "type": "ref/prompt", "name": prompt["name"].as_str()? });
    Some(json!({ "ref": prompt, "argument": { "name": argument, "value": "" } }))
}
