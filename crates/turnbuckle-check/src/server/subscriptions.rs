//! Being told of changes.

mod changed_lists;
mod legacy;
mod modern;

use crate::rule::{Area, On, Rule};

/// What tells that something has changed, with what asks for it and what declares it.
const CHANGES: [(&str, &str, &str); 3] = [
    (
        "notifications/tools/list_changed",
        "toolsListChanged",
        "/tools/listChanged",
    ),
    (
        "notifications/prompts/list_changed",
        "promptsListChanged",
        "/prompts/listChanged",
    ),
    (
        "notifications/resources/list_changed",
        "resourcesListChanged",
        "/resources/listChanged",
    ),
];

/// What tells that a resource has new content.
const UPDATED: &str = "notifications/resources/updated";

/// What says that somebody listens from now on.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "subscriptions.subscribe",
        Area::Subscriptions,
        &["resources.subscribe.legacy-methods"],
    )
    .says("A server that declares `resources.subscribe` lets a resource be subscribed to, and unsubscribed from.")
    .cure("Answer `resources/subscribe` and `resources/unsubscribe` with an empty result, or do not declare `resources.subscribe`.")
    .ask(|visit| Box::pin(legacy::subscribe(visit))),
    Rule::server(
        "subscriptions.only-subscribed",
        Area::Subscriptions,
        &["resources.subscribe.updated"],
    )
    .says("New content is told of resources that are subscribed to, and of no others.")
    .cure("Send `notifications/resources/updated` only between `resources/subscribe` and `resources/unsubscribe` for the URI.")
    .gently()
    .ask(|visit| Box::pin(legacy::only_subscribed(visit))),
    Rule::server(
        "subscriptions.changes-declared",
        Area::Subscriptions,
        &["lifecycle.operation.capabilities-should", "lifecycle.operation.capabilities-must"],
    )
    .says("A server that tells of changed lists declares `listChanged` for them.")
    .cure("Declare `listChanged` with the capability whose list changes, or send no such notification.")
    .ask(|visit| Box::pin(legacy::changes_declared(visit))),
    Rule::server(
        "subscriptions.changes-told",
        Area::Subscriptions,
        &[
            "tools.list-changed.send",
            "prompts.list-changed.send",
            "resources.list-changed.send",
        ],
    )
    .says("A server that declares `listChanged` sends a notification when the list changes.")
    .cure("Send `notifications/tools/list_changed`, or the one for prompts or resources, whenever an entry is added, removed or renamed.")
    .ask(|visit| Box::pin(changed_lists::told(visit))),
    Rule::server(
        "subscriptions.acknowledged-first",
        Area::Subscriptions,
        &["subscriptions.ack.first", "subscriptions.ack.nothing-before"],
    )
    .says("Whoever listens hears first that it is acknowledged.")
    .cure("Send `notifications/subscriptions/acknowledged` before anything else of the subscription.")
    .ask(|visit| Box::pin(modern::acknowledged_first(visit))),
    Rule::server(
        "subscriptions.acknowledges-less-or-equal",
        Area::Subscriptions,
        &["subscriptions.ack.subset"],
    )
    .says("What is acknowledged was asked for.")
    .cure("Repeat in the acknowledgement only the parts of the filter that will be served.")
    .ask(|visit| Box::pin(modern::acknowledges_subset(visit))),
    Rule::server(
        "subscriptions.tagged",
        Area::Subscriptions,
        &["subscriptions.id.tag", "subscriptions.id.value"],
    )
    .says("All that is told to a listener bears the id of its request, a number as a number and a text as a text.")
    .cure("Put the id of the request `subscriptions/listen` into `_meta` of every notification, with its type.")
    .ask(|visit| Box::pin(modern::tagged(visit))),
    Rule::server(
        "subscriptions.only-asked",
        Area::Subscriptions,
        &[
            "subscriptions.filter.only-requested",
            "subscriptions.no-request-scoped",
            "resources.subscribe.modern",
            "logging.request.own-stream",
        ],
    )
    .says("A listener hears what its filter asks for, and neither other changes nor progress nor log messages.")
    .cure("Compare each change with the filter of each subscription, and keep all else on the stream of its own request.")
    .ask(|visit| Box::pin(modern::only_asked(visit))),
    Rule::server(
        "subscriptions.stops",
        Area::Subscriptions,
        &["subscriptions.client-cancel.stop"],
    )
    .says("A subscription that was cancelled tells no more.")
    .cure("Forget the subscription when `notifications/cancelled` names its request.")
    .on(On::Lines)
    .ask(|visit| Box::pin(modern::stops(visit))),
    Rule::server(
        "subscriptions.end-tagged",
        Area::Subscriptions,
        &["subscriptions.close.response-id"],
    )
    .says("The result that ends a subscription bears its id.")
    .cure("Put the id of the request into `_meta` of the result that ends it.")
    .look(|visit, _| modern::end_tagged(visit)),
    Rule::server(
        "subscriptions.subscribe-is-gone",
        Area::Subscriptions,
        &["resources.subscribe.removed"],
    )
    .says("There is no `resources/subscribe` and no `resources/unsubscribe` any more.")
    .cure("Treat both as unknown methods in this revision; `subscriptions/listen` is there instead.")
    .gently()
    .ask(|visit| Box::pin(modern::subscribe_is_gone(visit))),
];
