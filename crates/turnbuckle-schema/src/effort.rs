//! How much work it may be to say why a value does not fit.
//!
//! To find out *whether* it fits is always cheap. To say why not means to collect the errors of every alternative, and
//! of the alternatives within them: where a schema contains itself, that doubles with each level of the value.

use serde_json::Value;

/// Values with more parts than this get one mistake named.
const PARTS: usize = 4096;
/// As many ways through a schema that contains itself are tried.
const WAYS: u32 = 4096;

/// What explaining costs with one schema.
pub(super) struct Effort {
    /// How many subschemas may apply at one and the same place.
    branches: u32,
    /// Whether a value of any depth can fit.
    recursive: bool,
}

impl Effort {
    pub(super) fn of(schema: &Value) -> Self {
        Self {
            branches: branches(schema),
            recursive: Search::new(schema).finds_cycle(schema),
        }
    }

    /// Whether all mistakes in a value may be collected.
    pub(super) fn allows_all(&self, value: &Value) -> bool {
        let mut left = PARTS;
        let Some(depth) = depth(value, &mut left) else {
            return false;
        };
        let ways = self.branches.max(1).checked_pow(depth);
        !self.recursive || ways.is_some_and(|ways| ways <= WAYS)
    }

    /// Whether the first mistake in a value may be looked for, however large the value is.
    pub(super) fn allows_first(&self) -> bool {
        self.branches == 0
    }
}

fn branches(schema: &Value) -> u32 {
    match schema {
        Value::Array(items) => items.iter().map(branches).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(keyword, value)| branches(value) + branches_of(keyword, value))
            .sum(),
        _ => 0,
    }
}

fn branches_of(keyword: &str, value: &Value) -> u32 {
    let branches = match (keyword, value) {
        ("anyOf" | "oneOf" | "allOf", Value::Array(branches)) => branches.len(),
        ("dependentSchemas" | "patternProperties", Value::Object(branches)) => branches.len(),
        ("then" | "else", _) => 1,
        _ => 0,
    };
    u32::try_from(branches).unwrap_or(u32::MAX)
}

/// How deep a value is, unless it has more than `left` parts.
fn depth(value: &Value, left: &mut usize) -> Option<u32> {
    *left = left.checked_sub(1)?;
    let mut deepest = 0;
    match value {
        Value::Array(items) => {
            for item in items {
                deepest = deepest.max(depth(item, left)? + 1);
            }
        }
        Value::Object(members) => {
            for member in members.values() {
                deepest = deepest.max(depth(member, left)? + 1);
            }
        }
        _ => {}
    }
    Some(deepest)
}

/// Follows references until one leads back to itself.
struct Search<'a> {
    root: &'a Value,
    following: Vec<&'a str>,
    harmless: Vec<&'a str>,
}

impl<'a> Search<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            following: Vec::new(),
            harmless: Vec::new(),
        }
    }

    fn finds_cycle(&mut self, schema: &'a Value) -> bool {
        match schema {
            Value::Array(items) => items.iter().any(|item| self.finds_cycle(item)),
            Value::Object(members) => members.iter().any(|(keyword, value)| {
                match (keyword.as_str(), value.as_str()) {
                    ("$ref", Some(target)) => self.leads_back(target),
                    // Where it leads is known only when a value is checked.
                    ("$dynamicRef" | "$recursiveRef", _) => true,
                    _ => self.finds_cycle(value),
                }
            }),
            _ => false,
        }
    }

    fn leads_back(&mut self, target: &'a str) -> bool {
        if self.harmless.contains(&target) {
            return false;
        }
        if self.following.contains(&target) {
            return true;
        }
        // A name instead of a path may lead anywhere.
        let Some(schema) = target
            .strip_prefix('#')
            .and_then(|at| self.root.pointer(at))
        else {
            return true;
        };
        self.following.push(target);
        let back = self.finds_cycle(schema);
        self.following.pop();
        self.harmless.push(target);
        back
    }
}
