//! Untrusted schemas, and values that are validated against them.
//!
//! The first line is a schema, every other one a value. Both are as deep as a message may be.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use turnbuckle_schema::SchemaValidator;

fuzz_target!(|input: &str| {
    let mut lines = input.lines();
    let schema = lines
        .next()
        .and_then(|line| serde_json::from_str(line).ok());
    let Some(Value::Object(schema)) = schema else {
        return;
    };
    let strict = SchemaValidator::new(&schema);
    let Ok(lenient) = SchemaValidator::lenient(&schema) else {
        assert!(strict.is_err(), "lenient validation accepts more");
        return;
    };
    for line in lines.take(8) {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let verdict = lenient.check("value", &value);
        if let Err(mismatch) = &verdict {
            let words = mismatch.to_string();
            assert!(words.starts_with("`value"), "{words}");
            assert!(words.len() < 1100, "{} bytes", words.len());
        }
        if let Ok(strict) = &strict {
            assert_eq!(strict.check("value", &value), verdict);
        }
    }
});
