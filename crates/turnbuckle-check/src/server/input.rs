//! What a server asks its client: the user, the model, the roots.

mod declared;
mod elicitation;
mod rounds;
mod sampling;
mod state;

use crate::rule::{Area, On, Rule};

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
    .says("A server asks its client only for what the client has declared.")
    .cure("Look at the capabilities of the client before asking for input, for a mode of elicitation, or for sampling with tools.")
    .ask(|visit| Box::pin(declared::only_declared(visit))),
    Rule::server(
        "input.missing-capability",
        Area::Input,
        &["meta.capability.missing-error"],
    )
    .says("What cannot be done without a capability of the client's is refused with the error -32021, which names what is missing.")
    .cure("Answer with the error -32021 and list what is missing in `data.requiredCapabilities`.")
    .ask(|visit| Box::pin(declared::missing_capability(visit))),
    Rule::server(
        "input.missing-capability-status",
        Area::Input,
        &["meta.capability.missing-status"],
    )
    .says("On HTTP the error -32021 comes with the status 400.")
    .cure("Answer with the status 400 when a capability of the client's is missing.")
    .on(On::Http)
    .ask(|visit| Box::pin(declared::missing_capability_status(visit))),
    Rule::server("input.only-where-allowed", Area::Input, &["mrtr.methods.others"])
        .says("Only calls of tools, prompts that are got and resources that are read are answered with `input_required`.")
        .cure("Ask in answers to `tools/call`, `prompts/get` and `resources/read` only.")
        .look(|visit, _| rounds::only_where_allowed(visit)),
    Rule::server(
        "input.asks-for-something",
        Area::Input,
        &["mrtr.result.at-least-one", "mrtr.result.values"],
    )
    .says("A result that says `input_required` has questions or a state, and asks the user, the model or for roots.")
    .cure("Fill `inputRequests` with elicitations, sampling or roots requests, or give a `requestState`.")
    .look(|visit, _| rounds::asks_for_something(visit)),
    Rule::server("input.asks-again", Area::Input, &["mrtr.error.reask"])
        .says("Whoever comes back without the answers is asked again.")
        .cure("Answer with `input_required` again when an answer is missing, rather than with an error.")
        .ask(|visit| Box::pin(rounds::asks_again(visit))),
    Rule::server("input.ignores-surplus", Area::Input, &["mrtr.error.ignore-extra"])
        .says("An answer to a question that nobody asked is ignored.")
        .cure("Look only at the keys of `inputResponses` that were asked for.")
        .ask(|visit| Box::pin(rounds::ignores_surplus(visit))),
    Rule::server(
        "input.malformed-answers",
        Area::Input,
        &["mrtr.error.validate", "mrtr.error.protocol"],
    )
    .says("Answers that cannot be read are refused with an error.")
    .cure("Answer with the error -32602 when `inputResponses` is no object of results.")
    .ask(|visit| Box::pin(rounds::malformed_answers(visit))),
    Rule::server(
        "input.tampered-state",
        Area::Input,
        &["mrtr.state.untrusted", "mrtr.state.integrity", "mrtr.state.reject"],
    )
    .says("A state that was tampered with is not accepted.")
    .cure("Sign or encrypt `requestState`, and refuse what does not verify.")
    .ask(|visit| Box::pin(state::tampered(visit))),
    Rule::server("input.state-of-another-request", Area::Input, &["mrtr.state.request-binding"])
        .says("A state that was given for another request is not accepted.")
        .cure("Bind `requestState` to the method and the parameters, and compare them when it comes back.")
        .ask(|visit| Box::pin(state::of_another_request(visit))),
    Rule::server("elicitation.flat-form", Area::Elicitation, &["elicitation.form.schema-flat"])
        .says("A form is a flat object of texts, numbers, truth values and choices.")
        .cure("Ask for properties of primitive types only; nest nothing and refer to nothing.")
        .ask(|visit| Box::pin(elicitation::flat_form(visit))),
    Rule::server("elicitation.valid-url", Area::Elicitation, &["elicitation.url.valid"])
        .says("The page that the user is asked to visit has a valid URL.")
        .cure("Put an absolute URL into `url`.")
        .ask(|visit| Box::pin(elicitation::valid_url(visit))),
    Rule::server("elicitation.https", Area::Elicitation, &["elicitation.url.https"])
        .says("The page that the user is asked to visit is reached by https.")
        .cure("Use an https URL.")
        .ask(|visit| Box::pin(elicitation::https(visit))),
    Rule::server("elicitation.complete-known", Area::Elicitation, &["elicitation.url.complete-id"])
        .says("What is told to be complete is an elicitation that was asked for.")
        .cure("Repeat the `elicitationId` of the request in `notifications/elicitation/complete`.")
        .look(|visit, _| elicitation::complete_known(visit)),
    Rule::server(
        "elicitation.complete-is-gone",
        Area::Elicitation,
        &["elicitation.url.complete-removed"],
    )
    .says("There is no `notifications/elicitation/complete` any more.")
    .cure("Let the client come back with the request instead of telling it.")
    .look(|visit, _| elicitation::complete_is_gone(visit)),
    Rule::server(
        "elicitation.required-error",
        Area::Elicitation,
        &["elicitation.url.required-error-list", "elicitation.url.required-error-mode"],
    )
    .says("The error -32042 lists the pages to visit, each with its id.")
    .cure("Fill `data.elicitations` with elicitations of the mode `url` that have an `elicitationId`.")
    .look(|visit, _| elicitation::required_error(visit)),
    Rule::server(
        "sampling.tool-results",
        Area::Sampling,
        &["sampling.tool-result.only", "sampling.tool-result.balance", "sampling.tool-result.match"],
    )
    .says("Each use of a tool in the messages for a model is followed by its result, in a message of results only.")
    .cure("Answer all uses of tools of a message in the next one, by their ids and with nothing else in it.")
    .look(|visit, _| sampling::tool_results(visit)),
    Rule::server(
        "sampling.context",
        Area::Sampling,
        &["sampling.context.capability", "sampling.context.avoid"],
    )
    .says("No context of servers is asked for where the client does not declare `sampling.context`.")
    .cure("Leave `includeContext` out, or say `none`.")
    .ask(|visit| Box::pin(sampling::context(visit))),
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
