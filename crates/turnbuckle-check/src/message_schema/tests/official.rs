//! Whether our shapes say what the official schemas say, of values that are right and of values that are not.
//!
//! Both are asked about the same values: made from our shapes and made from the schemas, each with every field in turn
//! missing or of another kind. Where we say something else on purpose, [`on_purpose`] has the reason.

use std::{
    collections::{HashMap, HashSet},
    env, fs,
    path::Path,
};

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use turnbuckle_protocol::revision::Revision;

use super::samples::{distinct, for_shape, mutations};
use crate::message_schema::{
    SchemaViolation, error, expression::OBJECT, notification, request, result, schema_set,
};

#[test]
fn our_shapes_are_those_of_the_official_schemas() {
    let Some(data) = env::var_os("TURNBUCKLE_DATA") else {
        eprintln!("not run: TURNBUCKLE_DATA is not set");
        return;
    };
    // The first of them was never published with a schema.
    let threads: Vec<_> = Revision::ALL[1..]
        .iter()
        .map(|&revision| {
            let data = data.clone();
            std::thread::spawn(move || {
                SchemaComparison::for_revision(Path::new(&data), revision).run()
            })
        })
        .collect();
    let wrong: Vec<String> = threads
        .into_iter()
        .flat_map(|thread| thread.join().expect("a comparison comes to its end"))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}

struct SchemaComparison {
    revision: Revision,
    official: OfficialSchema,
    /// Places that were looked at, with what is around them: schema by schema.
    done: HashMap<String, HashSet<(String, String)>>,
    compared: usize,
    different: Vec<String>,
}

impl SchemaComparison {
    fn for_revision(data: &Path, revision: Revision) -> Self {
        Self {
            revision,
            official: OfficialSchema::load(data, revision),
            done: HashMap::new(),
            compared: 0,
            different: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<String> {
        self.requests();
        self.notifications();
        self.errors();
        assert!(self.compared > 5_000, "{} {}", self.revision, self.compared);
        self.different
    }

    fn requests(&mut self) {
        let revision = self.revision;
        let known_schemas = schema_set::for_revision(revision);
        for (method, definition) in self.official.methods("Request") {
            // What a server asks for by its result is no message of its own: the result is compared as a whole.
            let Some(known) = known_schemas.request(&method) else {
                let asked = ["sampling/createMessage", "roots/list", "elicitation/create"];
                assert!(asked.contains(&method.as_str()), "{revision} {method}");
                continue;
            };
            let envelope = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
            let schemas = [
                self.official.named(&definition),
                self.official.named("JSONRPCRequest"),
            ];
            let made = for_shape(known_schemas, &known.params.shape);
            let theirs = self.official.samples_of_params(&definition);
            if self.compare(&envelope, None, &schemas, |message| {
                request(revision, message)
            }) == known.params.required
            {
                self.different
                    .push(format!("{revision} {method}: are parameters required?"));
            }
            for params in made.into_iter().chain(theirs) {
                self.compare_all(&envelope, "params", &params, &schemas, |message| {
                    request(revision, message)
                });
            }
            for name in self.official.results(&definition) {
                let envelope = json!({ "jsonrpc": "2.0", "id": 1 });
                let schemas = [self.official.result(&name)];
                let made = for_shape(known_schemas, &known.result);
                let made = made.into_iter().filter(|it| is_meant(it, &name));
                let theirs = self.official.samples(&name);
                for given in made.chain(theirs) {
                    self.compare_all(&envelope, "result", &given, &schemas, |message| {
                        result(revision, &method, message)
                    });
                }
            }
        }
    }

    fn notifications(&mut self) {
        let revision = self.revision;
        let known_schemas = schema_set::for_revision(revision);
        for (method, definition) in self.official.methods("Notification") {
            let known = known_schemas.notification(&method);
            let known = known.unwrap_or_else(|| panic!("{revision} {method}"));
            let envelope = json!({ "jsonrpc": "2.0", "method": method });
            let schemas = [
                self.official.named(&definition),
                self.official.named("JSONRPCNotification"),
            ];
            if self.compare(&envelope, None, &schemas, |message| {
                notification(revision, message)
            }) == known.required
            {
                self.different
                    .push(format!("{revision} {method}: are parameters required?"));
            }
            let theirs = self.official.samples_of_params(&definition);
            for params in for_shape(known_schemas, &known.shape)
                .into_iter()
                .chain(theirs)
            {
                self.compare_all(&envelope, "params", &params, &schemas, |message| {
                    notification(revision, message)
                });
            }
        }
    }

    fn errors(&mut self) {
        let revision = self.revision;
        let known_schemas = schema_set::for_revision(revision);
        let envelope = json!({ "jsonrpc": "2.0", "id": 1 });
        let any = ["JSONRPCError", "JSONRPCErrorResponse"];
        let any = any
            .into_iter()
            .find(|name| self.official.has(name))
            .expect("one of them");
        let coded = [
            (-32042, "URLElicitationRequiredError"),
            (-32021, "MissingRequiredClientCapabilityError"),
            (-32022, "UnsupportedProtocolVersionError"),
        ];
        for (code, definition) in [(1, any)].into_iter().chain(coded) {
            assert_eq!(
                known_schemas.error(code).is_some(),
                code != 1 && self.official.has(definition)
            );
            if !self.official.has(definition) {
                continue;
            }
            let schemas = [self.official.named(definition)];
            for data in for_shape(known_schemas, known_schemas.error(code).unwrap_or(&OBJECT)) {
                let given = json!({ "code": code, "message": "No", "data": data });
                self.compare_all(&envelope, "error", &given, &schemas, |message| {
                    // Another code is another error.
                    let ours = error(revision, message);
                    let other = message["error"]["code"].as_i64() != Some(code);
                    if other && code != 1 && ours.is_empty() {
                        vec![SchemaViolation {
                            path: String::new(),
                            observed: "another code".into(),
                        }]
                    } else {
                        ours
                    }
                });
            }
        }
    }

    /// Compares a message with a member that is right, and with all that could be wrong with it.
    fn compare_all(
        &mut self,
        envelope: &Value,
        member: &str,
        given: &Value,
        schemas: &[Value],
        ours: impl Fn(&Value) -> Vec<SchemaViolation>,
    ) {
        let mut message = envelope.clone();
        message[member] = given.clone();
        if !self.compare(&message, Some("as it is"), schemas, &ours) {
            self.different
                .push(format!("{}: no right value: {message}", self.revision));
        }
        let root = json!({ member: given });
        let done = self.done.entry(format!("{schemas:?}")).or_default();
        for (observed, mutated) in mutations(&root, done) {
            let mut message = envelope.clone();
            if let Some(value) = mutated.get(member) {
                message[member] = value.clone();
            }
            self.compare(&message, Some(&observed), schemas, &ours);
        }
    }

    /// Compares what we say about a message with what they say; returns whether they find it right.
    fn compare(
        &mut self,
        message: &Value,
        observed: Option<&str>,
        schemas: &[Value],
        ours: impl Fn(&Value) -> Vec<SchemaViolation>,
    ) -> bool {
        self.compared += 1;
        let theirs = schemas
            .iter()
            .all(|schema| self.official.is_right(schema, message));
        let violations = ours(message);
        if violations.is_empty() != theirs && !on_purpose(self.revision, message, &violations) {
            let said = if theirs {
                "they find it right"
            } else {
                "they find it wrong"
            };
            let observed = observed.unwrap_or("no parameters");
            let violation_texts: Vec<_> = violations.iter().map(ToString::to_string).collect();
            self.different.push(format!(
                "{} {said}, {observed}: {message}\n    {violation_texts:?}",
                self.revision
            ));
        }
        theirs
    }
}

/// Says whether we judge otherwise for a reason.
fn on_purpose(revision: Revision, message: &Value, violations: &[SchemaViolation]) -> bool {
    // What they let pass, and we do not.
    let stricter = !violations.is_empty()
        && violations.iter().all(|violation| {
            // The text names the types that there are, the schema takes any string.
            violation.path == "result.resultType"
                // Formats are no part of what the schemas check.
                || violation.observed.contains("base64")
                // The extension is described elsewhere.
                || violation.path.contains("taskIds")
                // Some parameters of 2025-11-25 forget `_meta`, which all have.
                || revision == Revision::V2025_11_25 && violation.path.starts_with("params._meta")
        });
    // What they do not let pass, and we do: the generated schemas take `number` for an integer in elicited content.
    let text = message.to_string();
    let laxer = violations.is_empty() && text.contains("\"action\"") && text.contains("2.5");
    stricter || laxer
}

/// Says whether a result that we make is of the definition, where a method has several.
fn is_meant(given: &Value, definition: &str) -> bool {
    let kind = match given["resultType"].as_str() {
        Some("input_required") => "InputRequiredResult",
        Some("task") => "none that is known here",
        _ if given.get("task").is_some() => "CreateTaskResult",
        _ => return !["InputRequiredResult", "CreateTaskResult"].contains(&definition),
    };
    definition == kind
}

/// The official schema of one revision.
struct OfficialSchema {
    schema: Value,
    /// The member that holds the definitions.
    root: &'static str,
    known: HashMap<String, Validator>,
}

impl OfficialSchema {
    fn load(data: &Path, revision: Revision) -> Self {
        let path = data.join(format!("spec/schema/{revision}.json"));
        let text = fs::read_to_string(path).expect("the schema is there");
        let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
        let root = match schema.get("$defs") {
            Some(_) => "$defs",
            None => "definitions",
        };
        Self {
            schema,
            root,
            known: HashMap::new(),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.schema[self.root].get(name).is_some()
    }

    /// Returns a schema that is only a reference.
    fn named(&self, name: &str) -> Value {
        assert!(self.has(name), "{name}");
        json!({ "$ref": format!("#/{}/{name}", self.root) })
    }

    /// Returns the schema of a response with this result.
    fn result(&self, name: &str) -> Value {
        json!({ "properties": { "result": self.named(name) }, "required": ["result"] })
    }

    /// Returns the methods of requests or notifications, with their definitions.
    fn methods(&self, kind: &str) -> Vec<(String, String)> {
        let definitions = self.schema[self.root].as_object().expect("definitions");
        let named = definitions.iter().filter(|(name, _)| name.ends_with(kind));
        named
            .filter_map(|(name, definition)| {
                let method = definition["properties"]["method"]["const"].as_str()?;
                (name != "ClientNotification").then(|| (method.to_owned(), name.clone()))
            })
            .collect()
    }

    /// Returns the definitions of the results of a request.
    fn results(&self, request: &str) -> Vec<String> {
        let name = request.trim_end_matches("Request");
        let own = format!("{name}Result");
        let mut results = if self.has(&own) {
            vec![own]
        } else {
            vec!["EmptyResult".to_owned()]
        };
        let response = format!("{name}ResultResponse");
        let others = &self.schema[self.root][response]["properties"]["result"]["anyOf"];
        let others = others.as_array().into_iter().flatten();
        let others = others.filter_map(|it| it["$ref"].as_str()?.rsplit('/').next());
        results.extend(
            others
                .filter(|other| *other != results[0])
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        );
        let may_be_tasks = ["CallTool", "CreateMessage", "Elicit"].contains(&name);
        if may_be_tasks && self.has("CreateTaskResult") {
            results.push("CreateTaskResult".to_owned());
        }
        results
    }

    /// Returns values of a definition.
    fn samples(&self, name: &str) -> Vec<Value> {
        let schema = self.named(name);
        distinct(|choice, all| self.make(&schema, choice, all))
    }

    fn samples_of_params(&self, definition: &str) -> Vec<Value> {
        let params = &self.schema[self.root][definition]["properties"]["params"];
        distinct(|choice, all| self.make(params, choice, all))
    }

    fn make(&self, schema: &Value, choice: usize, all: bool) -> Value {
        let make = |schema: &Value| self.make(schema, choice, all);
        let one = |values: &[Value]| values[choice % values.len()].clone();
        if let Some(reference) = schema["$ref"].as_str() {
            return make(
                self.schema
                    .pointer(&reference[1..])
                    .expect("it leads somewhere"),
            );
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return one(values);
        }
        if let Some(schemas) = schema["anyOf"].as_array() {
            return make(&one(schemas));
        }
        if let Some(schemas) = schema["allOf"].as_array() {
            let mut members = Map::new();
            for schema in schemas {
                members.extend(make(schema).as_object().cloned().unwrap_or_default());
            }
            return Value::Object(members);
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => one(kinds),
            kind => kind.clone(),
        };
        match kind.as_str() {
            Some("null") => Value::Null,
            Some("boolean") => json!(true),
            Some("integer") => json!(3),
            Some("number") => json!(0.5),
            Some("string") if schema["format"] == "byte" => json!("aGk="),
            Some("string") => json!("a:text"),
            Some("array") => json!([make(&schema["items"])]),
            Some("object") => Value::Object(self.members(schema, choice, all)),
            _ => json!({ "any": "thing" }),
        }
    }

    fn members(&self, schema: &Value, choice: usize, all: bool) -> Map<String, Value> {
        let properties = schema["properties"].as_object();
        let asks = properties.is_some_and(|properties| properties.contains_key("inputRequests"));
        let required: HashSet<_> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut members = Map::new();
        for (name, property) in properties.into_iter().flatten() {
            if !all && !required.contains(name.as_str()) {
                continue;
            }
            let value = match name.as_str() {
                "resultType" if asks => json!("input_required"),
                "resultType" => json!("complete"),
                _ => self.make(property, choice, all),
            };
            members.insert(name.clone(), value);
        }
        if let (None, Some(values @ Value::Object(_))) =
            (properties, schema.get("additionalProperties"))
            && values.as_object().is_some_and(|values| !values.is_empty())
            && self.is_finite(values)
        {
            members.insert("key".to_owned(), self.make(values, choice, all));
        }
        members
    }

    /// Says whether values of a schema come to an end: any JSON may hold any JSON.
    fn is_finite(&self, schema: &Value) -> bool {
        let reference = schema["$ref"].as_str().unwrap_or_default();
        !reference.ends_with("/JSONValue")
    }

    fn is_right(&mut self, schema: &Value, message: &Value) -> bool {
        let key = schema.to_string();
        if !self.known.contains_key(&key) {
            let validator = jsonschema::options()
                .should_validate_formats(false)
                .build(&self.whole(schema))
                .expect("the schema is one");
            self.known.insert(key.clone(), validator);
        }
        self.known[&key].is_valid(message)
    }

    /// Returns a schema with the definitions that it needs: the whole takes long to prepare.
    fn whole(&self, schema: &Value) -> Value {
        let mut needed = Map::new();
        let mut open = references(schema);
        while let Some(name) = open.pop() {
            if !needed.contains_key(&name) {
                let found = self.schema[self.root][&name].clone();
                open.extend(references(&found));
                needed.insert(name, found);
            }
        }
        let mut whole = schema.clone();
        whole["$schema"] = self.schema["$schema"].clone();
        whole[self.root] = Value::Object(needed);
        // Beside `$ref` draft-07 reads nothing else.
        if let Some(reference) = whole.as_object_mut().and_then(|whole| whole.remove("$ref")) {
            whole["allOf"] = json!([{ "$ref": reference }]);
        }
        whole
    }
}

fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => {
            let within = members.values().flat_map(references);
            let own = members.get("$ref").and_then(Value::as_str);
            let own = own.and_then(|path| path.rsplit('/').next());
            own.map(str::to_owned).into_iter().chain(within).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
