//! Compares our shapes with the official schemas, on valid and invalid values.
//!
//! The values are generated from our shapes and from the schemas, each with every member in turn removed or of another
//! type. [`is_intended_difference`] lists the intended differences.

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
fn shapes_agree_with_the_official_schemas() {
    let Some(data) = env::var_os("TURNBUCKLE_DATA") else {
        eprintln!("not run: TURNBUCKLE_DATA is not set");
        return;
    };
    // The first revision was published without a schema.
    let threads: Vec<_> = Revision::ALL[1..]
        .iter()
        .map(|&revision| {
            let data = data.clone();
            std::thread::spawn(move || {
                SchemaComparison::for_revision(Path::new(&data), revision).run()
            })
        })
        .collect();
    let differences: Vec<String> = threads
        .into_iter()
        .flat_map(|thread| thread.join().expect("a comparison does not panic"))
        .collect();
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences[..differences.len().min(40)].join("\n")
    );
}

struct SchemaComparison {
    revision: Revision,
    official: OfficialSchema,
    /// The compared locations with their context, by schema.
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
            // Input requests are not separate messages: they are compared as part of the result.
            let Some(known) = known_schemas.request(&method) else {
                let input_requests = ["sampling/createMessage", "roots/list", "elicitation/create"];
                assert!(
                    input_requests.contains(&method.as_str()),
                    "{revision} {method}"
                );
                continue;
            };
            let envelope = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
            let schemas = [
                self.official.named(&definition),
                self.official.named("JSONRPCRequest"),
            ];
            let from_shapes = for_shape(known_schemas, &known.params.shape);
            let from_schema = self.official.samples_of_params(&definition);
            if self.compare(&envelope, None, &schemas, |message| {
                request(revision, message)
            }) == known.params.required
            {
                self.different
                    .push(format!("{revision} {method}: are parameters required?"));
            }
            for params in from_shapes.into_iter().chain(from_schema) {
                self.compare_all(&envelope, "params", &params, &schemas, |message| {
                    request(revision, message)
                });
            }
            for name in self.official.results(&definition) {
                let envelope = json!({ "jsonrpc": "2.0", "id": 1 });
                let schemas = [self.official.result(&name)];
                let from_shapes = for_shape(known_schemas, &known.result);
                let from_shapes = from_shapes
                    .into_iter()
                    .filter(|it| has_definition(it, &name));
                let from_schema = self.official.samples(&name);
                for given in from_shapes.chain(from_schema) {
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
            let from_schema = self.official.samples_of_params(&definition);
            for params in for_shape(known_schemas, &known.shape)
                .into_iter()
                .chain(from_schema)
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
            .expect("the schema defines errors");
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
                    // Another code belongs to another definition.
                    let violations = error(revision, message);
                    let has_other_code = message["error"]["code"].as_i64() != Some(code);
                    if has_other_code && code != 1 && violations.is_empty() {
                        vec![SchemaViolation {
                            path: String::new(),
                            observed: "another code".into(),
                        }]
                    } else {
                        violations
                    }
                });
            }
        }
    }

    /// Compares a message with a valid member, and with all mutations of it.
    fn compare_all(
        &mut self,
        envelope: &Value,
        member: &str,
        given: &Value,
        schemas: &[Value],
        validate: impl Fn(&Value) -> Vec<SchemaViolation>,
    ) {
        let mut message = envelope.clone();
        message[member] = given.clone();
        if !self.compare(&message, Some("unchanged"), schemas, &validate) {
            self.different
                .push(format!("{}: not a valid value: {message}", self.revision));
        }
        let root = json!({ member: given });
        let done = self.done.entry(format!("{schemas:?}")).or_default();
        for (observed, mutated) in mutations(&root, done) {
            let mut message = envelope.clone();
            if let Some(value) = mutated.get(member) {
                message[member] = value.clone();
            }
            self.compare(&message, Some(&observed), schemas, &validate);
        }
    }

    /// Compares our violations of a message with the official schema; returns whether it is valid there.
    fn compare(
        &mut self,
        message: &Value,
        observed: Option<&str>,
        schemas: &[Value],
        validate: impl Fn(&Value) -> Vec<SchemaViolation>,
    ) -> bool {
        self.compared += 1;
        let is_valid = schemas
            .iter()
            .all(|schema| self.official.is_valid(schema, message));
        let violations = validate(message);
        if violations.is_empty() != is_valid
            && !is_intended_difference(self.revision, message, &violations)
        {
            let verdict = if is_valid {
                "valid by the official schema"
            } else {
                "invalid by the official schema"
            };
            let observed = observed.unwrap_or("no parameters");
            let violation_texts: Vec<_> = violations.iter().map(ToString::to_string).collect();
            self.different.push(format!(
                "{} {verdict}, {observed}: {message}\n    {violation_texts:?}",
                self.revision
            ));
        }
        is_valid
    }
}

/// Returns whether a difference is intended.
fn is_intended_difference(
    revision: Revision,
    message: &Value,
    violations: &[SchemaViolation],
) -> bool {
    // Valid by the schemas, invalid here.
    let stricter = !violations.is_empty()
        && violations.iter().all(|violation| {
            // The specification lists the types, the schema allows any string.
            violation.path == "result.resultType"
                // The validator of the schemas does not check formats.
                || violation.observed.contains("base64")
                // The schemas do not include the extension.
                || violation.path.contains("taskIds")
                // The schema of 2025-11-25 lacks `_meta` in some parameters.
                || revision == Revision::V2025_11_25 && violation.path.starts_with("params._meta")
        });
    // Invalid by the schemas, valid here: the generated schemas treat `number` as an integer in elicited content.
    let text = message.to_string();
    let laxer = violations.is_empty() && text.contains("\"action\"") && text.contains("2.5");
    stricter || laxer
}

/// Returns whether a generated result belongs to the definition, for methods with several.
fn has_definition(given: &Value, definition: &str) -> bool {
    let kind = match given["resultType"].as_str() {
        Some("input_required") => "InputRequiredResult",
        Some("task") => "none in the schema",
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
    validators: HashMap<String, Validator>,
}

impl OfficialSchema {
    fn load(data: &Path, revision: Revision) -> Self {
        let path = data.join(format!("spec/schema/{revision}.json"));
        let text = fs::read_to_string(path).expect("the schema file exists");
        let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
        let root = match schema.get("$defs") {
            Some(_) => "$defs",
            None => "definitions",
        };
        Self {
            schema,
            root,
            validators: HashMap::new(),
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
                    .expect("the reference resolves"),
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
        let requests_input =
            properties.is_some_and(|properties| properties.contains_key("inputRequests"));
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
                "resultType" if requests_input => json!("input_required"),
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

    /// Returns whether values of a schema are finite: any JSON may contain any JSON.
    fn is_finite(&self, schema: &Value) -> bool {
        let reference = schema["$ref"].as_str().unwrap_or_default();
        !reference.ends_with("/JSONValue")
    }

    fn is_valid(&mut self, schema: &Value, message: &Value) -> bool {
        let key = schema.to_string();
        if !self.validators.contains_key(&key) {
            let validator = jsonschema::options()
                .should_validate_formats(false)
                .build(&self.with_definitions(schema))
                .expect("the schema is valid");
            self.validators.insert(key.clone(), validator);
        }
        self.validators[&key].is_valid(message)
    }

    /// Returns a schema with the definitions that it needs: compiling all definitions takes long.
    fn with_definitions(&self, schema: &Value) -> Value {
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
        // In draft-07, `$ref` hides all other keywords.
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
