//! The limit of a list: the same prepared bytes around the id of the request.

use std::sync::OnceLock;

use serde_json::value::RawValue;

/// Sets the number of tools, before the first request.
pub(crate) fn set(tools: usize) {
    let _ = LISTS.set(Lists::new(tools));
}

/// Returns the response to `tools/list`.
pub(crate) fn respond(id: &RawValue, modern: bool) -> Vec<u8> {
    let lists = LISTS.get_or_init(|| Lists::new(2));
    let result = if modern { &lists.modern } else { &lists.legacy };
    [START, id.get(), result].concat().into_bytes()
}

const START: &str = r#"{"jsonrpc":"2.0","id":"#;

static LISTS: OnceLock<Lists> = OnceLock::new();

/// Returns the bytes after the id.
struct Lists {
    legacy: String,
    modern: String,
}

impl Lists {
    fn new(tools: usize) -> Lists {
        let more = (0..tools.saturating_sub(2)).map(tool);
        let all: Vec<_> = [ECHO.to_owned(), ADD.to_owned()]
            .into_iter()
            .take(tools)
            .chain(more)
            .collect();
        let tools = format!(r#","result":{{"tools":[{}]"#, all.join(","));
        Lists {
            modern: format!("{tools},{MODERN}}}}}"),
            legacy: format!("{tools}}}}}"),
        }
    }
}

fn tool(number: usize) -> String {
    format!(
        r#"{{"name":"tool-{number:03}","description":"Looks for something at place {number:03}, and says what it found","inputSchema":{ORDER}}}"#
    )
}

const MODERN: &str = r#""resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"0.1.0"}}"#;
const ECHO: &str = r#"{"name":"echo","description":"Says the message back","inputSchema":{"type":"object","properties":{"message":{"type":"string","description":"What to say back."}},"required":["message"]},"annotations":{"readOnlyHint":true}}"#;
const ADD: &str = r#"{"name":"add","description":"Adds two numbers","inputSchema":{"type":"object","properties":{"a":{"type":"number","format":"double","description":"The first number."},"b":{"type":"number","format":"double","description":"The second number."}},"required":["a","b"]},"outputSchema":{"type":"object","properties":{"sum":{"type":"number","format":"double","description":"Both numbers together."}},"required":["sum"]}}"#;
const ORDER: &str = r#"{"type":"object","properties":{"query":{"type":"string","description":"What is to be looked for."},"limit":{"type":"integer","description":"How many results are wanted at most.","minimum":0},"place":{"type":"string","description":"Where to look, as a path from the top."}},"required":["query","limit","place"]}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_requested_number_of_tools() {
        for count in [1, 2, 3, 100] {
            let lists = Lists::new(count);

            for result in [lists.legacy, lists.modern] {
                let response = format!("{START}7{result}");
                let response: serde_json::Value = serde_json::from_str(&response).unwrap();
                assert_eq!(response["result"]["tools"].as_array().unwrap().len(), count);
            }
        }
    }
}
