//! One sample of every payload, with every member of any revision set.

use std::{collections::BTreeMap, fmt::Debug};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use turnbuckle_protocol::{
    Meta, RequestId, Revision, RpcError, VersionedPayload,
    json::{self, JsonError},
    method::{self, Method},
    types::{
        elicitation::{
            BooleanSchema, ElicitSchema, EnumOption, MultiSelectSchema, NumberSchema,
            SingleSelectSchema, StringFormat, StringSchema,
        },
        tasks::{self, legacy},
        *,
    },
};

/// A payload with the functions to send and check it.
pub(crate) struct Sample {
    /// The definition in the official schemas, by the name that most revisions use.
    pub(crate) definition: &'static str,
    pub(crate) part: Part,
    /// The revisions that may send it.
    pub(crate) first: Revision,
    pub(crate) last: Revision,
    /// Downgrades a copy and serializes it.
    pub(crate) downgraded: Box<dyn Fn(Revision) -> Value>,
    /// Deserializes a downgraded payload, upgrades it and downgrades it again.
    pub(crate) returned: Box<dyn Fn(Revision) -> Value>,
    /// Deserializes JSON text into the type, as server and client do.
    pub(crate) read: fn(&str) -> Result<(), JsonError>,
    /// Serializes and deserializes the newest form, and compares.
    pub(crate) round_trip: Box<dyn Fn()>,
}

/// The kind of message that a payload is part of.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Params(&'static Method),
    /// A result, with the `resultType` that a modern server adds.
    Result(&'static str),
    /// A result of a client: in 2026-07-28 an entry of `inputResponses`, without `resultType`.
    ClientResult,
}

impl Sample {
    fn new<P>(definition: &'static str, part: Part, payload: P) -> Self
    where
        P: VersionedPayload + Serialize + DeserializeOwned + Clone + PartialEq + Debug + 'static,
    {
        let (first, last) = match part {
            Part::Params(method) => (method.first, method.last),
            _ => (Revision::V2024_10_07, Revision::MODERN),
        };
        let (given, again, newest) = (payload.clone(), payload.clone(), payload);
        Self {
            definition,
            part,
            first,
            last,
            downgraded: Box::new(move |to| {
                let mut payload = given.clone();
                payload.downgrade_to(to);
                serde_json::to_value(payload).unwrap()
            }),
            returned: Box::new(move |to| {
                let mut payload = again.clone();
                payload.downgrade_to(to);
                let written = serde_json::to_string(&payload).unwrap();
                let mut read: P = serde_json::from_str(&written).unwrap();
                assert_eq!(read, payload, "read back at {to}");
                read.upgrade_from(to);
                read.downgrade_to(to);
                serde_json::to_value(read).unwrap()
            }),
            read: |json| json::from_str::<P>(json).map(drop),
            round_trip: Box::new(move || {
                let written = serde_json::to_string(&newest).unwrap();
                let read: P = serde_json::from_str(&written).unwrap();
                assert_eq!(read, newest, "{written}");
            }),
        }
    }

    fn between(mut self, first: Revision, last: Revision) -> Self {
        (self.first, self.last) = (first, last);
        self
    }

    pub(crate) fn is_in(&self, revision: Revision) -> bool {
        (self.first..=self.last).contains(&revision)
    }
}

pub(crate) fn all() -> Vec<Sample> {
    [params(), notifications(), results()]
        .into_iter()
        .flatten()
        .collect()
}

fn request<P>(definition: &'static str, method: &'static Method, payload: P) -> Sample
where
    P: VersionedPayload + Serialize + DeserializeOwned + Clone + PartialEq + Debug + 'static,
{
    Sample::new(definition, Part::Params(method), payload)
}

fn result<P>(definition: &'static str, payload: P) -> Sample
where
    P: VersionedPayload + Serialize + DeserializeOwned + Clone + PartialEq + Debug + 'static,
{
    Sample::new(definition, Part::Result("complete"), payload)
}

#[rustfmt::skip]
fn params() -> Vec<Sample> {
    vec![
        request("InitializeRequest", &method::INITIALIZE, initialize_params()),
        request("PingRequest", &method::PING, EmptyParams::default().meta(request_meta())),
        request("DiscoverRequest", &method::SERVER_DISCOVER, EmptyParams::default().meta(request_meta())),
        request("SubscriptionsListenRequest", &method::SUBSCRIPTIONS_LISTEN, ListenParams::new(filter()).meta(request_meta())),
        request("ListToolsRequest", &method::TOOLS_LIST, paginated()),
        request("CallToolRequest", &method::TOOLS_CALL, call_tool_params()),
        request("ListResourcesRequest", &method::RESOURCES_LIST, paginated()),
        request("ListResourceTemplatesRequest", &method::RESOURCES_TEMPLATES_LIST, paginated()),
        request("ReadResourceRequest", &method::RESOURCES_READ,
            ReadResourceParams::new("file:///a").input_responses(answers()).request_state("s").meta(request_meta())),
        request("SubscribeRequest", &method::RESOURCES_SUBSCRIBE, SubscribeParams::new("file:///a").meta(request_meta())),
        request("UnsubscribeRequest", &method::RESOURCES_UNSUBSCRIBE, UnsubscribeParams::new("file:///a").meta(request_meta())),
        request("ListPromptsRequest", &method::PROMPTS_LIST, paginated()),
        request("GetPromptRequest", &method::PROMPTS_GET,
            GetPromptParams::new("review").arguments([("style".into(), "short".into())])
                .input_responses(answers()).request_state("s").meta(request_meta())),
        request("CompleteRequest", &method::COMPLETION_COMPLETE, complete_params()),
        request("CompleteRequest", &method::COMPLETION_COMPLETE,
            CompleteParams::new(CompletionReference::resource("file:///{name}"), "name", "a").meta(request_meta())),
        request("SetLevelRequest", &method::LOGGING_SET_LEVEL, SetLevelParams::new(LogLevel::Notice).meta(request_meta())),
        request("CreateMessageRequest", &method::SAMPLING_CREATE_MESSAGE, create_message_params()),
        request("ListRootsRequest", &method::ROOTS_LIST, EmptyParams::default()),
        request("ElicitRequest", &method::ELICITATION_CREATE, elicit_form()),
        request("ElicitRequest", &method::ELICITATION_CREATE, elicit_url()),
        request("GetTaskRequest", &method::TASKS_GET, tasks::GetTaskParams::new("t1")),
        request("CancelTaskRequest", &method::TASKS_CANCEL, tasks::CancelTaskParams::new("t1")),
        request("GetTaskPayloadRequest", &method::TASKS_RESULT, legacy::TaskResultParams::new("t1")),
        request("ListTasksRequest", &method::TASKS_LIST, paginated()),
        request("UpdateTaskRequest", &method::TASKS_UPDATE, tasks::UpdateTaskParams::new("t1", answers())),
    ]
}

#[rustfmt::skip]
fn notifications() -> Vec<Sample> {
    vec![
        request("InitializedNotification", &method::INITIALIZED, EmptyParams::default()),
        request("CancelledNotification", &method::CANCELLED, CancelledParams::new(7).reason("too slow").meta(notification_meta())),
        request("ProgressNotification", &method::PROGRESS,
            ProgressParams::new("token", 1.5).total(3).message("halfway").meta(notification_meta())),
        request("LoggingMessageNotification", &method::MESSAGE,
            LoggingMessageParams::new(LogLevel::Alert, json!({ "disk": "full" })).logger("store").meta(notification_meta())),
        request("ToolListChangedNotification", &method::TOOLS_LIST_CHANGED, EmptyParams::default().meta(notification_meta())),
        request("PromptListChangedNotification", &method::PROMPTS_LIST_CHANGED, EmptyParams::default().meta(notification_meta())),
        request("ResourceListChangedNotification", &method::RESOURCES_LIST_CHANGED, EmptyParams::default().meta(notification_meta())),
        request("ResourceUpdatedNotification", &method::RESOURCES_UPDATED,
            ResourceUpdatedParams::new("file:///a").meta(notification_meta())),
        request("RootsListChangedNotification", &method::ROOTS_LIST_CHANGED, EmptyParams::default()),
        request("ElicitationCompleteNotification", &method::ELICITATION_COMPLETE, ElicitationCompleteParams::new("e1")),
        request("TaskStatusNotification", &method::TASKS_STATUS, legacy::TaskStatusParams::new(task())),
        request("TaskNotification", &method::TASKS_CHANGED, tasks::TaskNotificationParams::new(task())),
        request("SubscriptionsAcknowledgedNotification", &method::SUBSCRIPTIONS_ACKNOWLEDGED,
            SubscriptionsAcknowledgedParams::new(filter()).meta(notification_meta())),
    ]
}

#[rustfmt::skip]
fn results() -> Vec<Sample> {
    use Revision::{V2025_06_18 as C, V2025_11_25 as D, V2026_07_28 as E};
    let legacy = |sample: Sample| sample.between(Revision::V2024_10_07, D);
    let modern = |sample: Sample| sample.between(E, E);
    let client = |sample: Sample| Sample { part: Part::ClientResult, ..sample };
    vec![
        legacy(result("InitializeResult", initialize_result())),
        result("EmptyResult", EmptyResult::default().meta(result_meta())),
        modern(result("DiscoverResult", discover_result())),
        modern(result("SubscriptionsListenResult", ListenResult::default().meta(notification_meta()))),
        result("ListToolsResult", list_tools_result()),
        result("CallToolResult", call_tool_result()),
        result("CallToolResult", CallToolResult::error("no such city")),
        result("CallToolResult", CallToolResult::default().structured_content(json!([1, 2]))),
        result("CallToolResult", CallToolResult::default().structured_content(Value::Null)),
        result("CallToolResult", CallToolResult::structured(json!({ "sum": 3 }))),
        result("ListResourcesResult", ListResourcesResult::new([resource()]).next_cursor("").ttl_ms(0u64).cache_scope(CacheScope::Public).meta(result_meta())),
        result("ListResourceTemplatesResult", ListResourceTemplatesResult::new([template()]).next_cursor("n").ttl_ms(5u64).cache_scope(CacheScope::Private).meta(result_meta())),
        result("ReadResourceResult", ReadResourceResult::new(contents()).ttl_ms(5u64).cache_scope(CacheScope::Private).meta(result_meta())),
        result("ListPromptsResult", ListPromptsResult::new([prompt()]).next_cursor("n").ttl_ms(5u64).cache_scope(CacheScope::Public).meta(result_meta())),
        result("GetPromptResult", GetPromptResult::new(blocks().into_iter().map(PromptMessage::user).collect::<Vec<_>>()).description("d").meta(result_meta())),
        result("CompleteResult", CompleteResult::new(Completion::new(vec!["a".into(); 150])).meta(result_meta())),
        modern(Sample { part: Part::Result("input_required"), ..result("InputRequiredResult", input_required()) }),
        client(result("CreateMessageResult", create_message_result())),
        client(result("CreateMessageResult", CreateMessageResult::new("m", "hello").stop_reason("endTurn"))),
        client(result("ListRootsResult", ListRootsResult::new([Root::new("file:///home").name("home").meta(nested_meta())]))),
        client(result("ElicitResult", elicit_result())).between(C, E),
        client(result("ElicitResult", ElicitResult::new(ElicitAction::Decline))).between(C, E),
        result("CreateTaskResult", legacy::CreateTaskResult::new(task())).between(D, D),
        result("GetTaskResult", legacy::GetTaskResult::new(task())).between(D, D),
        result("CancelTaskResult", legacy::CancelTaskResult::new(task())).between(D, D),
        result("ListTasksResult", legacy::ListTasksResult::new([task().into()]).next_cursor("n")).between(D, D),
        modern(Sample { part: Part::Result("task"), ..result("extension", tasks::CreateTaskResult::new(task())) }),
        modern(result("extension", tasks::GetTaskResult::new(task()).result(json!({ "content": [] })))),
        modern(result("extension", tasks::GetTaskResult::new(task().status(TaskStatus::Failed)).error(RpcError::internal("broken")))),
        modern(result("extension", tasks::GetTaskResult::new(task().status(TaskStatus::InputRequired)).input_requests(input_required().input_requests))),
    ]
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is not an object"),
    }
}

pub(crate) fn request_meta() -> Meta {
    let mut meta = nested_meta();
    meta.set_progress_token(&RequestId::from("token"));
    meta.set_client("2026-07-28", &implementation(), &client_capabilities());
    meta.set_log_level(LogLevel::Info);
    meta.set_trace_context(
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        None,
    );
    meta
}

fn notification_meta() -> Meta {
    let mut meta = nested_meta();
    meta.set_subscription_id(&RequestId::from(3));
    meta
}

fn result_meta() -> Meta {
    let mut meta = nested_meta();
    meta.set_server_info(&implementation());
    meta
}

fn nested_meta() -> Meta {
    let mut meta = Meta::new();
    meta.insert("example.com/color", "red").unwrap();
    meta
}

fn implementation() -> Implementation {
    Implementation::new("sample", "1.0")
        .title("Sample")
        .description("A sample")
        .icons([icon()])
        .website_url("https://example.com/")
}

fn icon() -> Icon {
    Icon::new("https://example.com/icon.png")
        .mime_type("image/png")
        .sizes(["48x48".to_owned()])
        .theme(IconTheme::Dark)
}

fn annotations() -> Annotations {
    Annotations::new()
        .audience([Role::User, Role::Assistant])
        .priority(0.5)
        .last_modified("2025-01-12T15:00:58Z")
}

fn tasks_capability() -> TasksCapability {
    TasksCapability::default()
        .list(JsonObject::new())
        .cancel(JsonObject::new())
}

fn extensions() -> JsonObject {
    object(json!({ "io.modelcontextprotocol/ui": {}, "io.modelcontextprotocol/tasks": {} }))
}

pub(crate) fn client_capabilities() -> ClientCapabilities {
    let requests = TaskRequests::default()
        .sampling(object(json!({ "createMessage": {} })))
        .elicitation(object(json!({ "create": {} })));
    ClientCapabilities::new()
        .experimental(object(json!({ "x": { "deep": true } })))
        .roots(RootsCapability::default().list_changed(true))
        .sampling(
            SamplingCapability::default()
                .context(JsonObject::new())
                .tools(JsonObject::new()),
        )
        .elicitation(
            ElicitationCapability::default()
                .form(JsonObject::new())
                .url(JsonObject::new()),
        )
        .tasks(tasks_capability().requests(requests))
        .extensions(extensions())
}

pub(crate) fn server_capabilities() -> ServerCapabilities {
    let requests = TaskRequests::default().tools(object(json!({ "call": {} })));
    ServerCapabilities::new()
        .experimental(object(json!({ "x": {} })))
        .logging(JsonObject::new())
        .completions(JsonObject::new())
        .prompts(ListCapability::default().list_changed(true))
        .resources(
            ResourcesCapability::default()
                .subscribe(true)
                .list_changed(true),
        )
        .tools(ListCapability::default().list_changed(false))
        .tasks(tasks_capability().requests(requests))
        .extensions(extensions())
}

fn initialize_params() -> InitializeParams {
    InitializeParams::new("2025-11-25", client_capabilities(), implementation())
}

fn initialize_result() -> InitializeResult {
    InitializeResult::new("2025-11-25", server_capabilities(), implementation())
        .instructions("Be kind.")
}

fn discover_result() -> DiscoverResult {
    DiscoverResult::new(Revision::ALL.map(Revision::as_str), server_capabilities())
        .instructions("Be kind.")
        .ttl_ms(60_000u64)
        .cache_scope(CacheScope::Public)
        .meta(result_meta())
}

fn filter() -> SubscriptionFilter {
    SubscriptionFilter::new()
        .tools_list_changed(true)
        .prompts_list_changed(true)
        .resources_list_changed(false)
        .resource_subscriptions(["file:///a".to_owned()])
}

fn paginated() -> PaginatedParams {
    PaginatedParams::new().cursor("next").meta(request_meta())
}

fn answers() -> InputResponses {
    object(json!({ "name": { "action": "accept", "content": { "name": "Ada" } } }))
}

fn call_tool_params() -> CallToolParams {
    CallToolParams::new("add")
        .arguments(object(json!({ "a": 1, "b": [true, null] })))
        .input_responses(answers())
        .request_state("sealed")
        .task(legacy::TaskMetadata::default().ttl(60_000u64))
        .meta(request_meta())
}

pub(crate) fn tool() -> Tool {
    let input = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "a": { "type": "integer" }, "anything": true, "nothing": false },
        "required": ["a"],
    });
    Tool::new("add", object(input))
        .title("Add")
        .description("Adds")
        .output_schema(object(
            json!({ "type": "object", "properties": { "sum": true } }),
        ))
        .annotations(
            ToolAnnotations::new()
                .read_only_hint(true)
                .open_world_hint(false),
        )
        .execution(ToolExecution::default().task_support(TaskSupport::Optional))
        .icons([icon()])
        .meta(nested_meta())
}

fn list_tools_result() -> ListToolsResult {
    let any_output = tool().output_schema(object(json!({ "type": "array" })));
    ListToolsResult::new([tool(), any_output, Tool::new("bare", JsonObject::new())])
        .next_cursor("next")
        .ttl_ms(1_000u64)
        .cache_scope(CacheScope::Private)
        .meta(result_meta())
}

/// One block of each kind that tool results and prompts may have.
pub(crate) fn blocks() -> Vec<ContentBlock> {
    vec![
        ContentBlock::Text(
            TextContent::new("text")
                .annotations(annotations())
                .meta(nested_meta()),
        ),
        ContentBlock::Image(
            ImageContent::new("AAAA", "image/png")
                .annotations(annotations())
                .meta(nested_meta()),
        ),
        ContentBlock::Audio(
            AudioContent::new("AAAA", "audio/wav")
                .annotations(annotations())
                .meta(nested_meta()),
        ),
        ContentBlock::ResourceLink(resource()),
        ContentBlock::Resource(
            EmbeddedResource::new(
                TextResourceContents::new("file:///a", "hello")
                    .mime_type("text/plain")
                    .meta(nested_meta()),
            )
            .annotations(annotations())
            .meta(nested_meta()),
        ),
        ContentBlock::resource(ResourceContents::blob("file:///b", "AAAA")),
    ]
}

fn call_tool_result() -> CallToolResult {
    CallToolResult::new(blocks())
        .structured_content(json!({ "sum": 3 }))
        .is_error(false)
        .meta(result_meta())
}

fn resource() -> Resource {
    Resource::new("file:///a", "a")
        .title("A")
        .description("The letter")
        .mime_type("text/plain")
        .annotations(annotations())
        .size(12u64)
        .icons([icon()])
        .meta(nested_meta())
}

fn template() -> ResourceTemplate {
    ResourceTemplate::new("file:///{name}", "letters")
        .title("Letters")
        .description("All letters")
        .mime_type("text/plain")
        .annotations(annotations())
        .icons([icon()])
        .meta(nested_meta())
}

fn contents() -> Vec<ResourceContents> {
    vec![
        TextResourceContents::new("file:///a", "hello")
            .mime_type("text/plain")
            .meta(nested_meta())
            .into(),
        BlobResourceContents::new("file:///b", "AAAA")
            .mime_type("image/png")
            .meta(nested_meta())
            .into(),
    ]
}

fn prompt() -> Prompt {
    let argument = PromptArgument::new("style")
        .title("Style")
        .description("How")
        .required(true);
    Prompt::new("review")
        .title("Review")
        .description("Reviews")
        .arguments([argument])
        .icons([icon()])
        .meta(nested_meta())
}

fn complete_params() -> CompleteParams {
    let reference = CompletionReference::Prompt {
        name: "review".into(),
        title: Some("Review".into()),
    };
    let known: BTreeMap<_, _> = [("style".to_owned(), "short".to_owned())].into();
    CompleteParams::new(reference, "language", "ru")
        .context(CompletionContext::new().arguments(known))
        .meta(request_meta())
}

pub(crate) fn create_message_params() -> CreateMessageParams {
    let call = ToolUseContent::new("c1", "add", object(json!({ "a": 1 }))).meta(nested_meta());
    let answer = ToolResultContent::new("c1", blocks())
        .structured_content(json!({ "sum": 3 }))
        .is_error(false)
        .meta(nested_meta());
    let messages = [
        SamplingMessage::user("add").meta(nested_meta()),
        SamplingMessage::with_blocks(
            Role::Assistant,
            [ContentBlock::text("calling"), ContentBlock::ToolUse(call)],
        ),
        SamplingMessage::user(ContentBlock::ToolResult(answer)),
        SamplingMessage::user(ContentBlock::audio("AAAA", "audio/wav")),
    ];
    CreateMessageParams::new(messages, 100)
        .model_preferences(
            ModelPreferences::new()
                .hints([ModelHint::new("small")])
                .cost_priority(1)
                .speed_priority(0.25)
                .intelligence_priority(0),
        )
        .system_prompt("Be brief.")
        .include_context(IncludeContext::ThisServer)
        .temperature(0.7)
        .stop_sequences(["END".to_owned()])
        .metadata(object(json!({ "provider": 1 })))
        .tools([tool()])
        .tool_choice(ToolChoiceMode::Auto)
        .task(legacy::TaskMetadata::default())
}

fn create_message_result() -> CreateMessageResult {
    let call = ToolUseContent::new("c1", "add", object(json!({ "a": 1 })));
    CreateMessageResult::with_blocks(
        "m",
        [ContentBlock::text("calling"), ContentBlock::ToolUse(call)],
    )
    .stop_reason(StopReason::ToolUse)
}

pub(crate) fn form() -> ElicitSchema {
    let sizes = [
        EnumOption::titled("s", "Small"),
        EnumOption::titled("l", "Large"),
    ];
    ElicitSchema::new()
        .required(
            "name",
            StringSchema::new()
                .title("Name")
                .description("Yours")
                .min_length(1u64)
                .max_length(9u64)
                .default("Ada"),
        )
        .optional("mail", StringSchema::new().format(StringFormat::Email))
        .optional("when", StringSchema::new().format(StringFormat::DateTime))
        .optional(
            "age",
            NumberSchema::integer().minimum(0).maximum(150).default(40),
        )
        .optional(
            "weight",
            NumberSchema::new()
                .title("Weight")
                .description("kg")
                .default(3),
        )
        .optional(
            "news",
            BooleanSchema::new()
                .title("News")
                .description("Weekly")
                .default(true),
        )
        .required(
            "color",
            SingleSelectSchema::new(["red", "blue"])
                .title("Colour")
                .default("red"),
        )
        .optional(
            "size",
            SingleSelectSchema::new(sizes.clone())
                .description("Yours")
                .default("s"),
        )
        .optional(
            "tags",
            MultiSelectSchema::new(["a", "b"])
                .title("Tags")
                .min_items(1u64)
                .max_items(2u64)
                .default(["a".to_owned()]),
        )
        .optional("sizes", MultiSelectSchema::new(sizes).description("All"))
}

fn elicit_form() -> ElicitParams {
    ElicitFormParams::new("Who?", form())
        .task(legacy::TaskMetadata::default().ttl(1u64))
        .into()
}

pub(crate) fn elicit_url() -> ElicitParams {
    ElicitUrlParams::new("Sign in", "https://example.com/in")
        .elicitation_id("e1")
        .task(legacy::TaskMetadata::default())
        .into()
}

fn elicit_result() -> ElicitResult {
    ElicitResult::accept(object(
        json!({ "name": "Ada", "age": 36, "news": true, "tags": ["a"] }),
    ))
}

fn input_required() -> InputRequiredResult {
    let requests = [
        ("ask".to_owned(), InputRequest::Elicit(elicit_form())),
        ("go".to_owned(), InputRequest::Elicit(elicit_url())),
        (
            "sample".to_owned(),
            InputRequest::CreateMessage(create_message_params()),
        ),
        (
            "roots".to_owned(),
            InputRequest::ListRoots(EmptyParams::default()),
        ),
    ];
    InputRequiredResult::new(requests.into())
        .request_state("sealed")
        .meta(result_meta())
}

fn task() -> Task {
    Task::new("t1", "2025-11-25T10:30:00Z")
        .status_message("at work")
        .poll_interval_ms(500u64)
}
