//! Tools.

mod apps;
mod calling;
mod failing;
mod listing;
mod schemas;

use super::lists::{self, TOOLS};
use crate::rule::{Area::Tools, Rule};

/// The name of a tool that nobody has.
const NOBODY: &str = "turnbuckle-no-such-tool";

pub(crate) const RULES: &[Rule] = &[
    Rule::server("tools.capability", Tools, &["tools.capability"])
        .says("A server that has tools declares the capability `tools`.")
        .cure("Declare the capability `tools`, for clients ask for no tools without it.")
        .ask(|visit| Box::pin(lists::is_declared(visit, TOOLS))),
    Rule::server("tools.list", Tools, &["tools.list.respond", "tools.list.shape"])
        .says("A server that declares `tools` answers `tools/list` with a result.")
        .cure("Answer `tools/list` with the tools there are, which may be none.")
        .ask(|visit| Box::pin(lists::is_answered(visit, TOOLS))),
    Rule::server("tools.list-same-for-all", Tools, &["tools.list.not-per-connection"])
        .says("The list of tools depends neither on the connection nor on earlier requests.")
        .cure("Give every connection the same tools; what is offered may depend on who is authorized.")
        .ask(|visit| Box::pin(lists::is_same_for_all(visit, TOOLS))),
    Rule::server("tools.list-order", Tools, &["tools.list.deterministic"])
        .says("The tools come in the same order each time.")
        .cure("Keep the tools in an ordered collection, or sort them by name before they are listed.")
        .ask(|visit| Box::pin(listing::order(visit))),
    Rule::server(
        "tools.names",
        Tools,
        &["tools.name.length", "tools.name.charset", "tools.name.no-special"],
    )
    .says("Names of tools have 1 to 128 ASCII letters, digits, `_`, `-` and `.`.")
    .cure("Rename the tool: some clients refuse other names, or change them.")
    .ask(|visit| Box::pin(listing::names(visit))),
    Rule::server("tools.names-unique", Tools, &["tools.name.unique"])
        .says("No two tools have the same name.")
        .cure("Give each tool a name of its own.")
        .ask(|visit| Box::pin(listing::unique(visit))),
    Rule::server("tools.names-case", Tools, &["tools.name.case-sensitive"])
        .says("Names of tools that differ in upper and lower case are different names.")
        .cure("Compare the names of tools exactly.")
        .ask(|visit| Box::pin(listing::case(visit))),
    Rule::server("tools.schemas-valid", Tools, &["tools.input-schema.object", "schema.valid"])
        .says("The schemas of a tool are valid in the dialect that they name, which is 2020-12 if they name none.")
        .cure("Correct the schema at the place that is named.")
        .ask(|visit| Box::pin(schemas::valid(visit))),
    Rule::server("tools.schema-dialect", Tools, &["schema.dialect.recommended"])
        .says("The schemas of a tool are written in JSON Schema 2020-12.")
        .cure("Generate the schemas in 2020-12, and leave `$schema` out or name that dialect.")
        .ask(|visit| Box::pin(schemas::dialect(visit))),
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
    .says("`x-mcp-header` marks properties of a primitive type, reached through `properties` alone, with distinct header names.")
    .cure("Correct or remove the mark: clients drop tools with a mark that is not allowed.")
    .ask(|visit| Box::pin(schemas::marks(visit))),
    Rule::server("tools.header-marks-no-secrets", Tools, &["http.param.sensitive"])
        .says("No `x-mcp-header` marks a secret.")
        .cure("Remove the mark: whoever passes requests on sees headers.")
        .ask(|visit| Box::pin(schemas::no_secrets(visit))),
    Rule::server("tools.unknown-tool", Tools, &["tools.error.unknown-tool"])
        .says("A call of a tool that is not there is answered with an error of JSON-RPC.")
        .cure("Answer with the error -32602 when no tool has the name.")
        .gently()
        .ask(|visit| Box::pin(failing::unknown(visit))),
    Rule::server("tools.arguments-validated", Tools, &["tools.security.validate-inputs"])
        .says("A call with an argument of the wrong type is refused.")
        .cure("Check the arguments of every call against the input schema before the tool runs.")
        .ask(|visit| Box::pin(failing::wrong_arguments(visit))),
    Rule::server("tools.wrong-arguments-as-result", Tools, &["tools.error.input-validation"])
        .says("What is wrong with arguments is said in a result with `isError`, which the model can read.")
        .cure("Answer with a result that has `isError: true` and names the argument, instead of a JSON-RPC error.")
        .ask(|visit| Box::pin(failing::wrong_arguments_as_result(visit))),
    Rule::server("tools.failure-as-result", Tools, &["tools.error.in-result"])
        .says("A tool that fails says so in a result with `isError`, not as an error of JSON-RPC.")
        .cure("Catch what goes wrong in a tool, and answer with `isError: true` and a text for the model.")
        .ask(|visit| Box::pin(failing::failure_as_result(visit))),
    Rule::server("tools.output-fits", Tools, &["tools.output.conform"])
        .says("A tool with an output schema returns structured content that fits it.")
        .cure("Return `structuredContent` that fits the output schema, or declare the schema that it has.")
        .ask(|visit| Box::pin(calling::output_fits(visit))),
    Rule::server("tools.output-as-text", Tools, &["tools.output.text-copy"])
        .says("Structured content is there as text, too.")
        .cure("Add a text block with the JSON of the structured content, for clients that read text only.")
        .ask(|visit| Box::pin(calling::output_as_text(visit))),
    Rule::server("tools.embedded-resources", Tools, &["tools.result.embedded-capability"])
        .says("A server whose tools return resources declares the capability `resources`.")
        .cure("Declare the capability `resources`.")
        .ask(|visit| Box::pin(calling::embedded(visit))),
    Rule::server("tools.ui-address", Tools, &["ext-apps.uri"])
        .says("The page of a tool has an address that begins with `ui://`.")
        .cure("Name the page by a `ui://` address in `_meta.ui.resourceUri`.")
        .ask(|visit| Box::pin(apps::address(visit))),
    Rule::server("tools.ui-readable", Tools, &["ext-apps.exists"])
        .says("The page that a tool names can be read.")
        .cure("Answer `resources/read` for the address in `_meta.ui.resourceUri`.")
        .ask(|visit| Box::pin(apps::readable(visit))),
    Rule::server("tools.ui-type", Tools, &["ext-apps.mime"])
        .says("The page of a tool is of the type `text/html;profile=mcp-app`.")
        .cure("Serve the page with the MIME type `text/html;profile=mcp-app`.")
        .ask(|visit| Box::pin(apps::kind(visit))),
];
