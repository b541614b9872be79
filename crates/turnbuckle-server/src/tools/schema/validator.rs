//! Validation of values against the schemas of tools, by a validator that the settings of the server name.

use std::{
    any::TypeId,
    sync::{Arc, OnceLock},
};

use serde_json::{Map, Value};

/// Validates values against one JSON Schema.
///
/// For [`Server::validate_input_with`](crate::Server::validate_input_with) and
/// [`validate_output_with`](crate::Server::validate_output_with). The feature `validation` has an implementation.
///
/// ```
/// use serde_json::{Map, Value};
/// use turnbuckle_server::{SchemaValidator, Server};
///
/// /// Enforces `required` at the top level, and nothing else.
/// struct RequiredMembers(Vec<String>);
///
/// impl SchemaValidator for RequiredMembers {
///     fn compile(schema: &Map<String, Value>) -> Result<Self, String> {
///         let Some(required) = schema.get("required") else {
///             return Ok(Self(Vec::new()));
///         };
///         let names = required.as_array().ok_or("`required` must be an array")?;
///         let names = names.iter().filter_map(Value::as_str);
///         Ok(Self(names.map(str::to_owned).collect()))
///     }
///
///     fn check(&self, name: &str, value: &Value) -> Result<(), String> {
///         match self.0.iter().find(|required| value.get(required).is_none()) {
///             Some(missing) => Err(format!("`{name}`: missing field `{missing}`")),
///             None => Ok(()),
///         }
///     }
/// }
///
/// let server = Server::new("trips", "1.0.0").validate_input_with::<RequiredMembers>(true);
/// ```
pub trait SchemaValidator: Send + Sync + 'static {
    /// Compiles a schema, once per tool.
    ///
    /// # Errors
    ///
    /// The reason why the schema cannot be enforced. It becomes part of [`InvalidTool::Schema`](crate::InvalidTool::Schema).
    fn compile(schema: &Map<String, Value>) -> Result<Self, String>
    where
        Self: Sized;

    /// Validates a value. The call waits, and a peer can send any value, so the work must be bounded.
    ///
    /// # Errors
    ///
    /// The invalid locations as paths that start with `name`, such as `arguments.city`, with the expected values. A
    /// model reads it.
    fn check(&self, name: &str, value: &Value) -> Result<(), String>;
}

/// Compiles schemas to validators of one type.
#[derive(Clone, Copy)]
pub(crate) struct SchemaCompiler {
    validator: TypeId,
    compile: fn(&Map<String, Value>) -> Outcome,
}

/// A validator, or the reason why the schema cannot be enforced.
type Outcome = Result<Arc<dyn SchemaValidator>, String>;

impl SchemaCompiler {
    /// Returns the compiler of validators of type `V`.
    pub(crate) fn new<V: SchemaValidator>() -> Self {
        Self {
            validator: TypeId::of::<V>(),
            compile: |schema| Ok(Arc::new(V::compile(schema)?)),
        }
    }
}

/// The validators of one schema, by type: servers that share a tool can use different ones.
#[derive(Clone, Default)]
pub(crate) struct CompiledSchema {
    first: OnceLock<Arc<Compiled>>,
}

/// An element of the list, which only grows.
struct Compiled {
    validator: TypeId,
    outcome: Outcome,
    next: OnceLock<Arc<Compiled>>,
}

impl CompiledSchema {
    /// Returns the validator of a compiler, compiled by the first call. `schema` is always the same.
    pub(crate) fn validator(
        &self,
        compiler: SchemaCompiler,
        schema: &Map<String, Value>,
    ) -> Result<&dyn SchemaValidator, String> {
        let mut slot = &self.first;
        loop {
            let compiled = slot.get_or_init(|| {
                Arc::new(Compiled {
                    validator: compiler.validator,
                    outcome: (compiler.compile)(schema),
                    next: OnceLock::new(),
                })
            });
            if compiled.validator == compiler.validator {
                let outcome = compiled.outcome.as_ref();
                return outcome.map(|validator| &**validator).map_err(Clone::clone);
            }
            slot = &compiled.next;
        }
    }
}
