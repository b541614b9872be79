//! What a server asks its client: the user, the model, the roots.

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
    .requirement("A server asks its client only for what the client has declared.")
    .fix("Look at the capabilities of the client before asking for input, for a mode of elicitation, or for sampling with tools.")
    .active(|ctx| Box::pin(capabilities::only_declared(ctx))),
    Rule::server(
        "input.missing-capability",
        Area::Input,
        &["meta.capability.missing-error"],
    )
    .requirement("What cannot be done without a capability of the client's is refused with the error -32021, which names what is missing.")
    .fix("Answer with the error -32021 and list what is missing in `data.requiredCapabilities`.")
    .active(|ctx| Box::pin(capabilities::missing_capability(ctx))),
    Rule::server(
        "input.missing-capability-status",
        Area::Input,
        &["meta.capability.missing-status"],
    )
    .requirement("On HTTP the error -32021 comes with the status 400.")
    .fix("Answer with the status 400 when a capability of the client's is missing.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(capabilities::missing_capability_status(ctx))),
    Rule::server("input.only-where-allowed", Area::Input, &["mrtr.methods.others"])
        .requirement("Only calls of tools, prompts that are got and resources that are read are answered with `input_required`.")
        .fix("Ask in answers to `tools/call`, `prompts/get` and `resources/read` only.")
        .passive(|ctx, _| round_trips::only_where_allowed(ctx)),
    Rule::server(
        "input.asks-for-something",
        Area::Input,
        &["mrtr.result.at-least-one", "mrtr.result.values"],
    )
    .requirement("A result that says `input_required` has questions or a state, and asks the user, the model or for roots.")
    .fix("Fill `inputRequests` with elicitations, sampling or roots requests, or give a `requestState`.")
    .passive(|ctx, _| round_trips::asks_for_something(ctx)),
    Rule::server("input.asks-again", Area::Input, &["mrtr.error.reask"])
        .requirement("Whoever comes back without the answers is asked again.")
        .fix("Answer with `input_required` again when an answer is missing, rather than with an error.")
        .active(|ctx| Box::pin(round_trips::asks_again(ctx))),
    Rule::server("input.ignores-surplus", Area::Input, &["mrtr.error.ignore-extra"])
        .requirement("An answer to a question that nobody asked is ignored.")
        .fix("Look only at the keys of `inputResponses` that were asked for.")
        .active(|ctx| Box::pin(round_trips::ignores_surplus(ctx))),
    Rule::server(
        "input.malformed-answers",
        Area::Input,
        &["mrtr.error.validate", "mrtr.error.protocol"],
    )
    .requirement("Answers that cannot be read are refused with an error.")
    .fix("Answer with the error -32602 when `inputResponses` is no object of results.")
    .active(|ctx| Box::pin(round_trips::malformed_answers(ctx))),
    Rule::server(
        "input.tampered-state",
        Area::Input,
        &["mrtr.state.untrusted", "mrtr.state.integrity", "mrtr.state.reject"],
    )
    .requirement("A state that was tampered with is not accepted.")
    .fix("Sign or encrypt `requestState`, and refuse what does not verify.")
    .active(|ctx| Box::pin(round_trips::tampered(ctx))),
    Rule::server("input.state-of-another-request", Area::Input, &["mrtr.state.request-binding"])
        .requirement("A state that was given for another request is not accepted.")
        .fix("Bind `requestState` to the method and the parameters, and compare them when it comes back.")
        .active(|ctx| Box::pin(round_trips::of_another_request(ctx))),
    Rule::server("elicitation.flat-form", Area::Elicitation, &["elicitation.form.schema-flat"])
        .requirement("A form is a flat object of texts, numbers, truth values and choices.")
        .fix("Ask for properties of primitive types only; nest nothing and refer to nothing.")
        .active(|ctx| Box::pin(elicitation::flat_form(ctx))),
    Rule::server("elicitation.valid-url", Area::Elicitation, &["elicitation.url.valid"])
        .requirement("The page that the user is asked to visit has a valid URL.")
        .fix("Put an absolute URL into `url`.")
        .active(|ctx| Box::pin(elicitation::valid_url(ctx))),
    Rule::server("elicitation.https", Area::Elicitation, &["elicitation.url.https"])
        .requirement("The page that the user is asked to visit is reached by https.")
        .fix("Use an https URL.")
        .active(|ctx| Box::pin(elicitation::https(ctx))),
    Rule::server("elicitation.complete-known", Area::Elicitation, &["elicitation.url.complete-id"])
        .requirement("What is told to be complete is an elicitation that was asked for.")
        .fix("Repeat the `elicitationId` of the request in `notifications/elicitation/complete`.")
        .passive(|ctx, _| elicitation::complete_known(ctx)),
    Rule::server(
        "elicitation.complete-is-gone",
        Area::Elicitation,
        &["elicitation.url.complete-removed"],
    )
    .requirement("There is no `notifications/elicitation/complete` any more.")
    .fix("Let the client come back with the request instead of telling it.")
    .passive(|ctx, _| elicitation::complete_is_gone(ctx)),
    Rule::server(
        "elicitation.required-error",
        Area::Elicitation,
        &["elicitation.url.required-error-list", "elicitation.url.required-error-mode"],
    )
    .requirement("The error -32042 lists the pages to visit, each with its id.")
    .fix("Fill `data.elicitations` with elicitations of the mode `url` that have an `elicitationId`.")
    .passive(|ctx, _| elicitation::required_error(ctx)),
    Rule::server(
        "sampling.tool-results",
        Area::Sampling,
        &["sampling.tool-result.only", "sampling.tool-result.balance", "sampling.tool-result.match"],
    )
    .requirement("Each use of a tool in the messages for a model is followed by its result, in a message of results only.")
    .fix("Answer all uses of tools of a message in the next one, by their ids and with nothing else in it.")
    .passive(|ctx, _| sampling::tool_results(ctx)),
    Rule::server(
        "sampling.context",
        Area::Sampling,
        &["sampling.context.capability", "sampling.context.avoid"],
    )
    .requirement("No context of servers is asked for where the client does not declare `sampling.context`.")
    .fix("Leave `includeContext` out, or say `none`.")
    .active(|ctx| Box::pin(sampling::context(ctx))),
];

/// The keys of the client's capabilities, by what is asked.
fn capability_for(method: &str) -> Option<&'static str> {
    match method {
        "elicitation/create" => Some("elicitation"),
        "sampling/createMessage" => Some("sampling"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}
