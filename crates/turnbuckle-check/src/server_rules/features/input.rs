//! Client requests of a server: elicitation, sampling and roots.

mod capabilities;
mod elicitation;
mod round_trips;
mod sampling;

use crate::rule::{Area, Rule, Transports};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "input.only-declared",
        Area::Input,
        &[
            "lifecycle.operation.capabilities-should",
            "lifecycle.operation.capabilities-must",
            "mrtr.result.capability",
            "elicitation.mode.declared",
            "elicitation.capability.empty-form",
            "sampling.tools.server",
            "roots.server.capability",
        ],
    )
    .requirement("The server requests only what the client's capabilities allow.")
    .hint("Check the client's capabilities before requesting input, an elicitation mode, or sampling with tools.")
    .active(|ctx| Box::pin(capabilities::only_declared(ctx))),
    Rule::server(
        "input.missing-capability",
        Area::Input,
        &["meta.capability.missing-error"],
    )
    .requirement("The server returns error -32021 with the missing capabilities for a request that needs an undeclared capability.")
    .hint("Return error -32021, and list the missing capabilities in `data.requiredCapabilities`.")
    .active(|ctx| Box::pin(capabilities::missing_capability(ctx))),
    Rule::server(
        "input.missing-capability-status",
        Area::Input,
        &["meta.capability.missing-status"],
    )
    .requirement("On HTTP, error -32021 has status 400.")
    .hint("Respond with HTTP status 400 when a client capability is missing.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(capabilities::missing_capability_status(ctx))),
    Rule::server("input.only-where-allowed", Area::Input, &["mrtr.methods.others"])
        .requirement("Only `tools/call`, `prompts/get` and `resources/read` return `input_required`.")
        .hint("Return `input_required` for `tools/call`, `prompts/get` and `resources/read` only.")
        .passive(|ctx, _| round_trips::only_where_allowed(ctx)),
    Rule::server(
        "input.asks-for-something",
        Area::Input,
        &["mrtr.result.at-least-one", "mrtr.result.values"],
    )
    .requirement("An `input_required` result has `inputRequests` or `requestState`, and its input requests are elicitation, sampling or roots requests.")
    .hint("Set `inputRequests` to elicitation, sampling or roots requests, or set `requestState`.")
    .passive(|ctx, _| round_trips::has_input_requests_or_state(ctx)),
    Rule::server("input.asks-again", Area::Input, &["mrtr.error.reask"])
        .requirement("The server returns `input_required` again for a retry without the input responses.")
        .hint("Return `input_required` again when an input response is missing, instead of an error.")
        .active(|ctx| Box::pin(round_trips::requests_again(ctx))),
    Rule::server("input.ignores-surplus", Area::Input, &["mrtr.error.ignore-extra"])
        .requirement("The server ignores an input response without an input request.")
        .hint("Read only those keys of `inputResponses` that were requested.")
        .active(|ctx| Box::pin(round_trips::ignores_surplus(ctx))),
    Rule::server(
        "input.malformed-answers",
        Area::Input,
        &["mrtr.error.validate", "mrtr.error.protocol"],
    )
    .requirement("The server returns an error for malformed input responses.")
    .hint("Return error -32602 when `inputResponses` is not an object of results.")
    .active(|ctx| Box::pin(round_trips::malformed_responses(ctx))),
    Rule::server(
        "input.tampered-state",
        Area::Input,
        &["mrtr.state.untrusted", "mrtr.state.integrity", "mrtr.state.reject"],
    )
    .requirement("The server rejects a modified `requestState`.")
    .hint("Sign or encrypt `requestState`, and return an error if it does not verify.")
    .active(|ctx| Box::pin(round_trips::tampered_state(ctx))),
    Rule::server("input.state-of-another-request", Area::Input, &["mrtr.state.request-binding"])
        .requirement("The server rejects the `requestState` of another request.")
        .hint("Bind `requestState` to the method and the parameters, and compare them when the request is retried.")
        .active(|ctx| Box::pin(round_trips::state_of_another_request(ctx))),
    Rule::server("elicitation.flat-form", Area::Elicitation, &["elicitation.form.schema-flat"])
        .requirement("A form is a flat object of strings, numbers, booleans and enumerations.")
        .hint("Use properties of primitive types only, without nesting or references.")
        .active(|ctx| Box::pin(elicitation::flat_form(ctx))),
    Rule::server("elicitation.valid-url", Area::Elicitation, &["elicitation.url.valid"])
        .requirement("The URL of an elicitation is valid.")
        .hint("Set `url` to an absolute URL.")
        .active(|ctx| Box::pin(elicitation::valid_url(ctx))),
    Rule::server("elicitation.https", Area::Elicitation, &["elicitation.url.https"])
        .requirement("The URL of an elicitation uses https.")
        .hint("Use an https URL.")
        .active(|ctx| Box::pin(elicitation::https(ctx))),
    Rule::server("elicitation.complete-known", Area::Elicitation, &["elicitation.url.complete-id"])
        .requirement("`notifications/elicitation/complete` references an elicitation that the server requested.")
        .hint("Repeat the `elicitationId` of the request in `notifications/elicitation/complete`.")
        .passive(|ctx, _| elicitation::complete_known(ctx)),
    Rule::server(
        "elicitation.complete-is-gone",
        Area::Elicitation,
        &["elicitation.url.complete-removed"],
    )
    .requirement("The server does not send `notifications/elicitation/complete`, which this revision removed.")
    .hint("Let the client retry the request instead of sending a notification.")
    .passive(|ctx, _| elicitation::complete_removed(ctx)),
    Rule::server(
        "elicitation.required-error",
        Area::Elicitation,
        &["elicitation.url.required-error-list", "elicitation.url.required-error-mode"],
    )
    .requirement("Error -32042 lists the URL elicitations, each with an id.")
    .hint("Set `data.elicitations` to elicitations with the mode `url` and an `elicitationId`.")
    .passive(|ctx, _| elicitation::required_error(ctx)),
    Rule::server(
        "sampling.tool-results",
        Area::Sampling,
        &["sampling.tool-result.only", "sampling.tool-result.balance", "sampling.tool-result.match"],
    )
    .requirement("Each tool use in sampling messages is followed by its result, in a message of tool results only.")
    .hint("Put the results of all tool uses of a message into the next message, by id and with no other content.")
    .passive(|ctx, _| sampling::tool_results(ctx)),
    Rule::server(
        "sampling.context",
        Area::Sampling,
        &["sampling.context.capability", "sampling.context.avoid"],
    )
    .requirement("The server does not request context if the client does not declare `sampling.context`.")
    .hint("Omit `includeContext`, or set it to `none`.")
    .active(|ctx| Box::pin(sampling::context(ctx))),
];

/// Returns the client capability that a client request needs.
fn capability_for(method: &str) -> Option<&'static str> {
    match method {
        "elicitation/create" => Some("elicitation"),
        "sampling/createMessage" => Some("sampling"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}
