//! Messages of the client validate against the official schema of the revision.

use std::{collections::HashMap, env, fs, path::Path};

use serde_json::{Map, Value, json};
use turnbuckle_client::{Client, Roots};
use turnbuckle_protocol::types::CreateMessageResult;
use turnbuckle_spec_coverage::req;

use crate::{
    servers::mock_ndjson::{EVERY, MODERN, MockServer},
    spec::messages::conversation,
};

#[tokio::test(start_paused = true)]
async fn every_message_validates_against_the_official_schema_of_its_revision() {
    let Some(data) = env::var_os("TURNBUCKLE_DATA") else {
        eprintln!("not run: TURNBUCKLE_DATA is not set");
        return;
    };
    req!("schema.message-valid");
    // The first revision was published without a schema.
    for revision in &EVERY[1..] {
        let mut judge = SchemaSet::load(Path::new(&data), revision);
        for message in conversation(revision).await.received() {
            // Sent before negotiation, in the newest revision.
            if message["method"] == "server/discover" && *revision != MODERN {
                continue;
            }
            judge.message(&message);
        }
        for (result, response) in all_responses(revision).await {
            judge.message(&response);
            judge.check(result, &response["result"]);
        }
        assert!(judge.checked > 20, "{revision} {}", judge.checked);
    }
}

/// Returns the client's responses to all requests of a server of the revision, and the definition of each result.
async fn all_responses(revision: &str) -> Vec<(&'static str, Value)> {
    if revision == MODERN {
        return Vec::new();
    }
    let server = MockServer::legacy(revision);
    let client = Client::builder("schema", "1")
        .roots(Roots::new(["file:///home/ada"]).unwrap())
        .on_form_elicitation(|form| async move { form.accept_defaults() })
        .on_sampling(|_| async { Ok(CreateMessageResult::new("m", "said")) });
    let _client = server.connect_with(client).await;
    let message = json!({ "role": "user", "content": { "type": "text", "text": "?" } });
    let sample = json!({ "messages": [message], "maxTokens": 10 });
    let mut all_responses = vec![
        ("EmptyResult", server.call_client("ping", json!({})).await),
        (
            "ListRootsResult",
            server.call_client("roots/list", json!({})).await,
        ),
        (
            "CreateMessageResult",
            server.call_client("sampling/createMessage", sample).await,
        ),
    ];
    if revision >= "2025-06-18" {
        let name = json!({ "type": "string", "default": "Ada" });
        let schema = json!({ "type": "object", "properties": { "name": name } });
        let form = json!({ "message": "?", "requestedSchema": schema });
        let response = server.call_client("elicitation/create", form).await;
        all_responses.push(("ElicitResult", response));
    }
    all_responses
}

/// The official schema of one revision.
struct SchemaSet {
    schema: Value,
    /// The member with the definitions.
    root: &'static str,
    known: HashMap<String, jsonschema::Validator>,
    checked: usize,
}

impl SchemaSet {
    fn load(data: &Path, revision: &str) -> Self {
        let path = data.join(format!("spec/schema/{revision}.json"));
        let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let root = match schema.get("$defs") {
            Some(_) => "$defs",
            None => "definitions",
        };
        Self {
            schema,
            root,
            known: HashMap::new(),
            checked: 0,
        }
    }

    /// Validates a message as JSON-RPC, and against the definition of its method.
    #[track_caller]
    fn message(&mut self, message: &Value) {
        self.check("JSONRPCMessage", message);
        let Some(method) = message["method"].as_str() else {
            return;
        };
        let definitions = self.schema[self.root].as_object().unwrap();
        let named = definitions
            .iter()
            .find(|(_, found)| found["properties"]["method"]["const"] == method);
        let (definition, _) = named.unwrap_or_else(|| panic!("{method} is not defined"));
        self.check(&definition.clone(), message);
    }

    #[track_caller]
    fn check(&mut self, definition: &str, message: &Value) {
        if !self.known.contains_key(definition) {
            let validator = jsonschema::validator_for(&self.only(definition)).unwrap();
            self.known.insert(definition.to_owned(), validator);
        }
        let errors: Vec<_> = self.known[definition]
            .iter_errors(message)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{definition} {message}: {errors:?}");
        self.checked += 1;
    }

    /// Returns the schema of one definition with its references: compiling the whole schema takes long.
    fn only(&self, definition: &str) -> Value {
        let mut needed = Map::new();
        let mut open = vec![definition.to_owned()];
        while let Some(name) = open.pop() {
            if !needed.contains_key(&name) {
                let found = &self.schema[self.root][&name];
                assert!(found.is_object(), "{name} is not defined");
                references(found, &mut open);
                needed.insert(name, found.clone());
            }
        }
        let reference = format!("#/{}/{definition}", self.root);
        json!({ "$schema": self.schema["$schema"], "$ref": reference, self.root: needed })
    }
}

/// Adds the names of all definitions that a schema refers to.
fn references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            let path = members.get("$ref").and_then(Value::as_str);
            names.extend(
                path.and_then(|path| path.rsplit('/').next())
                    .map(str::to_owned),
            );
            members.values().for_each(|part| references(part, names));
        }
        Value::Array(parts) => parts.iter().for_each(|part| references(part, names)),
        _ => {}
    }
}
