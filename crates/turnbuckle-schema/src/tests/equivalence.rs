//! Counting steps does not change validation results.

use super::*;

/// Pseudorandom numbers that are the same in every run.
struct PseudoRandom(u64);

impl PseudoRandom {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        let at = self.below(from.len() as u64);
        from[usize::try_from(at).unwrap()]
    }

    fn schema(&mut self, depth: u64) -> Value {
        let mut schema = Map::new();
        for _ in 0..=self.below(3) {
            let (keyword, value) = self.keyword(depth);
            schema.insert(keyword.to_owned(), value);
        }
        schema.into()
    }

    fn keyword(&mut self, depth: u64) -> (&'static str, Value) {
        let leaf = depth == 0;
        match self.below(if leaf { 4 } else { 14 }) {
            0 => {
                let kind = self.pick(&["object", "array", "integer", "string", "null"]);
                ("type", json!(kind))
            }
            1 => ("minimum", json!(self.below(4))),
            2 => ("required", json!([self.pick(&["a", "b"])])),
            3 => ("maxItems", json!(self.below(3))),
            4..=6 => {
                let keyword = self.pick(&["allOf", "anyOf", "oneOf"]);
                let two = [self.schema(depth - 1), self.schema(depth - 1)];
                (keyword, json!(two))
            }
            7 => ("not", self.schema(depth - 1)),
            8 => (self.pick(&["if", "then", "else"]), self.schema(depth - 1)),
            9 | 10 => {
                let name = self.pick(&["a", "b"]);
                ("properties", json!({ name: self.inner(depth) }))
            }
            11 => {
                let keyword = self.pick(&["items", "additionalProperties", "contains"]);
                (keyword, self.inner(depth))
            }
            12 => {
                let keyword = self.pick(&["unevaluatedProperties", "unevaluatedItems"]);
                (keyword, self.inner(depth))
            }
            _ => ("dependentSchemas", json!({ "a": self.schema(depth - 1) })),
        }
    }

    /// Returns a schema for a part, which may contain the whole schema.
    fn inner(&mut self, depth: u64) -> Value {
        match self.below(4) {
            0 => json!(false),
            1 => json!({ "$ref": self.pick(&["#", "#/$defs/d"]) }),
            _ => self.schema(depth - 1),
        }
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 3 } else { 7 }) {
            0 => json!(self.below(4)),
            1 => json!("a"),
            2 => json!(null),
            3 | 4 => json!([self.value(depth - 1), self.value(depth - 1)]),
            _ => {
                json!({ self.pick(&["a", "b"]): self.value(depth - 1), "b": self.value(depth - 1) })
            }
        }
    }
}

#[test]
fn counting_steps_does_not_change_results() {
    let mut random = PseudoRandom(7);
    let (mut counted, mut fitting, mut tried) = (0, 0, 0);
    for _ in 0..600 {
        let mut schema = random.schema(4);
        schema["$defs"] = json!({ "d": random.schema(2) });
        let Ok(ours) = SchemaValidator::new(schema.as_object().unwrap()) else {
            continue;
        };
        counted += u32::from(ours.compiled.complexity.is_exponential());
        let plain = jsonschema::options().offline().build(&schema).unwrap();
        for _ in 0..12 {
            let value = random.value(4);
            let fits = ours.check("value", &value).is_ok();

            assert_eq!(fits, plain.is_valid(&value), "{schema} {value}");

            tried += 1;
            fitting += u32::from(fits);
        }
    }
    // The test needs enough cases of each kind.
    assert!(counted > 50, "{counted} schemas were counted");
    assert!(
        fitting > tried / 10 && fitting < tried * 9 / 10,
        "{fitting} of {tried}"
    );
}
