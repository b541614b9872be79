//! Headers that repeat what a request says, where it stands on its own.

use serde_json::Value;
use turnbuckle_protocol::{codec::headers, method::Method};

use crate::Server;

/// The headers of a request that names its version in `_meta`; `None` for every other message.
pub(super) fn mirrored(server: &Server, message: &Value) -> Option<Vec<(String, String)>> {
    let params = &message["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str()?;
    let method = message["method"].as_str()?;
    let mut mirrored = vec![
        ("mcp-protocol-version".to_owned(), version.to_owned()),
        ("mcp-method".to_owned(), method.to_owned()),
    ];
    let named = Method::named(method).and_then(|method| method.name_member);
    if let Some(name) = named.and_then(|member| params[member].as_str()) {
        mirrored.push(("mcp-name".to_owned(), headers::encode(name).into_owned()));
    }
    if method == "tools/call" {
        mirrored.extend(arguments(server, params));
    }
    Some(mirrored)
}

/// Arguments that the schema of their tool marks to be repeated.
fn arguments(server: &Server, params: &Value) -> Vec<(String, String)> {
    let catalog = server.catalog();
    let name = params["name"].as_str().unwrap_or_default();
    let marked = catalog.tools.named(name).map(|tool| &tool.param_headers);
    let header = |path: &[String]| {
        let mut argument = &params["arguments"];
        for member in path {
            argument = argument.get(member)?;
        }
        let argument = argument.to_string();
        let value = headers::encode_argument(&argument).ok()??;
        Some(value.into_owned())
    };
    marked
        .into_iter()
        .flatten()
        .filter_map(|marked| Some((marked.header.clone(), header(&marked.path)?)))
        .collect()
}
