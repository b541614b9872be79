//! Tools.

mod call;
mod errors;
mod list;
mod mcp_apps;
mod schemas;

use super::lists::{self, TOOLS};
use crate::rule::{Area::Tools, Rule};

/// The name of a tool that nobody has.
const NOBODY: &str = "turnbuckle-no-such-tool";

pub(crate) const RULES: &[Rule] = &[
    Rule::server("tools.capability", Tools, &["tools.capability"])
        .requirement("A server that has tools declares the capability `tools`.")
        .fix("Declare the capability `tools`, for clients ask for no tools without it.")
        .active(|ctx| Box::pin(lists::is_declared(ctx, TOOLS))),
    Rule::server("tools.list", Tools, &["tools.list.respond", "tools.list.shape"])
        .requirement("A server that declares `tools` answers `tools/list` with a result.")
        .fix("Answer `tools/list` with the tools there are, which may be none.")
        .active(|ctx| Box::pin(lists::is_answered(ctx, TOOLS))),
    Rule::server("tools.list-same-for-all", Tools, &["tools.list.not-per-connection"])
        .requirement("The list of tools depends neither on the connection nor on earlier requests.")
        .fix("Give every connection the same tools; what is offered may depend on who is authorized.")
        .active(|ctx| Box::pin(lists::is_same_for_all(ctx, TOOLS))),
    Rule::server("tools.list-order", Tools, &["tools.list.deterministic"])
        .requirement("The tools come in the same order each time.")
        .fix("Keep the tools in an ordered collection, or sort them by name before they are listed.")
        .active(|ctx| Box::pin(list::order(ctx))),
    Rule::server(
        "tools.names",
        Tools,
        &["tools.name.length", "tools.name.charset", "tools.name.no-special"],
    )
    .requirement("Names of tools have 1 to 128 ASCII letters, digits, `_`, `-` and `.`.")
    .fix("Rename the tool: some clients refuse other names, or change them.")
    .active(|ctx| Box::pin(list::names(ctx))),
    Rule::server("tools.names-unique", Tools, &["tools.name.unique"])
        .requirement("No two tools have the same name.")
        .fix("Give each tool a name of its own.")
        .active(|ctx| Box::pin(list::unique(ctx))),
    Rule::server("tools.names-case", Tools, &["tools.name.case-sensitive"])
        .requirement("Names of tools that differ in upper and lower case are different names.")
        .fix("Compare the names of tools exactly.")
        .active(|ctx| Box::pin(list::case(ctx))),
    Rule::server("tools.schemas-valid", Tools, &["tools.input-schema.object", "schema.valid"])
        .requirement("The schemas of a tool are valid in the dialect that they name, which is 2020-12 if they name none.")
        .fix("Correct the schema at the place that is named.")
        .active(|ctx| Box::pin(schemas::valid(ctx))),
    Rule::server("tools.schema-dialect", Tools, &["schema.dialect.recommended"])
        .requirement("The schemas of a tool are written in JSON Schema 2020-12.")
        .fix("Generate the schemas in 2020-12, and leave `$schema` out or name that dialect.")
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
    .requirement("`x-mcp-header` marks properties of a primitive type, reached through `properties` alone, with distinct header names.")
    .fix("Correct or remove the mark: clients drop tools with a mark that is not allowed.")
    .active(|ctx| Box::pin(schemas::marks(ctx))),
    Rule::server("tools.header-marks-no-secrets", Tools, &["http.param.sensitive"])
        .requirement("No `x-mcp-header` marks a secret.")
        .fix("Remove the mark: whoever passes requests on sees headers.")
        .active(|ctx| Box::pin(schemas::no_secrets(ctx))),
    Rule::server("tools.unknown-tool", Tools, &["tools.error.unknown-tool"])
        .requirement("A call of a tool that is not there is answered with an error of JSON-RPC.")
        .fix("Answer with the error -32602 when no tool has the name.")
        .warn_only()
        .active(|ctx| Box::pin(errors::unknown(ctx))),
    Rule::server("tools.arguments-validated", Tools, &["tools.security.validate-inputs"])
        .requirement("A call with an argument of the wrong type is refused.")
        .fix("Check the arguments of every call against the input schema before the tool runs.")
        .active(|ctx| Box::pin(errors::wrong_arguments(ctx))),
    Rule::server("tools.wrong-arguments-as-result", Tools, &["tools.error.input-validation"])
        .requirement("What is wrong with arguments is said in a result with `isError`, which the model can read.")
        .fix("Answer with a result that has `isError: true` and names the argument, instead of a JSON-RPC error.")
        .active(|ctx| Box::pin(errors::wrong_arguments_as_result(ctx))),
    Rule::server("tools.failure-as-result", Tools, &["tools.error.in-result"])
        .requirement("A tool that fails says so in a result with `isError`, not as an error of JSON-RPC.")
        .fix("Catch what goes wrong in a tool, and answer with `isError: true` and a text for the model.")
        .active(|ctx| Box::pin(errors::failure_as_result(ctx))),
    Rule::server("tools.output-fits", Tools, &["tools.output.conform"])
        .requirement("A tool with an output schema returns structured content that fits it.")
        .fix("Return `structuredContent` that fits the output schema, or declare the schema that it has.")
        .active(|ctx| Box::pin(call::output_fits(ctx))),
    Rule::server("tools.output-as-text", Tools, &["tools.output.text-copy"])
        .requirement("Structured content is there as text, too.")
        .fix("Add a text block with the JSON of the structured content, for clients that read text only.")
        .active(|ctx| Box::pin(call::output_as_text(ctx))),
    Rule::server("tools.embedded-resources", Tools, &["tools.result.embedded-capability"])
        .requirement("A server whose tools return resources declares the capability `resources`.")
        .fix("Declare the capability `resources`.")
        .active(|ctx| Box::pin(call::embedded(ctx))),
    Rule::server("tools.ui-address", Tools, &["ext-apps.uri"])
        .requirement("The page of a tool has an address that begins with `ui://`.")
        .fix("Name the page by a `ui://` address in `_meta.ui.resourceUri`.")
        .active(|ctx| Box::pin(mcp_apps::address(ctx))),
    Rule::server("tools.ui-readable", Tools, &["ext-apps.exists"])
        .requirement("The page that a tool names can be read.")
        .fix("Answer `resources/read` for the address in `_meta.ui.resourceUri`.")
        .active(|ctx| Box::pin(mcp_apps::readable(ctx))),
    Rule::server("tools.ui-type", Tools, &["ext-apps.mime"])
        .requirement("The page of a tool is of the type `text/html;profile=mcp-app`.")
        .fix("Serve the page with the MIME type `text/html;profile=mcp-app`.")
        .active(|ctx| Box::pin(mcp_apps::kind(ctx))),
];
