//! Tasks: requested by the client in 2025-11-25, created by the server with the extension of 2026-07-28.

mod extension;
mod extension_methods;
mod legacy;
mod legacy_messages;

use crate::rule::{Area, Rule, Transports};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("tasks.created", Area::Tasks, &["tasks.create.result"])
        .requirement("The server returns a task for a call with the parameter `task`.")
        .hint("Return `task` instead of the tool's result when the call has the parameter `task`.")
        .active(|ctx| Box::pin(legacy::created(ctx))),
    Rule::server("tasks.begins-working", Area::Tasks, &["tasks.status.initial"])
        .requirement("The first status of a task is `working`.")
        .hint("Set the status `working` when a task is created.")
        .active(|ctx| Box::pin(legacy::begins_working(ctx))),
    Rule::server(
        "tasks.valid-steps",
        Area::Tasks,
        &["tasks.status.transitions", "tasks.status.terminal"],
    )
    .requirement("A finished task does not change its status.")
    .hint("Do not change the status `completed`, `failed` or `cancelled`.")
    .active(|ctx| Box::pin(legacy::valid_steps(ctx))),
    Rule::server("tasks.ids-differ", Area::Tasks, &["tasks.id.unique"])
        .requirement("Task ids are unique.")
        .hint("Generate a new id for every task.")
        .active(|ctx| Box::pin(legacy::ids_differ(ctx))),
    Rule::server(
        "tasks.ids-unguessable",
        Area::Tasks,
        &["tasks.security.entropy", "ext-tasks.security.entropy"],
    )
    .requirement("Task ids cannot be guessed.")
    .hint("Generate ids from at least 128 random bits, such as a random UUID.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(legacy::ids_unguessable(ctx))),
    Rule::server("tasks.only-as-task", Area::Tasks, &["tasks.tool.required-server"])
        .requirement("The server returns error -32601 for a plain call of a tool that requires tasks.")
        .hint("Return error -32601 when `taskSupport` is `required` and the call lacks `task`.")
        .active(|ctx| Box::pin(legacy::only_as_task(ctx))),
    Rule::server("tasks.never-as-task", Area::Tasks, &["tasks.tool.forbidden-server"])
        .requirement("The server returns error -32601 for a task call of a tool without task support.")
        .hint("Return error -32601 when a call has `task` and its tool lacks `taskSupport`.")
        .active(|ctx| Box::pin(legacy::never_as_task(ctx))),
    Rule::server(
        "tasks.undeclared-ignored",
        Area::Tasks,
        &["tasks.capability.ignore-undeclared", "tasks.capability"],
    )
    .requirement("A server that does not declare tasks for tool calls ignores the parameter `task`.")
    .hint("Declare `tasks.requests.tools.call`, or respond as if `task` were missing.")
    .active(|ctx| Box::pin(legacy::undeclared_ignored(ctx))),
    Rule::server(
        "tasks.result",
        Area::Tasks,
        &["tasks.result.terminal", "tasks.result.success", "tasks.result.error"],
    )
    .requirement("`tasks/result` returns what the call itself would have returned.")
    .hint("Store the result or the error of the call, and return it for `tasks/result`.")
    .active(|ctx| Box::pin(legacy::result(ctx))),
    Rule::server("tasks.result-waits", Area::Tasks, &["tasks.result.block"])
        .requirement("The server responds to `tasks/result` when the task is finished, not before.")
        .hint("Delay the response to `tasks/result` until the task is finished.")
        .active(|ctx| Box::pin(legacy::result_waits(ctx))),
    Rule::server("tasks.result-related", Area::Tasks, &["tasks.result.related"])
        .requirement("The result of `tasks/result` references its task.")
        .hint("Put `io.modelcontextprotocol/related-task` with the id into `_meta` of the result.")
        .active(|ctx| Box::pin(legacy_messages::result_related(ctx))),
    Rule::server(
        "tasks.messages-related",
        Area::Tasks,
        &["tasks.input.related", "tasks.related.all"],
    )
    .requirement("Requests and notifications of a task reference the task.")
    .hint("Put `io.modelcontextprotocol/related-task` with the id into `_meta` of each message of a task.")
    .active(|ctx| Box::pin(legacy_messages::messages_related(ctx))),
    Rule::server(
        "tasks.methods-unrelated",
        Area::Tasks,
        &["tasks.related.not-on-methods", "tasks.notify.no-related"],
    )
    .requirement("Messages with a `taskId` member do not repeat it in `_meta`.")
    .hint("Omit `io.modelcontextprotocol/related-task` from results of `tasks/get` and from status notifications.")
    .active(|ctx| Box::pin(legacy_messages::methods_unrelated(ctx))),
    Rule::server("tasks.parameter-wins", Area::Tasks, &["tasks.related.param-wins"])
        .requirement("The parameter `taskId` selects the task, whatever `_meta` contains.")
        .hint("Ignore `io.modelcontextprotocol/related-task` on `tasks/get`, `tasks/result` and `tasks/cancel`.")
        .active(|ctx| Box::pin(legacy_messages::parameter_wins(ctx))),
    Rule::server(
        "tasks.progress-ends",
        Area::Tasks,
        &["progress.task.stop", "progress.task.token"],
    )
    .requirement("The server sends no progress for a finished task.")
    .hint("Send no progress after the final status of the task.")
    .active(|ctx| Box::pin(legacy_messages::progress_ends(ctx))),
    Rule::server("tasks.get-is-no-stream", Area::Tasks, &["tasks.http.get-no-sse"])
        .requirement("The server responds to `tasks/get` immediately, without a stream.")
        .hint("Respond to `tasks/get` with `application/json`.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(legacy_messages::get_is_no_stream(ctx))),
    Rule::server("tasks.failed-with-tool", Area::Tasks, &["tasks.status.tool-error-failed"])
        .requirement("The task of a tool that fails ends with the status `failed`.")
        .hint("Set the status `failed` when the result has `isError`.")
        .active(|ctx| Box::pin(legacy::failed_with_tool(ctx))),
    Rule::server(
        "tasks.failure-explained",
        Area::Tasks,
        &["tasks.get.status-message", "ext-tasks.get.failed-message"],
    )
    .requirement("A failed task has a `statusMessage`.")
    .hint("Set `statusMessage` when a task fails.")
    .active(|ctx| Box::pin(legacy::failure_explained(ctx))),
    Rule::server(
        "tasks.list",
        Area::Tasks,
        &["tasks.capability.list-method", "tasks.list.complete", "tasks.list.next-cursor"],
    )
    .requirement("A server that declares `tasks.list` lists every available task, page by page.")
    .hint("List all tasks of the requestor, and return a `nextCursor` while there are more.")
    .active(|ctx| Box::pin(legacy_messages::list(ctx))),
    Rule::server("tasks.list-cursor", Area::Tasks, &["tasks.error.cursor"])
        .requirement("The server returns error -32602 for `tasks/list` with an unknown cursor.")
        .hint("Return error -32602 when the cursor is unknown.")
        .active(|ctx| Box::pin(legacy_messages::list_cursor(ctx))),
    Rule::server(
        "tasks.unknown-id",
        Area::Tasks,
        &["tasks.error.unknown-id", "ext-tasks.error.unknown-get"],
    )
    .requirement("The server returns error -32602 for an unknown task.")
    .hint("Return error -32602 when the task id is unknown.")
    .active(|ctx| Box::pin(legacy_messages::unknown_id(ctx))),
    Rule::server(
        "tasks.unknown-id-elsewhere",
        Area::Tasks,
        &["ext-tasks.update.unknown-task"],
    )
    .requirement("The server returns error -32602 for `tasks/update` and `tasks/cancel` with an unknown task.")
    .hint("Return error -32602 for `tasks/update` and `tasks/cancel` when the task id is unknown.")
    .active(|ctx| Box::pin(legacy_messages::unknown_id_elsewhere(ctx))),
    Rule::server("tasks.cancel-when-over", Area::Tasks, &["tasks.cancel.terminal-reject"])
        .requirement("The server returns error -32602 for `tasks/cancel` on a finished task.")
        .hint("Return error -32602 for `tasks/cancel` when the task is finished.")
        .active(|ctx| Box::pin(legacy_messages::cancel_finished(ctx))),
    Rule::server(
        "tasks.cancel",
        Area::Tasks,
        &["tasks.cancel.before-response", "tasks.cancel.final"],
    )
    .requirement("A task has the status `cancelled` when `tasks/cancel` returns, and keeps it.")
    .hint("Set the status before responding to `tasks/cancel`, and ignore the outcome of the work afterwards.")
    .active(|ctx| Box::pin(legacy_messages::cancel(ctx))),
    Rule::server(
        "tasks.extension-is-for-later",
        Area::Tasks,
        &["ext-tasks.legacy.not-in-2025-11-25"],
    )
    .requirement("The tasks extension does not create tasks in this revision.")
    .hint("Create tasks only for calls with the parameter `task` in this revision.")
    .active(|ctx| Box::pin(legacy::extension_not_yet_defined(ctx))),
    Rule::server(
        "tasks.undeclared-extension",
        Area::Tasks,
        &["ext-tasks.create.undeclared", "ext-tasks.legacy.old-client", "ext-tasks.legacy.ignore-task-param"],
    )
    .requirement("The server creates a task only if the request declares the extension, whatever else it contains.")
    .hint("Check the capabilities of the current request, and ignore the parameter `task` and the old capability `tasks`.")
    .active(|ctx| Box::pin(extension::undeclared_extension(ctx))),
    Rule::server("tasks.needs-extension", Area::Tasks, &["ext-tasks.create.required-error"])
        .requirement("The server returns error -32021 with the extension for a tool that requires a task.")
        .hint("List `io.modelcontextprotocol/tasks` under `extensions` in `data.requiredCapabilities`.")
        .active(|ctx| Box::pin(extension::needs_extension(ctx))),
    Rule::server("tasks.found-at-once", Area::Tasks, &["ext-tasks.create.durable"])
        .requirement("`tasks/get` finds a task as soon as the call returned it.")
        .hint("Store the task before responding to the call.")
        .active(|ctx| Box::pin(extension::found_immediately(ctx))),
    Rule::server(
        "tasks.outcome",
        Area::Tasks,
        &["ext-tasks.status.tool-error-completed", "ext-tasks.status.failed-only-jsonrpc",],
    )
    .requirement("A task is `completed` if its tool returns a result, even with `isError`; it is `failed` only after a JSON-RPC error.")
    .hint("Use `completed` for every tool result, and `failed` for JSON-RPC errors.")
    .active(|ctx| Box::pin(extension::outcome(ctx))),
    Rule::server(
        "tasks.questions",
        Area::Tasks,
        &["ext-tasks.get.input-required", "ext-tasks.input.key-unique"],
    )
    .requirement("A task that waits for input lists its input requests, each under a unique key.")
    .hint("List all open input requests in `inputRequests`, and do not reuse a key within a task.")
    .active(|ctx| Box::pin(extension::client_requests(ctx))),
    Rule::server("tasks.no-progress", Area::Tasks, &["ext-tasks.notify.no-progress"])
        .requirement("The server sends no progress and no log messages for a task.")
        .hint("Send neither progress nor log messages after a call has become a task.")
        .active(|ctx| Box::pin(extension::no_progress(ctx))),
    Rule::server(
        "tasks.result-types",
        Area::Tasks,
        &["ext-tasks.result-type.get", "ext-tasks.result-type.update", "ext-tasks.result-type.cancel", "ext-tasks.result-type.only-create"],
    )
    .requirement("The results of `tasks/get`, `tasks/update` and `tasks/cancel` have the `resultType` `complete`.")
    .hint("Use the `resultType` `task` only for the result of the call that became a task.")
    .active(|ctx| Box::pin(extension_methods::result_types(ctx))),
    Rule::server(
        "tasks.acknowledged",
        Area::Tasks,
        &["ext-tasks.update.ack", "ext-tasks.cancel.ack"],
    )
    .requirement("The server returns an empty result for `tasks/update` and `tasks/cancel`.")
    .hint("Return only `resultType`: `tasks/get` returns the state of the task.")
    .active(|ctx| Box::pin(extension_methods::acknowledged(ctx))),
    Rule::server("tasks.surplus-answers", Area::Tasks, &["ext-tasks.update.ignore-keys"])
        .requirement("The server ignores an input response that no task requested.")
        .hint("Ignore keys of `inputResponses` that are not outstanding.")
        .active(|ctx| Box::pin(extension_methods::surplus_responses(ctx))),
    Rule::server("tasks.methods-undeclared", Area::Tasks, &["ext-tasks.error.undeclared"])
        .requirement("The server returns error -32021 for the methods of the extension if the request does not declare it.")
        .hint("Return error -32021 for `tasks/get`, `tasks/update` and `tasks/cancel` when the request does not declare the extension.")
        .active(|ctx| Box::pin(extension_methods::methods_undeclared(ctx))),
    Rule::server("tasks.listen-undeclared", Area::Tasks, &["ext-tasks.notify.undeclared"])
        .requirement("The server returns error -32021 for a subscription to tasks if the request does not declare the extension.")
        .hint("Return error -32021 for `subscriptions/listen` with `taskIds` when the request does not declare the extension.")
        .active(|ctx| Box::pin(extension_methods::listen_undeclared(ctx))),
    Rule::server("tasks.methods-are-gone", Area::Tasks, &["ext-tasks.legacy.no-result-method"])
        .requirement("The server returns error -32601 for `tasks/result` and `tasks/list`, which this revision removed.")
        .hint("Treat both as unknown methods in this revision.")
        .active(|ctx| Box::pin(extension_methods::methods_removed(ctx))),
    Rule::server("tasks.capability-is-gone", Area::Tasks, &["ext-tasks.legacy.no-old-capability"])
        .requirement("The server does not declare the capability `tasks`, which an extension replaces.")
        .hint("Declare `io.modelcontextprotocol/tasks` under `extensions` instead.")
        .active(|ctx| Box::pin(extension_methods::capability_removed(ctx))),
];
