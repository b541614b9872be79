//! Short schemas that could keep a validator busy for a very long time, or exhaust its stack or memory.

use std::time::{Duration, Instant};

use super::*;

/// Runs on the default stack size of runtime threads, and fails if it takes too long.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let started = Instant::now();
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let outcome = thread.spawn(work).unwrap().join().unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "it took {:?}",
        started.elapsed()
    );
    outcome
}

/// Returns `a0` to `a{count}`, where `one` builds each from the reference to the next.
fn definitions(count: usize, one: impl Fn(Value) -> Value) -> Value {
    let mut all: Map<_, _> = (0..count)
        .map(|at| {
            let next = json!({ "$ref": format!("#/$defs/a{}", at + 1) });
            (format!("a{at}"), one(next))
        })
        .collect();
    all.insert(format!("a{count}"), json!({ "type": "object" }));
    all.into()
}

fn beginning_with_a0(definitions: Value) -> Value {
    json!({ "$ref": "#/$defs/a0", "$defs": definitions })
}

#[test]
fn two_references_to_two_references_each_end_in_time() {
    req!("schema.bounds");
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let schema = beginning_with_a0(definitions(60, |next| json!({ keyword: [next, next] })));

        let outcome = in_time(move || {
            let validator = validator(schema);
            (check(&validator, "{}"), check(&validator, "1"))
        });

        let too_long = || Err("`arguments`: takes too long to be validated".to_owned());
        // The first alternative matches, or the first of two does not; both are found immediately.
        let fits = if keyword == "anyOf" {
            Ok(())
        } else {
            too_long()
        };
        let fails = if keyword == "allOf" {
            Err("`arguments`: does not match the schema".to_owned())
        } else {
            too_long()
        };
        assert_eq!(outcome, (fits, fails), "{keyword}");
    }
}

#[test]
fn two_alternatives_per_level_end_in_time() {
    req!("schema.bounds");
    let way = |next: Value| {
        let deeper = json!({ "properties": { "a": next } });
        json!({ "allOf": [deeper, deeper] })
    };
    let mut looped = definitions(60, way);
    looped["a60"] = json!({ "$ref": "#" });
    let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));

    let outcome = in_time(move || check(&validator(beginning_with_a0(looped)), &deep));

    assert_eq!(
        outcome,
        Err("`arguments`: takes too long to be validated".to_owned())
    );
}

#[test]
fn nested_unevaluated_keywords_end_in_time() {
    req!("schema.bounds");
    for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
        let mut schema = json!({});
        for _ in 0..60 {
            schema = json!({ "anyOf": [schema], keyword: { "type": "integer" } });
        }
        let (object, array) = in_time(move || {
            let validator = validator(schema);
            (check(&validator, r#"{"a":1}"#), check(&validator, "[1]"))
        });

        let ended = if keyword == "unevaluatedItems" {
            array
        } else {
            object
        };
        assert_eq!(
            ended,
            Err("`arguments`: takes too long to be validated".to_owned())
        );
    }
}

#[test]
fn a_schema_that_refers_to_itself_is_rejected() {
    req!("schema.bounds");
    let all: Vec<_> = (0..20)
        .map(|at| json!({ "$ref": format!("#/$defs/a{at}") }))
        .collect();
    let each: Map<_, _> = (0..20)
        .map(|at| (format!("a{at}"), json!({ "allOf": all })))
        .collect();
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "not": { "$ref": "#" } }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "anyOf": [true, { "$ref": "#/$defs/a" }] } } }),
        json!({ "$ref": "#/$defs/a0", "$defs": each }),
    ] {
        let error = in_time(move || rejection(schema));

        assert_eq!(error, "the schema refers to itself for the same value");
    }
}

#[test]
fn few_references_by_name_are_accepted() {
    req!("schema.bounds");
    let by_name = |count: usize| {
        let next = |at| json!({ "$ref": format!("#n{at}") });
        let each: Map<_, _> = (0..count)
            .map(|at| {
                let two =
                    json!({ "$anchor": format!("n{at}"), "allOf": [next(at + 1), next(at + 1)] });
                (format!("a{at}"), two)
            })
            .collect();
        let mut each = Value::Object(each);
        each["end"] = json!({ "$anchor": format!("n{count}"), "type": "object" });
        json!({ "allOf": [next(0)], "$defs": each })
    };

    assert_eq!(check(&validator(by_name(5)), "{}"), Ok(()));
    assert!(check(&validator(by_name(5)), "1").is_err());
    assert_eq!(
        rejection(by_name(60)),
        "the schema has too many references by name"
    );
}

#[test]
fn a_schema_that_is_too_deep_is_rejected() {
    req!("schema.bounds");
    let nested = |levels| {
        let mut schema = json!({ "type": "integer" });
        for _ in 0..levels {
            schema = json!({ "allOf": [schema] });
        }
        schema
    };
    assert!(in_time(move || check(&validator(nested(100)), "\"x\"")).is_err());
    assert_eq!(
        in_time(move || rejection(nested(200))),
        "the schema is too deep"
    );

    let chain = beginning_with_a0(definitions(5000, |next| next));
    assert_eq!(in_time(move || rejection(chain)), "the schema is too deep");
}

#[test]
fn references_that_lead_deeper_may_be_many() {
    let chain = definitions(5000, |next| json!({ "properties": { "a": next } }));

    let outcome = in_time(move || check(&validator(beginning_with_a0(chain)), r#"{"a":{"a":{}}}"#));

    assert_eq!(outcome, Ok(()));
}

/// Each level of the value passes through all levels of the schema.
#[test]
fn a_deep_value_of_a_deep_schema_does_not_exhaust_the_stack() {
    req!("schema.bounds");
    let mut chain = definitions(100, |next| json!({ "anyOf": [next] }));
    chain["a100"] = json!({ "items": { "$ref": "#" } });
    let nested = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));

    let (deep, shallow) = in_time(move || {
        let validator = validator(beginning_with_a0(chain));
        (
            check(&validator, &nested(120)),
            check(&validator, &nested(5)),
        )
    });

    assert_eq!(
        deep,
        Err("`arguments`: too deeply nested to be validated".to_owned())
    );
    assert_eq!(shallow, Ok(()));
}

#[test]
fn a_huge_schema_is_rejected() {
    req!("schema.bounds");
    let huge = json!({ "enum": vec![0; 100_000] });

    assert_eq!(rejection(huge), "the schema is too large");
}

#[test]
fn patterns_together_have_a_limit() {
    req!("schema.bounds");
    let one = "(\\w{50}){5}";
    assert!(check(&validator(json!({ "pattern": one })), "\"a\"").is_err());

    let many: Map<_, _> = (0..1000)
        .map(|at| (format!("^{at}{one}"), json!(true)))
        .collect();
    let error = in_time(move || rejection(json!({ "patternProperties": many })));

    assert!(error.contains("/patternProperties"), "{error}");
}

#[test]
fn ordinary_schemas_are_not_counted() {
    let plain = json!({ "type": "object", "properties": {
        "a": { "type": "string", "pattern": "^a+$" },
        "b": { "items": { "anyOf": [{ "type": "integer" }, { "$ref": "#/$defs/c" }] } }
    }, "$defs": { "c": { "enum": ["x"] } } });

    let graph = SchemaGraph::new(&plain);
    assert!(!Complexity::analyze(&graph).unwrap().is_exponential());
}
