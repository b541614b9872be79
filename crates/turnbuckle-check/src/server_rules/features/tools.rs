//! Tools.

mod call;
mod errors;
mod list;
mod mcp_apps;
mod schemas;

use super::lists::{self, TOOLS};
use crate::rule::{Area::Tools, Rule};

/// The name of a tool that does not exist.
const UNKNOWN_TOOL: &str = "turnbuckle-no-such-tool";

pub(crate) const RULES: &[Rule] = &[
    Rule::server("tools.capability", Tools, &["tools.capability"])
        .requirement("A server that has tools declares the capability `tools`.")
        .hint("Declare the capability `tools`: without it, clients do not list tools.")
        .active(|ctx| Box::pin(lists::check_declared(ctx, TOOLS))),
    Rule::server("tools.list", Tools, &["tools.list.respond", "tools.list.shape"])
        .requirement("A server that declares `tools` returns a result for `tools/list`.")
        .hint("Return the tools for `tools/list`, or an empty list.")
        .active(|ctx| Box::pin(lists::check_returned(ctx, TOOLS))),
    Rule::server("tools.list-same-for-all", Tools, &["tools.list.not-per-connection"])
        .requirement("The list of tools depends neither on the connection nor on earlier requests.")
        .hint("Return the same tools on every connection; only authorization may change the list.")
        .active(|ctx| Box::pin(lists::check_same_for_all(ctx, TOOLS))),
    Rule::server("tools.list-order", Tools, &["tools.list.deterministic"])
        .requirement("`tools/list` returns the tools in the same order each time.")
        .hint("Store the tools in an ordered collection, or sort them by name before listing them.")
        .active(|ctx| Box::pin(list::order(ctx))),
    Rule::server(
        "tools.names",
        Tools,
        &["tools.name.length", "tools.name.charset", "tools.name.no-special"],
    )
    .requirement("Tool names consist of 1 to 128 ASCII letters, digits, `_`, `-` and `.`.")
    .hint("Rename the tool: some clients reject or change other names.")
    .active(|ctx| Box::pin(list::names(ctx))),
    Rule::server("tools.names-unique", Tools, &["tools.name.unique"])
        .requirement("No two tools have the same name.")
        .hint("Give each tool a unique name.")
        .active(|ctx| Box::pin(list::unique(ctx))),
    Rule::server("tools.names-case", Tools, &["tools.name.case-sensitive"])
        .requirement("Tool names are case-sensitive.")
        .hint("Compare tool names exactly.")
        .active(|ctx| Box::pin(list::case(ctx))),
    Rule::server("tools.schemas-valid", Tools, &["tools.input-schema.object", "schema.valid"])
        .requirement("The schemas of a tool are valid in the dialect that they name, or in 2020-12 by default.")
        .hint("Correct the schema at the reported location.")
        .active(|ctx| Box::pin(schemas::valid(ctx))),
    Rule::server("tools.schema-dialect", Tools, &["schema.dialect.recommended"])
        .requirement("The schemas of a tool are written in JSON Schema 2020-12.")
        .hint("Generate the schemas in 2020-12, and omit `$schema` or set it to that dialect.")
        .active(|ctx| Box::pin(schemas::dialect(ctx))),
    Rule::server(
        "tools.header-marks",
        Tools,
        &[
            "http.param.name.non-empty",
            "http.param.name.token",
            "http.param.name.no-control",
            "http.param.name.unique",
            "http.param.type.primitive",
            "http.param.path.static",
            "http.param.path.no-composition",
        ],
    )
    .requirement("`x-mcp-header` annotates properties of a primitive type, reached through `properties` alone, with distinct header names.")
    .hint("Correct or remove the annotation: clients drop tools with an invalid one.")
    .active(|ctx| Box::pin(schemas::annotations(ctx))),
    Rule::server("tools.header-marks-no-secrets", Tools, &["http.param.sensitive"])
        .requirement("`x-mcp-header` does not annotate a secret.")
        .hint("Remove the annotation: intermediaries see headers.")
        .active(|ctx| Box::pin(schemas::no_secrets(ctx))),
    Rule::server("tools.unknown-tool", Tools, &["tools.error.unknown-tool"])
        .requirement("The server returns a JSON-RPC error for a call of an unknown tool.")
        .hint("Return error -32602 when the tool is unknown.")
        .warn_only()
        .active(|ctx| Box::pin(errors::unknown(ctx))),
    Rule::server("tools.arguments-validated", Tools, &["tools.security.validate-inputs"])
        .requirement("The server rejects a call with an argument of the wrong type.")
        .hint("Validate the arguments of every call against the input schema before the tool runs.")
        .active(|ctx| Box::pin(errors::wrong_arguments(ctx))),
    Rule::server("tools.wrong-arguments-as-result", Tools, &["tools.error.input-validation"])
        .requirement("The server reports invalid arguments in a result with `isError`, which the model can read.")
        .hint("Return a result with `isError: true` that names the argument, instead of a JSON-RPC error.")
        .active(|ctx| Box::pin(errors::wrong_arguments_as_result(ctx))),
    Rule::server("tools.failure-as-result", Tools, &["tools.error.in-result"])
        .requirement("The server reports the failure of a tool in a result with `isError`, not as a JSON-RPC error.")
        .hint("Catch errors of the tool, and return `isError: true` with a text for the model.")
        .active(|ctx| Box::pin(errors::failure_as_result(ctx))),
    Rule::server("tools.output-fits", Tools, &["tools.output.conform"])
        .requirement("A tool with an output schema returns structured content that matches it.")
        .hint("Return `structuredContent` that matches the output schema, or correct the schema.")
        .active(|ctx| Box::pin(call::output_fits(ctx))),
    Rule::server("tools.output-as-text", Tools, &["tools.output.text-copy"])
        .requirement("The result also has the structured content as text.")
        .hint("Add a text block with the JSON of the structured content, for clients that read only text.")
        .active(|ctx| Box::pin(call::output_as_text(ctx))),
    Rule::server("tools.embedded-resources", Tools, &["tools.result.embedded-capability"])
        .requirement("A server declares the capability `resources` if its tools return resources.")
        .hint("Declare the capability `resources`.")
        .active(|ctx| Box::pin(call::embedded(ctx))),
    Rule::server("tools.ui-address", Tools, &["ext-apps.uri"])
        .requirement("The UI resource of a tool has a `ui://` URI.")
        .hint("Set `_meta.ui.resourceUri` to a `ui://` URI.")
        .active(|ctx| Box::pin(mcp_apps::uri(ctx))),
    Rule::server("tools.ui-readable", Tools, &["ext-apps.exists"])
        .requirement("The UI resource of a tool can be read.")
        .hint("Support `resources/read` for the URI in `_meta.ui.resourceUri`.")
        .active(|ctx| Box::pin(mcp_apps::readable(ctx))),
    Rule::server("tools.ui-type", Tools, &["ext-apps.mime"])
        .requirement("The UI resource of a tool has the MIME type `text/html;profile=mcp-app`.")
        .hint("Return the UI resource with the MIME type `text/html;profile=mcp-app`.")
        .active(|ctx| Box::pin(mcp_apps::mime_type(ctx))),
];
