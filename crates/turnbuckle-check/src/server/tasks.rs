//! Calls that become tasks: when the client asks for it in 2025-11-25, when the server wants it by the extension of 2026-07-28.

mod asked;
mod asked_cancel;
mod asked_messages;
mod offered;
mod offered_methods;

use crate::rule::{Area, On, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("tasks.created", Area::Tasks, &["tasks.create.result"])
        .says("A call that is asked to become a task is answered with the task.")
        .cure("Answer with `task` instead of the result of the tool when the call has the parameter `task`.")
        .ask(|visit| Box::pin(asked::created(visit))),
    Rule::server("tasks.begins-working", Area::Tasks, &["tasks.status.initial"])
        .says("A task begins with the status `working`.")
        .cure("Set the status `working` when a task is created.")
        .ask(|visit| Box::pin(asked::begins_working(visit))),
    Rule::server(
        "tasks.valid-steps",
        Area::Tasks,
        &["tasks.status.transitions", "tasks.status.terminal"],
    )
    .says("A task that is over stays as it is.")
    .cure("Let nothing change the status `completed`, `failed` or `cancelled`.")
    .ask(|visit| Box::pin(asked::valid_steps(visit))),
    Rule::server("tasks.ids-differ", Area::Tasks, &["tasks.id.unique"])
        .says("No two tasks have the same id.")
        .cure("Make up a new id for every task.")
        .ask(|visit| Box::pin(asked::ids_differ(visit))),
    Rule::server(
        "tasks.ids-unguessable",
        Area::Tasks,
        &["tasks.security.entropy", "ext-tasks.security.entropy"],
    )
    .says("Nobody can guess the id of a task.")
    .cure("Make ids of at least 128 random bits, such as a random UUID.")
    .on(On::Http)
    .ask(|visit| Box::pin(asked::ids_unguessable(visit))),
    Rule::server("tasks.only-as-task", Area::Tasks, &["tasks.tool.required-server"])
        .says("A tool that is called as a task or not at all refuses a plain call with the error -32601.")
        .cure("Answer with the error -32601 when `taskSupport` is `required` and the call has no `task`.")
        .ask(|visit| Box::pin(asked::only_as_task(visit))),
    Rule::server("tasks.never-as-task", Area::Tasks, &["tasks.tool.forbidden-server"])
        .says("A tool without support for tasks refuses to become one with the error -32601.")
        .cure("Answer with the error -32601 when a call has `task` and its tool has no `taskSupport`.")
        .ask(|visit| Box::pin(asked::never_as_task(visit))),
    Rule::server(
        "tasks.undeclared-ignored",
        Area::Tasks,
        &["tasks.capability.ignore-undeclared", "tasks.capability"],
    )
    .says("A server that declares no tasks for calls of tools makes none: it ignores the parameter.")
    .cure("Declare `tasks.requests.tools.call`, or answer as if `task` were not there.")
    .ask(|visit| Box::pin(asked::undeclared_ignored(visit))),
    Rule::server(
        "tasks.result",
        Area::Tasks,
        &["tasks.result.terminal", "tasks.result.success", "tasks.result.error"],
    )
    .says("`tasks/result` brings what the call itself would have brought.")
    .cure("Keep the result or the error of the call, and answer `tasks/result` with it.")
    .ask(|visit| Box::pin(asked::result(visit))),
    Rule::server("tasks.result-waits", Area::Tasks, &["tasks.result.block"])
        .says("`tasks/result` is answered when the task is over, and not before.")
        .cure("Hold the answer to `tasks/result` back until the task is over.")
        .ask(|visit| Box::pin(asked::result_waits(visit))),
    Rule::server("tasks.result-related", Area::Tasks, &["tasks.result.related"])
        .says("The answer to `tasks/result` names its task.")
        .cure("Put `io.modelcontextprotocol/related-task` with the id into `_meta` of the result.")
        .ask(|visit| Box::pin(asked_messages::result_related(visit))),
    Rule::server(
        "tasks.messages-related",
        Area::Tasks,
        &["tasks.input.related", "tasks.related.all"],
    )
    .says("What a server asks or reports for a task names the task.")
    .cure("Put `io.modelcontextprotocol/related-task` with the id into `_meta` of each message that belongs to a task.")
    .ask(|visit| Box::pin(asked_messages::messages_related(visit))),
    Rule::server(
        "tasks.methods-unrelated",
        Area::Tasks,
        &["tasks.related.not-on-methods", "tasks.notify.no-related"],
    )
    .says("What says by itself which task it is about does not say so again in `_meta`.")
    .cure("Leave `io.modelcontextprotocol/related-task` out of results of `tasks/get` and of status notifications.")
    .ask(|visit| Box::pin(asked_messages::methods_unrelated(visit))),
    Rule::server("tasks.parameter-wins", Area::Tasks, &["tasks.related.param-wins"])
        .says("Which task is meant is said by the parameter `taskId`, whatever `_meta` says.")
        .cure("Ignore `io.modelcontextprotocol/related-task` on `tasks/get`, `tasks/result` and `tasks/cancel`.")
        .ask(|visit| Box::pin(asked_messages::parameter_wins(visit))),
    Rule::server(
        "tasks.progress-ends",
        Area::Tasks,
        &["progress.task.stop", "progress.task.token"],
    )
    .says("A task that is over reports no progress.")
    .cure("Stop reporting progress before the task gets its last status.")
    .ask(|visit| Box::pin(asked_messages::progress_ends(visit))),
    Rule::server("tasks.get-is-no-stream", Area::Tasks, &["tasks.http.get-no-sse"])
        .says("`tasks/get` is answered at once, without a stream.")
        .cure("Answer `tasks/get` with `application/json`.")
        .on(On::Http)
        .ask(|visit| Box::pin(asked_messages::get_is_no_stream(visit))),
    Rule::server("tasks.failed-with-tool", Area::Tasks, &["tasks.status.tool-error-failed"])
        .says("The task of a tool that fails ends with the status `failed`.")
        .cure("Set the status `failed` when the result has `isError`.")
        .ask(|visit| Box::pin(asked::failed_with_tool(visit))),
    Rule::server(
        "tasks.failure-explained",
        Area::Tasks,
        &["tasks.get.status-message", "ext-tasks.get.failed-message"],
    )
    .says("A task that has failed says why in `statusMessage`.")
    .cure("Fill `statusMessage` when a task fails.")
    .ask(|visit| Box::pin(asked::failure_explained(visit))),
    Rule::server(
        "tasks.list",
        Area::Tasks,
        &["tasks.capability.list-method", "tasks.list.complete", "tasks.list.next-cursor"],
    )
    .says("A server that declares `tasks.list` lists every task that can be got, page by page.")
    .cure("List all tasks of the requestor, and give a `nextCursor` while there are more.")
    .ask(|visit| Box::pin(asked_messages::list(visit))),
    Rule::server("tasks.list-cursor", Area::Tasks, &["tasks.error.cursor"])
        .says("A cursor that `tasks/list` has not given is refused with the error -32602.")
        .cure("Answer with the error -32602 when the cursor is unknown.")
        .ask(|visit| Box::pin(asked_messages::list_cursor(visit))),
    Rule::server(
        "tasks.unknown-id",
        Area::Tasks,
        &["tasks.error.unknown-id", "ext-tasks.error.unknown-get"],
    )
    .says("An unknown task is refused with the error -32602.")
    .cure("Answer with the error -32602 when there is no task with the id.")
    .ask(|visit| Box::pin(asked_cancel::unknown_id(visit))),
    Rule::server(
        "tasks.unknown-id-elsewhere",
        Area::Tasks,
        &["ext-tasks.update.unknown-task"],
    )
    .says("An unknown task is neither updated nor cancelled, but refused with the error -32602.")
    .cure("Answer `tasks/update` and `tasks/cancel` with the error -32602 when there is no task with the id.")
    .ask(|visit| Box::pin(asked_cancel::unknown_id_elsewhere(visit))),
    Rule::server("tasks.cancel-when-over", Area::Tasks, &["tasks.cancel.terminal-reject"])
        .says("A task that is over cannot be cancelled: the error is -32602.")
        .cure("Answer `tasks/cancel` with the error -32602 when the task is over.")
        .ask(|visit| Box::pin(asked_cancel::when_over(visit))),
    Rule::server(
        "tasks.cancel",
        Area::Tasks,
        &["tasks.cancel.before-response", "tasks.cancel.final"],
    )
    .says("A task that is cancelled has the status `cancelled` when that is answered, and keeps it.")
    .cure("Set the status before answering `tasks/cancel`, and ignore what comes of the work afterwards.")
    .ask(|visit| Box::pin(asked_cancel::cancel(visit))),
    Rule::server(
        "tasks.extension-is-for-later",
        Area::Tasks,
        &["ext-tasks.legacy.not-in-2025-11-25"],
    )
    .says("The extension makes no tasks in this revision.")
    .cure("Make tasks only of calls that have the parameter `task` in this revision.")
    .ask(|visit| Box::pin(asked::extension_is_for_later(visit))),
    Rule::server(
        "tasks.undeclared-extension",
        Area::Tasks,
        &["ext-tasks.create.undeclared", "ext-tasks.legacy.old-client", "ext-tasks.legacy.ignore-task-param"],
    )
    .says("A call becomes a task only if its request declares the extension, whatever else it says.")
    .cure("Look at the capabilities of the request at hand, and ignore the parameter `task` and the old capability `tasks`.")
    .ask(|visit| Box::pin(offered::undeclared_extension(visit))),
    Rule::server("tasks.needs-extension", Area::Tasks, &["ext-tasks.create.required-error"])
        .says("What can only be done as a task is refused with the error -32021, which names the extension.")
        .cure("Name `io.modelcontextprotocol/tasks` under `extensions` in `data.requiredCapabilities`.")
        .ask(|visit| Box::pin(offered::needs_extension(visit))),
    Rule::server("tasks.found-at-once", Area::Tasks, &["ext-tasks.create.durable"])
        .says("A task that was returned can be got.")
        .cure("Store the task before the call is answered.")
        .ask(|visit| Box::pin(offered::found_at_once(visit))),
    Rule::server(
        "tasks.outcome",
        Area::Tasks,
        &["ext-tasks.status.tool-error-completed", "ext-tasks.status.failed-only-jsonrpc",],
    )
    .says("A task whose tool has a result is completed, also if the tool failed; only an error of the protocol lets a task fail.")
    .cure("Use `completed` for every result of a tool and `failed` for errors of JSON-RPC.")
    .ask(|visit| Box::pin(offered::outcome(visit))),
    Rule::server(
        "tasks.questions",
        Area::Tasks,
        &["ext-tasks.get.input-required", "ext-tasks.input.key-unique"],
    )
    .says("A task that waits for input says what it wants to know, each under a key of its own.")
    .cure("List all open questions in `inputRequests`, and use no key twice in the life of a task.")
    .ask(|visit| Box::pin(offered::questions(visit))),
    Rule::server("tasks.no-progress", Area::Tasks, &["ext-tasks.notify.no-progress"])
        .says("A task reports no progress and logs nothing: whoever wants to know asks.")
        .cure("Send neither progress nor log messages once a call has become a task.")
        .ask(|visit| Box::pin(offered::no_progress(visit))),
    Rule::server(
        "tasks.result-types",
        Area::Tasks,
        &["ext-tasks.result-type.get", "ext-tasks.result-type.update", "ext-tasks.result-type.cancel", "ext-tasks.result-type.only-create"],
    )
    .says("The results of `tasks/get`, `tasks/update` and `tasks/cancel` have the `resultType` `complete`.")
    .cure("Use `task` for the answer to the call that became a task, and for nothing else.")
    .ask(|visit| Box::pin(offered_methods::result_types(visit))),
    Rule::server(
        "tasks.acknowledged",
        Area::Tasks,
        &["ext-tasks.update.ack", "ext-tasks.cancel.ack"],
    )
    .says("`tasks/update` and `tasks/cancel` are acknowledged with an empty result.")
    .cure("Answer with nothing but `resultType`: how the task is doing is for `tasks/get` to say.")
    .ask(|visit| Box::pin(offered_methods::acknowledged(visit))),
    Rule::server("tasks.surplus-answers", Area::Tasks, &["ext-tasks.update.ignore-keys"])
        .says("An answer to a question that no task has asked is ignored.")
        .cure("Ignore keys of `inputResponses` that are not outstanding.")
        .ask(|visit| Box::pin(offered_methods::surplus_answers(visit))),
    Rule::server("tasks.methods-undeclared", Area::Tasks, &["ext-tasks.error.undeclared"])
        .says("Whoever does not declare the extension is refused by its methods with the error -32021.")
        .cure("Answer `tasks/get`, `tasks/update` and `tasks/cancel` with the error -32021 when the request does not declare the extension.")
        .ask(|visit| Box::pin(offered_methods::methods_undeclared(visit))),
    Rule::server("tasks.listen-undeclared", Area::Tasks, &["ext-tasks.notify.undeclared"])
        .says("Whoever does not declare the extension cannot listen to tasks: the error is -32021.")
        .cure("Answer `subscriptions/listen` with the error -32021 when it has `taskIds` and does not declare the extension.")
        .ask(|visit| Box::pin(offered_methods::listen_undeclared(visit))),
    Rule::server("tasks.methods-are-gone", Area::Tasks, &["ext-tasks.legacy.no-result-method"])
        .says("There is no `tasks/result` and no `tasks/list` any more.")
        .cure("Treat both as unknown methods in this revision.")
        .ask(|visit| Box::pin(offered_methods::methods_are_gone(visit))),
    Rule::server("tasks.capability-is-gone", Area::Tasks, &["ext-tasks.legacy.no-old-capability"])
        .says("There is no capability `tasks` any more, but an extension.")
        .cure("Declare `io.modelcontextprotocol/tasks` under `extensions` instead.")
        .ask(|visit| Box::pin(offered_methods::capability_is_gone(visit))),
];
