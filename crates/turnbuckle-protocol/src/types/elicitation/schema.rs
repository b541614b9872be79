//! The restricted JSON Schema of a form: a flat object of primitive fields.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::{Map, Value};

use super::{BooleanSchema, MultiSelectSchema, NumberSchema, SingleSelectSchema, StringSchema};
use crate::{
    json::{self, JsonError},
    types::JsonObject,
};

/// The fields of a form, some of them required.
///
/// ```
/// use turnbuckle_protocol::types::elicitation::{BooleanSchema, ElicitSchema, StringSchema};
///
/// let schema = ElicitSchema::new()
///     .required("name", StringSchema::new().title("Your name"))
///     .optional("newsletter", BooleanSchema::new().default(false));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ElicitSchema {
    pub(crate) dialect: Option<String>,
    pub(crate) properties: Vec<(String, PrimitiveSchema)>,
    pub(crate) required: Vec<String>,
}

impl ElicitSchema {
    /// Creates a form without fields.
    pub fn new() -> Self {
        Default::default()
    }

    /// Adds a required field.
    #[must_use]
    pub fn required(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        if !self.is_required(&name) {
            self.required.push(name.clone());
        }
        self.set(name, schema.into());
        self
    }

    /// Adds an optional field.
    #[must_use]
    pub fn optional(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        self.required.retain(|required| *required != name);
        self.set(name, schema.into());
        self
    }

    /// Returns the fields in the order in which they were added.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &PrimitiveSchema)> {
        let fields = self.properties.iter();
        fields.map(|(name, schema)| (&**name, schema))
    }

    /// Returns a field by name.
    pub fn field(&self, name: &str) -> Option<&PrimitiveSchema> {
        let mut fields = self.fields();
        fields.find_map(|(existing, schema)| (existing == name).then_some(schema))
    }

    /// Returns whether a field is required.
    pub fn is_required(&self, name: &str) -> bool {
        self.required.iter().any(|required| required == name)
    }

    /// Returns the names of the required fields.
    pub fn required_names(&self) -> impl Iterator<Item = &str> {
        self.required.iter().map(String::as_str)
    }

    /// Converts a single string to a list for multi-select fields.
    ///
    /// Clients before 2025-11-25 get a single-select field instead, and respond with a string.
    pub fn wrap_single_choices(&self, answers: &mut JsonObject) {
        for (name, field) in &self.properties {
            if let PrimitiveSchema::MultiSelect(_) = field
                && let Some(answer) = answers.get_mut(name)
                && answer.is_string()
            {
                *answer = Value::Array(vec![answer.take()]);
            }
        }
    }

    fn set(&mut self, name: String, schema: PrimitiveSchema) {
        match self
            .properties
            .iter_mut()
            .find(|(existing, _)| *existing == name)
        {
            Some((_, existing)) => *existing = schema,
            None => self.properties.push((name, schema)),
        }
    }
}

impl Serialize for ElicitSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(dialect) = &self.dialect {
            map.serialize_entry("$schema", dialect)?;
        }
        map.serialize_entry("type", "object")?;
        map.serialize_entry("properties", &OrderedProperties(&self.properties))?;
        if !self.required.is_empty() {
            map.serialize_entry("required", &self.required)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ElicitSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct RawSchema {
            #[serde(rename = "$schema")]
            dialect: Option<String>,
            #[serde(rename = "type")]
            kind: String,
            #[serde(default, deserialize_with = "in_order")]
            properties: Vec<(String, PrimitiveSchema)>,
            #[serde(default)]
            required: Vec<String>,
        }
        let raw = RawSchema::deserialize(deserializer)?;
        if raw.kind != "object" {
            return Err(D::Error::custom("the schema of a form is an object"));
        }
        Ok(Self {
            dialect: raw.dialect,
            properties: raw.properties,
            required: raw.required,
        })
    }
}

/// Serializes named schemas as an object.
struct OrderedProperties<'a>(&'a [(String, PrimitiveSchema)]);

impl Serialize for OrderedProperties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, schema)| (name, schema)))
    }
}

/// Deserializes named schemas in their order, which is the order of the form.
fn in_order<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, PrimitiveSchema)>, D::Error> {
    struct OrderedVisitor;

    impl<'de> Visitor<'de> for OrderedVisitor {
        type Value = Vec<(String, PrimitiveSchema)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut fields = Vec::new();
            while let Some(field) = map.next_entry()? {
                fields.push(field);
            }
            Ok(fields)
        }
    }

    deserializer.deserialize_map(OrderedVisitor)
}

/// The schema of one field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum PrimitiveSchema {
    /// Text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// A boolean.
    Boolean(BooleanSchema),
    /// A single choice.
    SingleSelect(SingleSelectSchema),
    /// Multiple choices (since 2025-11-25).
    MultiSelect(MultiSelectSchema),
}

impl<'de> Deserialize<'de> for PrimitiveSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = Map::deserialize(deserializer)?;
        let kind = members.get("type").and_then(Value::as_str).unwrap_or("");
        let chosen = members.contains_key("enum") || members.contains_key("oneOf");
        let read = match kind {
            "string" if chosen => from_members(members).map(Self::SingleSelect),
            "string" => from_members(members).map(Self::String),
            "number" | "integer" => from_members(members).map(Self::Number),
            "boolean" => from_members(members).map(Self::Boolean),
            "array" => from_members(members).map(Self::MultiSelect),
            _ => {
                return Err(D::Error::custom(
                    "a field is a string, number, integer, boolean or array",
                ));
            }
        };
        read.map_err(D::Error::custom)
    }
}

fn from_members<T: for<'de> Deserialize<'de>>(members: Map<String, Value>) -> Result<T, JsonError> {
    json::from_value(&Value::Object(members))
}

macro_rules! into_primitive {
    ($($variant:ident($type:ty)),* $(,)?) => {$(
        impl From<$type> for PrimitiveSchema {
            fn from(schema: $type) -> Self {
                Self::$variant(schema)
            }
        }
    )*};
}

into_primitive!(
    String(StringSchema),
    Number(NumberSchema),
    Boolean(BooleanSchema),
    SingleSelect(SingleSelectSchema),
    MultiSelect(MultiSelectSchema),
);
