//! Calls that become tasks: when the client asks for it in 2025-11-25, when the server wants it by the extension of 2026-07-28.

mod extension;
mod extension_methods;
mod legacy;
mod legacy_messages;

use crate::rule::{Area, Rule, Transports};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("tasks.created", Area::Tasks, &["tasks.create.result"])
        .requirement("A call that is asked to become a task is answered with the task.")
        .fix("Answer with `task` instead of the result of the tool when the call has the parameter `task`.")
        .active(|ctx| Box::pin(legacy::created(ctx))),
    Rule::server("tasks.begins-working", Area::Tasks, &["tasks.status.initial"])
        .requirement("A task begins with the status `working`.")
        .fix("Set the status `working` when a task is created.")
        .active(|ctx| Box::pin(legacy::begins_working(ctx))),
    Rule::server(
        "tasks.valid-steps",
        Area::Tasks,
        &["tasks.status.transitions", "tasks.status.terminal"],
    )
    .requirement("A task that is over stays as it is.")
    .fix("Let nothing change the status `completed`, `failed` or `cancelled`.")
    .active(|ctx| Box::pin(legacy::valid_steps(ctx))),
    Rule::server("tasks.ids-differ", Area::Tasks, &["tasks.id.unique"])
        .requirement("No two tasks have the same id.")
        .fix("Make up a new id for every task.")
        .active(|ctx| Box::pin(legacy::ids_differ(ctx))),
    Rule::server(
        "tasks.ids-unguessable",
        Area::Tasks,
        &["tasks.security.entropy", "ext-tasks.security.entropy"],
    )
    .requirement("Nobody can guess the id of a task.")
    .fix("Make ids of at least 128 random bits, such as a random UUID.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(legacy::ids_unguessable(ctx))),
    Rule::server("tasks.only-as-task", Area::Tasks, &["tasks.tool.required-server"])
        .requirement("A tool that is called as a task or not at all refuses a plain call with the error -32601.")
        .fix("Answer with the error -32601 when `taskSupport` is `required` and the call has no `task`.")
        .active(|ctx| Box::pin(legacy::only_as_task(ctx))),
    Rule::server("tasks.never-as-task", Area::Tasks, &["tasks.tool.forbidden-server"])
        .requirement("A tool without support for tasks refuses to become one with the error -32601.")
        .fix("Answer with the error -32601 when a call has `task` and its tool has no `taskSupport`.")
        .active(|ctx| Box::pin(legacy::never_as_task(ctx))),
    Rule::server(
        "tasks.undeclared-ignored",
        Area::Tasks,
        &["tasks.capability.ignore-undeclared", "tasks.capability"],
    )
    .requirement("A server that declares no tasks for calls of tools makes none: it ignores the parameter.")
    .fix("Declare `tasks.requests.tools.call`, or answer as if `task` were not there.")
    .active(|ctx| Box::pin(legacy::undeclared_ignored(ctx))),
    Rule::server(
        "tasks.result",
        Area::Tasks,
        &["tasks.result.terminal", "tasks.result.success", "tasks.result.error"],
    )
    .requirement("`tasks/result` brings what the call itself would have brought.")
    .fix("Keep the result or the error of the call, and answer `tasks/result` with it.")
    .active(|ctx| Box::pin(legacy::result(ctx))),
    Rule::server("tasks.result-waits", Area::Tasks, &["tasks.result.block"])
        .requirement("`tasks/result` is answered when the task is over, and not before.")
        .fix("Hold the answer to `tasks/result` back until the task is over.")
        .active(|ctx| Box::pin(legacy::result_waits(ctx))),
    Rule::server("tasks.result-related", Area::Tasks, &["tasks.result.related"])
        .requirement("The answer to `tasks/result` names its task.")
        .fix("Put `io.modelcontextprotocol/related-task` with the id into `_meta` of the result.")
        .active(|ctx| Box::pin(legacy_messages::result_related(ctx))),
    Rule::server(
        "tasks.messages-related",
        Area::Tasks,
        &["tasks.input.related", "tasks.related.all"],
    )
    .requirement("What a server asks or reports for a task names the task.")
    .fix("Put `io.modelcontextprotocol/related-task` with the id into `_meta` of each message that belongs to a task.")
    .active(|ctx| Box::pin(legacy_messages::messages_related(ctx))),
    Rule::server(
        "tasks.methods-unrelated",
        Area::Tasks,
        &["tasks.related.not-on-methods", "tasks.notify.no-related"],
    )
    .requirement("What says by itself which task it is about does not say so again in `_meta`.")
    .fix("Leave `io.modelcontextprotocol/related-task` out of results of `tasks/get` and of status notifications.")
    .active(|ctx| Box::pin(legacy_messages::methods_unrelated(ctx))),
    Rule::server("tasks.parameter-wins", Area::Tasks, &["tasks.related.param-wins"])
        .requirement("Which task is meant is said by the parameter `taskId`, whatever `_meta` says.")
        .fix("Ignore `io.modelcontextprotocol/related-task` on `tasks/get`, `tasks/result` and `tasks/cancel`.")
        .active(|ctx| Box::pin(legacy_messages::parameter_wins(ctx))),
    Rule::server(
        "tasks.progress-ends",
        Area::Tasks,
        &["progress.task.stop", "progress.task.token"],
    )
    .requirement("A task that is over reports no progress.")
    .fix("Stop reporting progress before the task gets its last status.")
    .active(|ctx| Box::pin(legacy_messages::progress_ends(ctx))),
    Rule::server("tasks.get-is-no-stream", Area::Tasks, &["tasks.http.get-no-sse"])
        .requirement("`tasks/get` is answered at once, without a stream.")
        .fix("Answer `tasks/get` with `application/json`.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(legacy_messages::get_is_no_stream(ctx))),
    Rule::server("tasks.failed-with-tool", Area::Tasks, &["tasks.status.tool-error-failed"])
        .requirement("The task of a tool that fails ends with the status `failed`.")
        .fix("Set the status `failed` when the result has `isError`.")
        .active(|ctx| Box::pin(legacy::failed_with_tool(ctx))),
    Rule::server(
        "tasks.failure-explained",
        Area::Tasks,
        &["tasks.get.status-message", "ext-tasks.get.failed-message"],
    )
    .requirement("A task that has failed says why in `statusMessage`.")
    .fix("Fill `statusMessage` when a task fails.")
    .active(|ctx| Box::pin(legacy::failure_explained(ctx))),
    Rule::server(
        "tasks.list",
        Area::Tasks,
        &["tasks.capability.list-method", "tasks.list.complete", "tasks.list.next-cursor"],
    )
    .requirement("A server that declares `tasks.list` lists every task that can be got, page by page.")
    .fix("List all tasks of the requestor, and give a `nextCursor` while there are more.")
    .active(|ctx| Box::pin(legacy_messages::list(ctx))),
    Rule::server("tasks.list-cursor", Area::Tasks, &["tasks.error.cursor"])
        .requirement("A cursor that `tasks/list` has not given is refused with the error -32602.")
        .fix("Answer with the error -32602 when the cursor is unknown.")
        .active(|ctx| Box::pin(legacy_messages::list_cursor(ctx))),
    Rule::server(
        "tasks.unknown-id",
        Area::Tasks,
        &["tasks.error.unknown-id", "ext-tasks.error.unknown-get"],
    )
    .requirement("An unknown task is refused with the error -32602.")
    .fix("Answer with the error -32602 when there is no task with the id.")
    .active(|ctx| Box::pin(legacy_messages::unknown_id(ctx))),
    Rule::server(
        "tasks.unknown-id-elsewhere",
        Area::Tasks,
        &["ext-tasks.update.unknown-task"],
    )
    .requirement("An unknown task is neither updated nor cancelled, but refused with the error -32602.")
    .fix("Answer `tasks/update` and `tasks/cancel` with the error -32602 when there is no task with the id.")
    .active(|ctx| Box::pin(legacy_messages::unknown_id_elsewhere(ctx))),
    Rule::server("tasks.cancel-when-over", Area::Tasks, &["tasks.cancel.terminal-reject"])
        .requirement("A task that is over cannot be cancelled: the error is -32602.")
        .fix("Answer `tasks/cancel` with the error -32602 when the task is over.")
        .active(|ctx| Box::pin(legacy_messages::when_over(ctx))),
    Rule::server(
        "tasks.cancel",
        Area::Tasks,
        &["tasks.cancel.before-response", "tasks.cancel.final"],
    )
    .requirement("A task that is cancelled has the status `cancelled` when that is answered, and keeps it.")
    .fix("Set the status before answering `tasks/cancel`, and ignore what comes of the work afterwards.")
    .active(|ctx| Box::pin(legacy_messages::cancel(ctx))),
    Rule::server(
        "tasks.extension-is-for-later",
        Area::Tasks,
        &["ext-tasks.legacy.not-in-2025-11-25"],
    )
    .requirement("The extension makes no tasks in this revision.")
    .fix("Make tasks only of calls that have the parameter `task` in this revision.")
    .active(|ctx| Box::pin(legacy::extension_is_for_later(ctx))),
    Rule::server(
        "tasks.undeclared-extension",
        Area::Tasks,
        &["ext-tasks.create.undeclared", "ext-tasks.legacy.old-client", "ext-tasks.legacy.ignore-task-param"],
    )
    .requirement("A call becomes a task only if its request declares the extension, whatever else it says.")
    .fix("Look at the capabilities of the request at hand, and ignore the parameter `task` and the old capability `tasks`.")
    .active(|ctx| Box::pin(extension::undeclared_extension(ctx))),
    Rule::server("tasks.needs-extension", Area::Tasks, &["ext-tasks.create.required-error"])
        .requirement("What can only be done as a task is refused with the error -32021, which names the extension.")
        .fix("Name `io.modelcontextprotocol/tasks` under `extensions` in `data.requiredCapabilities`.")
        .active(|ctx| Box::pin(extension::needs_extension(ctx))),
    Rule::server("tasks.found-at-once", Area::Tasks, &["ext-tasks.create.durable"])
        .requirement("A task that was returned can be got.")
        .fix("Store the task before the call is answered.")
        .active(|ctx| Box::pin(extension::found_at_once(ctx))),
    Rule::server(
        "tasks.outcome",
        Area::Tasks,
        &["ext-tasks.status.tool-error-completed", "ext-tasks.status.failed-only-jsonrpc",],
    )
    .requirement("A task whose tool has a result is completed, also if the tool failed; only an error of the protocol lets a task fail.")
    .fix("Use `completed` for every result of a tool and `failed` for errors of JSON-RPC.")
    .active(|ctx| Box::pin(extension::outcome(ctx))),
    Rule::server(
        "tasks.questions",
        Area::Tasks,
        &["ext-tasks.get.input-required", "ext-tasks.input.key-unique"],
    )
    .requirement("A task that waits for input says what it wants to know, each under a key of its own.")
    .fix("List all open questions in `inputRequests`, and use no key twice in the life of a task.")
    .active(|ctx| Box::pin(extension::client_requests(ctx))),
    Rule::server("tasks.no-progress", Area::Tasks, &["ext-tasks.notify.no-progress"])
        .requirement("A task reports no progress and logs nothing: whoever wants to know asks.")
        .fix("Send neither progress nor log messages once a call has become a task.")
        .active(|ctx| Box::pin(extension::no_progress(ctx))),
    Rule::server(
        "tasks.result-types",
        Area::Tasks,
        &["ext-tasks.result-type.get", "ext-tasks.result-type.update", "ext-tasks.result-type.cancel", "ext-tasks.result-type.only-create"],
    )
    .requirement("The results of `tasks/get`, `tasks/update` and `tasks/cancel` have the `resultType` `complete`.")
    .fix("Use `task` for the answer to the call that became a task, and for nothing else.")
    .active(|ctx| Box::pin(extension_methods::result_types(ctx))),
    Rule::server(
        "tasks.acknowledged",
        Area::Tasks,
        &["ext-tasks.update.ack", "ext-tasks.cancel.ack"],
    )
    .requirement("`tasks/update` and `tasks/cancel` are acknowledged with an empty result.")
    .fix("Answer with nothing but `resultType`: how the task is doing is for `tasks/get` to say.")
    .active(|ctx| Box::pin(extension_methods::acknowledged(ctx))),
    Rule::server("tasks.surplus-answers", Area::Tasks, &["ext-tasks.update.ignore-keys"])
        .requirement("An answer to a question that no task has asked is ignored.")
        .fix("Ignore keys of `inputResponses` that are not outstanding.")
        .active(|ctx| Box::pin(extension_methods::surplus_answers(ctx))),
    Rule::server("tasks.methods-undeclared", Area::Tasks, &["ext-tasks.error.undeclared"])
        .requirement("Whoever does not declare the extension is refused by its methods with the error -32021.")
        .fix("Answer `tasks/get`, `tasks/update` and `tasks/cancel` with the error -32021 when the request does not declare the extension.")
        .active(|ctx| Box::pin(extension_methods::methods_undeclared(ctx))),
    Rule::server("tasks.listen-undeclared", Area::Tasks, &["ext-tasks.notify.undeclared"])
        .requirement("Whoever does not declare the extension cannot listen to tasks: the error is -32021.")
        .fix("Answer `subscriptions/listen` with the error -32021 when it has `taskIds` and does not declare the extension.")
        .active(|ctx| Box::pin(extension_methods::listen_undeclared(ctx))),
    Rule::server("tasks.methods-are-gone", Area::Tasks, &["ext-tasks.legacy.no-result-method"])
        .requirement("There is no `tasks/result` and no `tasks/list` any more.")
        .fix("Treat both as unknown methods in this revision.")
        .active(|ctx| Box::pin(extension_methods::methods_are_gone(ctx))),
    Rule::server("tasks.capability-is-gone", Area::Tasks, &["ext-tasks.legacy.no-old-capability"])
        .requirement("There is no capability `tasks` any more, but an extension.")
        .fix("Declare `io.modelcontextprotocol/tasks` under `extensions` instead.")
        .active(|ctx| Box::pin(extension_methods::capability_is_gone(ctx))),
];
