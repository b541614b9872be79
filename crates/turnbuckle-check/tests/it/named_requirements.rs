//! A finding names the requirement that is broken, also for a rule that covers several.

use std::{fs, path::Path};

use turnbuckle_check::{Report, catalog, rule::Rule};
use turnbuckle_protocol::Revision;

/// Requirements that no finding names, because what breaks them also breaks the first requirement of the rule: the rule,
/// the requirement and the reason. `*` stands for those that the check does not name.
const NOT_NAMED: &[(&str, &str, &str)] = &[
    (
        "shapes.envelope",
        "*",
        "the requirement about the schema of the revision is named; the finding shows the place",
    ),
    (
        "shapes.tool-list",
        "*",
        "the requirement about the schema of the revision is named; the finding shows the place",
    ),
    (
        "shapes.content",
        "*",
        "the requirement about the schema of the revision is named; the finding shows the place",
    ),
    (
        "shapes.resources",
        "*",
        "the requirement about the schema of the revision is named; the finding shows the place",
    ),
    (
        "shapes.notifications",
        "*",
        "the requirement about the schema of the revision is named; the finding shows the place",
    ),
    (
        "shapes.requests",
        "*",
        "the requirement about the schema of the revision is named; the finding shows the place",
    ),
    (
        "shapes.tasks",
        "*",
        "the members of a task depend on its status, which may be what is wrong",
    ),
    (
        "base.error-same-id",
        "base.error.id-echo",
        "an error with another id breaks both",
    ),
    (
        "cancellation.own-requests",
        "cancellation.reference.in-progress",
        "a request that was never sent is not in progress either",
    ),
    (
        "input.only-declared",
        "roots.server.capability",
        "the stricter requirement about all capabilities is named",
    ),
    (
        "input.malformed-answers",
        "mrtr.error.protocol",
        "a result for malformed input breaks both",
    ),
    (
        "input.tampered-state",
        "mrtr.state.integrity",
        "an accepted state shows neither how it is protected nor whether it was verified",
    ),
    (
        "input.tampered-state",
        "mrtr.state.reject",
        "an accepted state shows neither how it is protected nor whether it was verified",
    ),
    (
        "sampling.context",
        "sampling.context.avoid",
        "the checker never declares the capability, so such a request breaks both",
    ),
    (
        "pagination.invalid-cursor",
        "pagination.server.invalid-graceful",
        "an answer other than the error breaks both",
    ),
    (
        "prompts.missing-arguments",
        "prompts.server.validate-args",
        "a prompt without its required argument breaks both",
    ),
    (
        "tasks.undeclared-ignored",
        "tasks.capability",
        "a task without the capability breaks both",
    ),
    (
        "tasks.result",
        "tasks.result.error",
        "whether the call failed with an error is unknown",
    ),
    (
        "tasks.progress-ends",
        "progress.task.token",
        "progress with another token is not known to belong to the task",
    ),
    (
        "tasks.list",
        "tasks.list.next-cursor",
        "a task that is missing on the last page breaks both",
    ),
    (
        "tasks.undeclared-extension",
        "ext-tasks.legacy.ignore-task-param",
        "the request has both the parameter and the capability of the previous revision",
    ),
    (
        "tasks.outcome",
        "ext-tasks.status.failed-only-jsonrpc",
        "a failed task with a tool result breaks both",
    ),
    (
        "tasks.result-types",
        "ext-tasks.result-type.only-create",
        "another type of result breaks the requirement about its method",
    ),
    (
        "tools.names",
        "tools.name.no-special",
        "a special character is outside of the allowed set as well",
    ),
    (
        "authorization.missing-401",
        "auth.status-codes",
        "another status than 401 breaks both",
    ),
    (
        "authorization.invalid-401",
        "auth.token.validate",
        "a request with an invalid token that is accepted breaks both",
    ),
    (
        "authorization.session-is-no-token",
        "security.session.verify-requests",
        "a request without a token that is accepted breaks both",
    ),
    (
        "http.get",
        "http.endpoint.single-post-get",
        "an endpoint without GET breaks both",
    ),
    (
        "http-sse.endpoint-first",
        "httpsse.endpoints",
        "a stream without the endpoint event names no second endpoint",
    ),
    (
        "sessions.id-unpredictable",
        "http.session.id-strength",
        "an id that can be guessed breaks both",
    ),
    (
        "client.base.no-batch",
        "http.post.body-single",
        "a batch in a body breaks both",
    ),
    (
        "client.base.no-batch",
        "http.post.body-single-modern",
        "a batch in a body breaks both",
    ),
    (
        "client.base.no-responses",
        "http.post.no-responses",
        "the requirement for all transports is named",
    ),
    (
        "client.base.no-responses",
        "stdio.client.no-responses",
        "the requirement for all transports is named",
    ),
    (
        "client.lifecycle.initialize-first",
        "lifecycle.init.request",
        "another first message breaks both",
    ),
    (
        "client.lifecycle.capabilities",
        "base.capabilities.respect",
        "a method without its capability breaks both",
    ),
    (
        "client.eras.stays-modern-on-http",
        "versioning.http.inspect-400",
        "whether the client has read the body of a 400 is only visible in its next request",
    ),
    (
        "client.tasks.not-allowed",
        "tasks.tool.no-server-capability",
        "the server of the scenario declares neither the capability nor task support",
    ),
    (
        "client.rounds.state",
        "mrtr.client.state-opaque",
        "a changed state breaks both",
    ),
    (
        "client.auth.resource-metadata",
        "auth.www-authenticate.parse",
        "a client that does not fetch the announced URL breaks both",
    ),
    (
        "client.auth.resource",
        "auth.resource.always",
        "a request without `resource` breaks both",
    ),
    (
        "client.http.post",
        "http.post.method",
        "a message outside of a POST breaks both",
    ),
    (
        "client.http.name-header",
        "http.header.extract-from-body",
        "a header that differs from the body breaks both",
    ),
    (
        "client.http.param-headers-encoded",
        "http.value.base64",
        "a value that is not encoded breaks both",
    ),
    (
        "client.streams.read",
        "http.sse.comment-ignore",
        "comments and the response are in the same stream",
    ),
    (
        "client.streams.resumed",
        "http.resume.any-origin",
        "a stream that is not resumed breaks both",
    ),
    (
        "client.streams.resumed",
        "http.sse.polling-reconnect",
        "a stream that is not resumed breaks both",
    ),
    (
        "tools.list",
        "tools.list.shape",
        "a list of another shape is reported by `shapes.tool-list`",
    ),
    (
        "resources.list",
        "resources.list.shape",
        "a list of another shape is reported by `shapes.resources`",
    ),
    (
        "stdio.one-line",
        "stdio.framing.newline",
        "a message of several lines breaks both",
    ),
    (
        "client.stdio.only-messages",
        "stdio.framing.no-embedded",
        "a message of several lines breaks both",
    ),
    (
        "client.lifecycle.leaves-unknown-version",
        "lifecycle.version.client-disconnect-schema",
        "a client that continues breaks both; the page is named, not the comment in the schema",
    ),
];

/// Returns the requirements of a rule that follow an earlier one in some revision.
fn siblings(rule: &Rule) -> Vec<&'static str> {
    let in_each = Revision::ALL.map(|revision| rule.requirements_in(revision).skip(1));
    let mut ids: Vec<_> = in_each.into_iter().flatten().map(|row| row.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Returns the source files of the rules.
fn sources(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let texts = paths.map(|path| {
        if path.is_dir() {
            sources(&path)
        } else {
            vec![fs::read_to_string(&path).unwrap()]
        }
    });
    texts.flatten().collect()
}

/// Returns how often the rules contain a requirement id.
fn occurrences(texts: &[String], id: &str) -> usize {
    let quoted = format!("\"{id}\"");
    texts.iter().map(|text| text.matches(&quoted).count()).sum()
}

fn is_not_named(rule: &Rule, id: &str) -> bool {
    let mut rows = NOT_NAMED.iter();
    rows.any(|(other, requirement, _)| *other == rule.id && [id, "*"].contains(requirement))
}

#[test]
fn a_check_names_every_requirement_that_it_can_tell_from_the_first() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut texts = sources(&root.join("server_rules"));
    texts.extend(sources(&root.join("client_rules")));
    let mut wrong = Vec::new();
    for rule in catalog::all() {
        for id in siblings(rule) {
            let declaring = catalog::all().filter(|rule| rule.requirement_ids.contains(&id));
            let is_named = occurrences(&texts, id) > declaring.count();
            let may_be_both = is_not_named(rule, "*");
            if is_named == is_not_named(rule, id) && !(is_named && may_be_both) {
                wrong.push(format!("{}: {id}", rule.id));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "name these requirements in a finding, or list them in `NOT_NAMED` with a reason: {wrong:#?}"
    );
}

#[test]
fn every_requirement_that_is_not_named_follows_another() {
    for (id, requirement, reason) in NOT_NAMED {
        let rule = catalog::find(id).unwrap_or_else(|| panic!("unknown rule `{id}`"));
        let siblings = siblings(rule);
        let is_sibling = siblings.contains(requirement) || *requirement == "*";
        assert!(!siblings.is_empty() && is_sibling, "{id}: {requirement}");
        assert!(!reason.is_empty(), "{id}");
    }
}

/// Returns why a finding about a mutant names the wrong requirement. A mutant of a rule with several requirements in the
/// revision has to state which one it breaks.
pub(crate) fn wrong_requirement(
    report: &Report,
    violates: &str,
    name: &str,
    expected: Option<&str>,
) -> Option<String> {
    let (run, result) = report
        .results()
        .find(|(_, result)| result.rule.id == violates)?;
    let named = result.violated_requirement(run.revision)?.id;
    match expected {
        Some(expected) if expected == named => None,
        Some(expected) => Some(format!("“{name}” names {named} instead of {expected}")),
        None if result.rule.requirements_in(run.revision).count() < 2 => None,
        None => Some(format!(
            "“{name}” does not state its requirement; the finding names {named}"
        )),
    }
}
