//! Arguments that are repeated in headers: the `x-mcp-header` keyword of an input schema.

use std::{collections::HashSet, ops::Range};

use serde_json::{Map, Value};

const KEYWORD: &str = "x-mcp-header";

/// The maximum number of param headers; many HTTP servers accept no more than a hundred headers.
const MAX_PARAM_HEADERS: usize = 64;

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    /// The header name after `Mcp-Param-`, as written in the schema.
    pub header: String,
    /// The property names on the path to the argument, outermost first.
    pub path: Vec<String>,
}

/// The reason why the `x-mcp-header` keywords of a schema make its tool unusable over HTTP.
///
/// `pointer` is the location in the schema, as a JSON Pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidParamHeader {
    /// The value is not a string that can be part of a header name.
    #[error("`x-mcp-header` at `{pointer}` is not an HTTP token")]
    Name {
        /// The location in the schema.
        pointer: String,
    },
    /// Another property has the same header name, ignoring case.
    #[error("`x-mcp-header` at `{pointer}` repeats the name `{name}`")]
    Repeated {
        /// The location in the schema.
        pointer: String,
        /// The header name.
        name: String,
    },
    /// The type of the property is not string, integer or boolean.
    #[error("`x-mcp-header` at `{pointer}` is not on a string, integer or boolean")]
    Kind {
        /// The location in the schema.
        pointer: String,
    },
    /// The property is not reachable through `properties` alone.
    #[error("`x-mcp-header` at `{pointer}` is not reached through `properties` alone")]
    Unreachable {
        /// The location in the schema.
        pointer: String,
    },
    /// More headers than a request may have.
    #[error("more than 64 properties have `x-mcp-header`")]
    TooMany,
}

/// Returns the param headers of an input schema in order, or an error for the first invalid one.
///
/// A property with a type list of one such type and `null` is allowed too: the specification does not mention it, and
/// null is sent without a header.
pub fn param_headers(schema: &Value) -> Result<Vec<ParamHeader>, InvalidParamHeader> {
    let Value::Object(schema) = schema else {
        return Ok(Vec::new());
    };
    let mut tree = SchemaTree::new(schema);
    let mut found = Vec::new();
    let mut names = HashSet::new();
    // An explicit stack, because a generated schema can have any depth.
    let mut open = vec![ROOT];
    while let Some(node) = open.pop() {
        if let Some(name) = tree.schema(node).get(KEYWORD) {
            let header = tree.param_header(node, name)?;
            if !names.insert(header.header.to_ascii_lowercase()) {
                return Err(InvalidParamHeader::Repeated {
                    pointer: tree.pointer(node),
                    name: header.header,
                });
            }
            if found.len() == MAX_PARAM_HEADERS {
                return Err(InvalidParamHeader::TooMany);
            }
            found.push(header);
        }
        // Reversed, because the stack is last in, first out.
        open.extend(tree.expand(node).rev());
    }
    Ok(found)
}

/// The subschemas of a schema, each with the step that leads to it.
struct SchemaTree<'a> {
    nodes: Vec<SchemaNode<'a>>,
}

struct SchemaNode<'a> {
    schema: &'a Map<String, Value>,
    parent: usize,
    step: SchemaStep<'a>,
}

/// The step from a schema to a direct subschema.
enum SchemaStep<'a> {
    Root,
    Property(&'a str),
    Keyword(&'a str),
    Member(&'a str, &'a str),
    Item(&'a str, usize),
}

const ROOT: usize = 0;

impl<'a> SchemaTree<'a> {
    fn new(schema: &'a Map<String, Value>) -> Self {
        Self {
            nodes: vec![SchemaNode {
                schema,
                parent: ROOT,
                step: SchemaStep::Root,
            }],
        }
    }

    fn schema(&self, node: usize) -> &'a Map<String, Value> {
        self.nodes[node].schema
    }

    /// Adds the direct subschemas of a node and returns their indices.
    fn expand(&mut self, parent: usize) -> Range<usize> {
        let first = self.nodes.len();
        for (keyword, value) in self.schema(parent) {
            match (keyword.as_str(), value) {
                // The values of these keywords are data, not schemas.
                ("const" | "enum" | "default" | "examples", _) => {}
                ("properties", Value::Object(schemas)) => {
                    let steps = schemas
                        .iter()
                        .map(|(name, s)| (SchemaStep::Property(name), s));
                    self.add(parent, steps);
                }
                (
                    "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                    Value::Object(schemas),
                ) => {
                    let steps = schemas
                        .iter()
                        .map(|(name, s)| (SchemaStep::Member(keyword, name), s));
                    self.add(parent, steps);
                }
                (_, Value::Array(schemas)) => {
                    let numbered = schemas.iter().enumerate();
                    self.add(
                        parent,
                        numbered.map(|(n, s)| (SchemaStep::Item(keyword, n), s)),
                    );
                }
                (_, schema) => self.add(parent, [(SchemaStep::Keyword(keyword), schema)]),
            }
        }
        first..self.nodes.len()
    }

    fn add(&mut self, parent: usize, steps: impl IntoIterator<Item = (SchemaStep<'a>, &'a Value)>) {
        let nodes = steps.into_iter().filter_map(|(step, schema)| {
            let schema = schema.as_object()?;
            Some(SchemaNode {
                schema,
                parent,
                step,
            })
        });
        self.nodes.extend(nodes);
    }

    fn param_header(&self, node: usize, name: &Value) -> Result<ParamHeader, InvalidParamHeader> {
        let pointer = || self.pointer(node);
        let path = self.path(node);
        let path = path.ok_or_else(|| InvalidParamHeader::Unreachable { pointer: pointer() })?;
        let header = name.as_str().filter(|name| is_token(name));
        let header = header.ok_or_else(|| InvalidParamHeader::Name { pointer: pointer() })?;
        if !is_simple(self.schema(node).get("type")) {
            return Err(InvalidParamHeader::Kind { pointer: pointer() });
        }
        Ok(ParamHeader {
            header: header.to_owned(),
            path,
        })
    }

    /// Returns the property names on the path to a node, or `None` if the path contains other keywords.
    fn path(&self, node: usize) -> Option<Vec<String>> {
        let names = self.steps_to(node).into_iter().map(|step| match step {
            SchemaStep::Property(name) => Some((*name).to_owned()),
            _ => None,
        });
        let path: Vec<String> = names.collect::<Option<_>>()?;
        (!path.is_empty()).then_some(path)
    }

    /// Returns the JSON Pointer of a node.
    fn pointer(&self, node: usize) -> String {
        let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
        let steps = self.steps_to(node).into_iter().map(|step| match step {
            SchemaStep::Root => String::new(),
            SchemaStep::Property(name) => format!("/properties/{}", escaped(name)),
            SchemaStep::Keyword(keyword) => format!("/{}", escaped(keyword)),
            SchemaStep::Member(keyword, name) => format!("/{}/{}", escaped(keyword), escaped(name)),
            SchemaStep::Item(keyword, index) => format!("/{}/{index}", escaped(keyword)),
        });
        steps.collect()
    }

    /// Returns the steps from the root to a node.
    fn steps_to(&self, mut node: usize) -> Vec<&SchemaStep<'a>> {
        let mut steps = Vec::new();
        while node != ROOT {
            steps.push(&self.nodes[node].step);
            node = self.nodes[node].parent;
        }
        steps.reverse();
        steps
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

/// Returns whether a text is an HTTP token (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}
