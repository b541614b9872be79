//! Which arguments of a tool are repeated in headers: the `x-mcp-header` marks of its input schema.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::{Map, Value};

const KEYWORD: &str = "x-mcp-header";

/// How many arguments may be marked: many HTTP servers take no more than a hundred headers.
const MAX_MARKS: usize = 64;

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The name of the header after `Mcp-Param-`, as the schema spells it.
    pub header: String,
    /// The names of the properties that lead to the argument, outermost first.
    pub path: Vec<String>,
}

/// Why a schema's marks make its tool unusable over HTTP.
///
/// Each names the place in the schema as a JSON Pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadMark {
    /// The mark is not a string that can be part of a header name.
    #[error("`x-mcp-header` at `{place}` is not an HTTP token")]
    Name {
        /// Where it stands.
        place: String,
    },
    /// Another mark has the same name, ignoring case.
    #[error("`x-mcp-header` at `{place}` repeats the name `{name}`")]
    Repeated {
        /// Where it stands.
        place: String,
        /// The name.
        name: String,
    },
    /// The property is neither a string nor an integer nor a boolean.
    #[error("`x-mcp-header` at `{place}` marks what is not a string, an integer or a boolean")]
    Kind {
        /// Where it stands.
        place: String,
    },
    /// The mark does not stand on a property reached through `properties` alone.
    #[error("`x-mcp-header` at `{place}` is not reached through `properties` alone")]
    Unreachable {
        /// Where it stands.
        place: String,
    },
    /// More marks than a request has room for.
    #[error("more than 64 properties have `x-mcp-header`")]
    TooMany,
}

/// Finds the marks of an input schema, in its order, or says which one is not allowed.
///
/// A property whose type is a list of one such type and `null` may be marked too: the text does not
/// speak of it, and null simply has no header.
pub fn marks(schema: &Value) -> Result<Vec<Mark>, BadMark> {
    let Value::Object(schema) = schema else {
        return Ok(Vec::new());
    };
    let mut tree = Tree::new(schema);
    let mut found = Vec::new();
    let mut names = HashSet::new();
    // A stack of our own, since a schema made by a program can be of any depth.
    let mut open = vec![ROOT];
    while let Some(place) = open.pop() {
        if let Some(name) = tree.schema(place).get(KEYWORD) {
            let mark = tree.judge(place, name)?;
            if !names.insert(mark.header.to_ascii_lowercase()) {
                return Err(BadMark::Repeated {
                    place: tree.pointer(place),
                    name: mark.header,
                });
            }
            if found.len() == MAX_MARKS {
                return Err(BadMark::TooMany);
            }
            found.push(mark);
        }
        // Reversed, because the last one pushed is looked at first.
        open.extend(tree.grow(place).rev());
    }
    Ok(found)
}

/// The schemas inside a schema, each with the way that leads to it.
struct Tree<'a> {
    places: Vec<Place<'a>>,
}

struct Place<'a> {
    schema: &'a Map<String, Value>,
    parent: usize,
    step: Step<'a>,
}

/// How one gets from a schema to one directly inside it.
enum Step<'a> {
    Stay,
    Property(&'a str),
    Keyword(&'a str),
    Named(&'a str, &'a str),
    Listed(&'a str, usize),
}

const ROOT: usize = 0;

impl<'a> Tree<'a> {
    fn new(schema: &'a Map<String, Value>) -> Self {
        Self {
            places: vec![Place {
                schema,
                parent: ROOT,
                step: Step::Stay,
            }],
        }
    }

    fn schema(&self, place: usize) -> &'a Map<String, Value> {
        self.places[place].schema
    }

    /// Adds the schemas directly inside one, and returns where they are.
    fn grow(&mut self, parent: usize) -> Range<usize> {
        let first = self.places.len();
        for (keyword, value) in self.schema(parent) {
            match (keyword.as_str(), value) {
                // What these hold is data, whatever it looks like.
                ("const" | "enum" | "default" | "examples", _) => {}
                ("properties", Value::Object(schemas)) => {
                    let steps = schemas.iter().map(|(name, s)| (Step::Property(name), s));
                    self.add(parent, steps);
                }
                (
                    "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                    Value::Object(schemas),
                ) => {
                    let steps = schemas
                        .iter()
                        .map(|(name, s)| (Step::Named(keyword, name), s));
                    self.add(parent, steps);
                }
                (_, Value::Array(schemas)) => {
                    let numbered = schemas.iter().enumerate();
                    self.add(parent, numbered.map(|(n, s)| (Step::Listed(keyword, n), s)));
                }
                (_, schema) => self.add(parent, [(Step::Keyword(keyword), schema)]),
            }
        }
        first..self.places.len()
    }

    fn add(&mut self, parent: usize, steps: impl IntoIterator<Item = (Step<'a>, &'a Value)>) {
        let places = steps.into_iter().filter_map(|(step, schema)| {
            let schema = schema.as_object()?;
            Some(Place {
                schema,
                parent,
                step,
            })
        });
        self.places.extend(places);
    }

    fn judge(&self, place: usize, name: &Value) -> Result<Mark, BadMark> {
        let pointer = || self.pointer(place);
        let path = self.path(place);
        let path = path.ok_or_else(|| BadMark::Unreachable { place: pointer() })?;
        let header = name.as_str().filter(|name| is_token(name));
        let header = header.ok_or_else(|| BadMark::Name { place: pointer() })?;
        if !is_simple(self.schema(place).get("type")) {
            return Err(BadMark::Kind { place: pointer() });
        }
        Ok(Mark {
            header: header.to_owned(),
            path,
        })
    }

    /// Names the properties that lead to a place, if there are any and nothing else does.
    fn path(&self, place: usize) -> Option<Vec<String>> {
        let names = self.way(place).into_iter().map(|step| match step {
            Step::Property(name) => Some((*name).to_owned()),
            _ => None,
        });
        let path: Vec<String> = names.collect::<Option<_>>()?;
        (!path.is_empty()).then_some(path)
    }

    /// Names a place as a JSON Pointer.
    fn pointer(&self, place: usize) -> String {
        let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
        let steps = self.way(place).into_iter().map(|step| match step {
            Step::Stay => String::new(),
            Step::Property(name) => format!("/properties/{}", escaped(name)),
            Step::Keyword(keyword) => format!("/{}", escaped(keyword)),
            Step::Named(keyword, name) => format!("/{}/{}", escaped(keyword), escaped(name)),
            Step::Listed(keyword, index) => format!("/{}/{index}", escaped(keyword)),
        });
        steps.collect()
    }

    /// Lists the steps from the root to a place.
    fn way(&self, mut place: usize) -> Vec<&Step<'a>> {
        let mut way = Vec::new();
        while place != ROOT {
            way.push(&self.places[place].step);
            place = self.places[place].parent;
        }
        way.reverse();
        way
    }
}

fn is_simple(kind: Option<&Value>) -> bool {
    let simple = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match kind {
        Some(Value::Array(kinds)) => match kinds.as_slice() {
            [one, null] | [null, one] if null == "null" => simple(one),
            [one] => simple(one),
            _ => false,
        },
        Some(kind) => simple(kind),
        None => false,
    }
}

/// Says whether a text is a token of HTTP (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}
