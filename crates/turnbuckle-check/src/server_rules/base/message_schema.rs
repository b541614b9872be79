//! Validates every message of the server against the schema of its revision.
//!
//! A violation belongs to one rule, by its [`SchemaTopic`]: an invalid content block is reported once, whatever result contains it.

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
    .requirement("Every message is a JSON-RPC 2.0 request, notification, result or error.")
    .hint("Build messages as basic/index#messages defines: `jsonrpc` is \"2.0\", ids are strings or integers, and a response has either `result` or `error`.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Envelope)),
    rule(
        "shapes.errors",
        &[
            "base.error.code-message",
            "base.error.code-integer",
        ],
    )
    .requirement("Every error has an integer `code` and a string `message`.")
    .hint("Send errors as basic/index#error-responses defines: `code` is an integer, `message` a string.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Errors)),
    rule("shapes.initialize", &["lifecycle.init.server-response"])
        .requirement("The result of `initialize` has the protocol version, the capabilities and the server info.")
        .hint("Build the result of `initialize` as basic/lifecycle#initialization shows.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Initialize)),
    rule("shapes.discover", &["versioning.discover.result"])
        .requirement("The result of `server/discover` has the supported versions and the capabilities.")
        .hint("Build the result of `server/discover` as server/discover shows.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Discover)),
    rule("shapes.server-info", &["lifecycle.info.shape"])
        .requirement("The server info has a string `name` and a string `version`.")
        .hint("Build the server info as schema#implementation defines: `name` and `version` are strings, all other members are optional.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::ServerInfo)),
    rule(
        "shapes.result-type",
        &[
            "base.result-type.present",
            "base.result-type.allowed-set",
        ],
    )
    .requirement("Every result has a valid `resultType`.")
    .hint("Set `resultType` in every result, as basic/index#resulttype defines: \"complete\" unless the server requests input.")
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
    .requirement("Cacheable results have `ttlMs` and `cacheScope`.")
    .hint("Set `ttlMs` (an integer of 0 or more) and `cacheScope` (\"public\" or \"private\") in the result, as server/utilities/caching#cacheable-results defines.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Caching)),
    rule("shapes.meta", &["schema.message-valid"])
        .requirement("`_meta` of a result is an object.")
        .hint("Make `_meta` an object as basic/index#meta defines, or omit it.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Meta)),
    rule(
        "shapes.tool-list",
        &[
            "schema.message-valid",
            "tools.list.shape",
            "tools.input-schema.type-object",
            "tools.input-schema.object",
            "tools.output-schema.root-object",
        ],
    )
    .requirement("The list of tools and every tool match the schema of the revision.")
    .hint("Describe tools as server/tools#tool defines: with a `name` and an `inputSchema` of `type` \"object\".")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::ToolList)),
    rule(
        "shapes.tool-result",
        &["schema.message-valid", "tools.result.content-array", "tools.output.structured-object"],
    )
    .requirement("The result of a tool matches the schema of the revision.")
    .hint("Return tool results as server/tools#tool-result defines: `content` is an array, even if it is empty.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::ToolResult)),
    rule(
        "shapes.content",
        &[
            "schema.message-valid",
            "content.types.by-revision",
            "content.binary.base64",
            "content.annotations.values",
            "prompts.content.image",
            "prompts.content.audio",
        ],
    )
    .requirement("Every content block has a type of the revision and all members of that type.")
    .hint("Build content as schema#contentblock defines, with the types of the negotiated revision.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Content)),
    rule(
        "shapes.resources",
        &[
            "schema.message-valid",
            "resources.list.shape",
            "resources.read.shape",
            "resources.security.encode-binary",
        ],
    )
    .requirement("Resources, templates and contents match the schema of the revision.")
    .hint("Describe resources as server/resources#resource defines, and return `contents` with a `uri` and either `text` or `blob`.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Resources)),
    rule("shapes.prompts", &["prompts.get.shape"])
        .requirement("The list of prompts and every prompt match the schema of the revision.")
        .hint("Describe prompts as server/prompts#data-types defines; each message has a `role` and one content block.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Prompts)),
    rule("shapes.completion", &["completion.result.shape"])
        .requirement("The result of `completion/complete` has an array of strings.")
        .hint("Return `completion.values` as server/utilities/completion#completion-results defines.")
        .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Completion)),
    rule(
        "shapes.empty-results",
        &["resources.subscribe.legacy-methods"],
    )
    .requirement("A method without a result value returns an empty object.")
    .hint("Return {} for `ping`, `logging/setLevel` and `resources/subscribe`.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::EmptyResults)),
    rule(
        "shapes.notifications",
        &["schema.message-valid", "progress.shape", "logging.message.shape", "logging.levels"],
    )
    .requirement("The parameters of every notification match the schema of the revision.")
    .hint("Send notifications with the parameters that the schema page of the revision lists.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Notifications)),
    rule(
        "shapes.requests",
        &[
            "schema.message-valid",
            "sampling.message.shape",
            "sampling.max-tokens.required",
            "elicitation.request.fields",
            "elicitation.form.fields",
            "elicitation.url.fields-2025-11-25",
            "elicitation.url.fields",
            "mrtr.input-request.shape",
        ],
    )
    .requirement("Client requests match the schema of the revision.")
    .hint("Build client requests as client/sampling, client/elicitation and client/roots show, with all required parameters.")
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
    .requirement("Every task has an id, a status, timestamps and a time to live.")
    .hint("Describe tasks as the page on tasks defines; `ttl` (2026-07-28: `ttlMs`) is required, even if it is null.")
    .passive(|ctx, transcript| evaluate(ctx, transcript, SchemaTopic::Tasks)),
];

const fn rule(id: &'static str, requirement_ids: &'static [&'static str]) -> Rule {
    Rule::server(id, Area::Shapes, requirement_ids)
}

/// The maximum number of entries in the evidence of a topic.
const MAX_EVIDENCE: usize = 3;
/// The maximum number of violations in a report.
const MAX_REPORTED: usize = 3;

/// The evidence and the violations in all messages of the server.
#[derive(Debug, Default)]
pub(crate) struct SchemaFindings {
    /// The entries with messages of a topic.
    evidence: HashMap<SchemaTopic, Vec<usize>>,
    violations: HashMap<SchemaTopic, Vec<SchemaFinding>>,
}

/// A violation and the entries that show it.
#[derive(Debug)]
struct SchemaFinding {
    violation: SchemaViolation,
    entries: Vec<usize>,
}

fn evaluate(ctx: &CheckContext, transcript: &Transcript, topic: SchemaTopic) -> Outcome {
    let findings = ctx
        .schema_findings
        .get_or_init(|| scan::scan(ctx, transcript));
    if let Some(violations) = findings.violations.get(&topic) {
        let reported: Vec<_> = violations
            .iter()
            .take(MAX_REPORTED)
            .map(|it| it.violation.to_string())
            .collect();
        let more = match violations.len() - reported.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let first = &violations[0];
        let entries = first.entries.iter().copied();
        let violation = NotPassed::violation(reported.join("; ") + &more, entries);
        return Err(
            match topic.requirement(&first.violation.path, &first.violation.observed) {
                Some(requirement) => violation.for_requirement(requirement),
                None => violation,
            },
        );
    }
    match findings.evidence.get(&topic) {
        Some(evidence) => Evidence::from_entries(evidence.iter().copied().take(MAX_EVIDENCE)),
        None => Err(ctx.missing_reason(topic)),
    }
}

impl CheckContext {
    /// Returns the reason that no message of a topic was received.
    fn missing_reason(&self, topic: SchemaTopic) -> NotPassed {
        let collected = self.schema_samples.get();
        match collected.and_then(|collected| collected.missing_reason(topic)) {
            Some(reason) => reason.clone(),
            None => NotPassed::not_applicable(format!("the server sent no {}", topic.noun())),
        }
    }
}

/// The reasons that messages of a topic are missing.
#[derive(Debug, Default)]
pub(crate) struct CollectedMessages(HashMap<SchemaTopic, NotPassed>);

impl CollectedMessages {
    /// Requests one sample of everything that the server lists.
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
        // Other rules check these responses; here they only have to be in the transcript.
        let _ = ctx.resource_samples().await;
        let _ = ctx.prompt_samples().await;
        let Ok(session) = ctx.session().await else {
            return missing;
        };
        if session.capabilities().get("completions").is_some()
            && let Some(params) = inventory.prompts.iter().find_map(completion_params)
        {
            send_request(ctx, "completion/complete", params).await;
        }
        if session.request_builder.has_handshake() {
            send_request(ctx, "ping", json!({})).await;
        }
        missing
    }

    /// Returns the reason that messages of a topic are missing.
    fn missing_reason(&self, topic: SchemaTopic) -> Option<&NotPassed> {
        self.0.get(&topic)
    }

    fn note(&mut self, topic: SchemaTopic, reason: Option<NotPassed>) {
        if let Some(reason) = reason {
            self.0.insert(topic, reason.into_not_tested());
        }
    }
}

async fn send_request(ctx: &CheckContext, method: &str, params: Value) {
    if let Ok(session) = ctx.session().await {
        let _ = session.request(method, params).await;
    }
}

/// Returns the parameters that complete the first argument of a prompt.
fn completion_params(prompt: &Value) -> Option<Value> {
    let argument = prompt["arguments"].get(0)?["name"].as_str()?;
    let prompt = json!({ "type": "ref/prompt", "name": prompt["name"].as_str()? });
    Some(json!({ "ref": prompt, "argument": { "name": argument, "value": "" } }))
}
