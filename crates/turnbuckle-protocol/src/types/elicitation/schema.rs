//! The restricted JSON Schema of a form: a flat object of simple fields.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::{Map, Value};

use super::{BooleanSchema, MultiSelectSchema, NumberSchema, SingleSelectSchema, StringSchema};
use crate::{
    json::{self, ReadError},
    types::JsonObject,
};

/// What a form asks for: named fields, some of them required.
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

    /// Adds a field that has to be filled in.
    #[must_use]
    pub fn required(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        if !self.is_required(&name) {
            self.required.push(name.clone());
        }
        self.set(name, schema.into());
        self
    }

    /// Adds a field that may stay empty.
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
        fields.find_map(|(known, schema)| (known == name).then_some(schema))
    }

    /// Says whether a field has to be filled in.
    pub fn is_required(&self, name: &str) -> bool {
        self.required.iter().any(|required| required == name)
    }

    /// Returns the names of the fields that have to be filled in.
    pub fn required_names(&self) -> impl Iterator<Item = &str> {
        self.required.iter().map(String::as_str)
    }

    /// Turns a lone string into a list of one where the form offers several.
    ///
    /// Clients before 2025-11-25 are shown a single choice in its place, and answer accordingly.
    pub fn widen(&self, answers: &mut JsonObject) {
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
        match self.properties.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = schema,
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
        map.serialize_entry("properties", &Properties(&self.properties))?;
        if !self.required.is_empty() {
            map.serialize_entry("required", &self.required)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ElicitSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            #[serde(rename = "$schema")]
            dialect: Option<String>,
            #[serde(rename = "type")]
            kind: String,
            #[serde(default, deserialize_with = "in_order")]
            properties: Vec<(String, PrimitiveSchema)>,
            #[serde(default)]
            required: Vec<String>,
        }
        let raw = Raw::deserialize(deserializer)?;
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

/// Writes named schemas as an object.
struct Properties<'a>(&'a [(String, PrimitiveSchema)]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, schema)| (name, schema)))
    }
}

/// Reads named schemas in the order in which they come: it is the order of the form.
fn in_order<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, PrimitiveSchema)>, D::Error> {
    struct InOrder;

    impl<'de> Visitor<'de> for InOrder {
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

    deserializer.deserialize_map(InOrder)
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
    /// Yes or no.
    Boolean(BooleanSchema),
    /// One of several.
    SingleSelect(SingleSelectSchema),
    /// Some of several (since 2025-11-25).
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

fn from_members<T: for<'de> Deserialize<'de>>(members: Map<String, Value>) -> Result<T, ReadError> {
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
