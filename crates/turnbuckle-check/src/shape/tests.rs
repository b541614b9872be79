use serde_json::json;

use super::*;

fn told(flaws: &[Flaw]) -> Vec<String> {
    flaws.iter().map(ToString::to_string).collect()
}

#[test]
fn a_flaw_names_the_place_and_the_problem() {
    let tool = |schema| json!({ "name": "a", "inputSchema": schema });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [
        tool(json!({ "type": "object" })),
        tool(json!({})),
        tool(json!(null)),
        { "name": 3, "input_schema": {} },
    ] } });

    let flaws = result(Revision::V2025_11_25, "tools/list", &message);

    assert_eq!(
        told(&flaws),
        [
            "`result.tools[1].inputSchema.type`: `object` is expected, but it is missing",
            "`result.tools[2].inputSchema`: an object is expected, but it is null",
            "`result.tools[3].name`: a string is expected, but it is the number `3`",
            "`result.tools[3].inputSchema`: an object is expected, but it is missing (there is `input_schema`)",
        ]
    );
}
