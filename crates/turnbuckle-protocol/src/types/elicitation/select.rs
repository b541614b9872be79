//! Single-select and multi-select fields.
//!
//! The wire has five forms of a choice: `enum`, `enum` with `enumNames`, `oneOf` with titles, and an array of either
//! `enum` or `anyOf`. Here a choice is a list of options; its titles determine the form.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error, ser::SerializeMap};

use crate::types::lenient_number::integer;

/// An option of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnumOption {
    /// The value.
    pub value: String,
    /// The display title, if different from the value.
    pub title: Option<String>,
}

impl EnumOption {
    /// Creates an option with a display title.
    pub fn titled(value: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            title: Some(title.into()),
        }
    }

    fn display_title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }
}

impl<T: Into<String>> From<T> for EnumOption {
    fn from(value: T) -> Self {
        Self {
            value: value.into(),
            title: None,
        }
    }
}

/// A single-select field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SingleSelectSchema {
    /// The label of the field.
    pub title: Option<String>,
    /// A description for the user.
    pub description: Option<String>,
    /// The default value (since 2025-11-25).
    pub default: Option<String>,
    options: Vec<EnumOption>,
    /// Set if titles are serialized as `enumNames`.
    names: bool,
}

impl SingleSelectSchema {
    /// Creates a field with options: strings, or [`EnumOption::titled`].
    pub fn new(options: impl IntoIterator<Item = impl Into<EnumOption>>) -> Self {
        Self {
            title: None,
            description: None,
            default: None,
            options: options.into_iter().map(Into::into).collect(),
            names: false,
        }
    }

    /// Returns the options.
    pub fn options(&self) -> &[EnumOption] {
        &self.options
    }

    /// Serializes titles as `enumNames`, as in 2025-06-18.
    pub(crate) fn set_enum_names(&mut self) {
        self.names = self.has_titles();
    }

    /// Serializes titles as `oneOf`, as in newer revisions.
    pub(crate) fn set_titles(&mut self) {
        self.names = false;
    }

    fn has_titles(&self) -> bool {
        self.options.iter().any(|option| option.title.is_some())
    }
}

setters!(SingleSelectSchema {
    optional {
        title: String,
        description: String,
        default: String,
    }
});

impl Serialize for SingleSelectSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "string")?;
        entry(&mut map, "title", self.title.as_ref())?;
        entry(&mut map, "description", self.description.as_ref())?;
        if self.has_titles() && !self.names {
            map.serialize_entry("oneOf", &titled(&self.options))?;
        } else {
            map.serialize_entry("enum", &values(&self.options))?;
        }
        if self.names {
            let names: Vec<_> = self.options.iter().map(EnumOption::display_title).collect();
            map.serialize_entry("enumNames", &names)?;
        }
        entry(&mut map, "default", self.default.as_ref())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for SingleSelectSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct RawSelect {
            title: Option<String>,
            description: Option<String>,
            default: Option<String>,
            #[serde(rename = "enumNames")]
            names: Option<Vec<String>>,
            #[serde(rename = "enum")]
            values: Option<Vec<String>>,
            #[serde(rename = "oneOf")]
            titled: Option<Vec<TitledOption>>,
        }
        let raw = RawSelect::deserialize(deserializer)?;
        let named = raw.names.is_some();
        let mut names = raw.names.unwrap_or_default().into_iter();
        let options = options(raw.values, raw.titled, || names.next()).map_err(D::Error::custom)?;
        Ok(Self {
            title: raw.title,
            description: raw.description,
            default: raw.default,
            options,
            names: named,
        })
    }
}

/// A multi-select field (since 2025-11-25).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MultiSelectSchema {
    /// The label of the field.
    pub title: Option<String>,
    /// A description for the user.
    pub description: Option<String>,
    /// The minimum number of choices.
    pub min_items: Option<u64>,
    /// The maximum number of choices.
    pub max_items: Option<u64>,
    /// The default value.
    pub default: Option<Vec<String>>,
    options: Vec<EnumOption>,
}

impl MultiSelectSchema {
    /// Creates a field with options: strings, or [`EnumOption::titled`].
    pub fn new(options: impl IntoIterator<Item = impl Into<EnumOption>>) -> Self {
        Self {
            title: None,
            description: None,
            min_items: None,
            max_items: None,
            default: None,
            options: options.into_iter().map(Into::into).collect(),
        }
    }

    /// Returns the options.
    pub fn options(&self) -> &[EnumOption] {
        &self.options
    }
}

setters!(MultiSelectSchema {
    optional {
        title: String,
        description: String,
        min_items: u64,
        max_items: u64,
        default: Vec<String>,
    }
});

impl Serialize for MultiSelectSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "array")?;
        entry(&mut map, "title", self.title.as_ref())?;
        entry(&mut map, "description", self.description.as_ref())?;
        entry(&mut map, "minItems", self.min_items.as_ref())?;
        entry(&mut map, "maxItems", self.max_items.as_ref())?;
        map.serialize_entry("items", &Items(&self.options))?;
        entry(&mut map, "default", self.default.as_ref())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for MultiSelectSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct RawSelect {
            title: Option<String>,
            description: Option<String>,
            #[serde(default, deserialize_with = "integer::optional")]
            min_items: Option<u64>,
            #[serde(default, deserialize_with = "integer::optional")]
            max_items: Option<u64>,
            default: Option<Vec<String>>,
            items: RawItems,
        }
        #[derive(Deserialize)]
        struct RawItems {
            #[serde(rename = "enum")]
            values: Option<Vec<String>>,
            // Some peers write `oneOf` here, as for a single choice.
            #[serde(rename = "anyOf", alias = "oneOf")]
            titled: Option<Vec<TitledOption>>,
        }
        let raw = RawSelect::deserialize(deserializer)?;
        let options =
            options(raw.items.values, raw.items.titled, || None).map_err(D::Error::custom)?;
        Ok(Self {
            title: raw.title,
            description: raw.description,
            min_items: raw.min_items,
            max_items: raw.max_items,
            default: raw.default,
            options,
        })
    }
}

/// The `items` of a multi-select field.
struct Items<'a>(&'a [EnumOption]);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.0.iter().any(|option| option.title.is_some()) {
            map.serialize_entry("anyOf", &titled(self.0))?;
        } else {
            map.serialize_entry("type", "string")?;
            map.serialize_entry("enum", &values(self.0))?;
        }
        map.end()
    }
}

/// An option with its title, as in `oneOf` and `anyOf`.
#[derive(Serialize, Deserialize)]
struct TitledOption<S = String> {
    r#const: S,
    title: S,
}

fn titled(options: &[EnumOption]) -> Vec<TitledOption<&str>> {
    let titled = options.iter().map(|option| TitledOption {
        r#const: &*option.value,
        title: option.display_title(),
    });
    titled.collect()
}

fn values(options: &[EnumOption]) -> Vec<&str> {
    options.iter().map(|option| &*option.value).collect()
}

fn options(
    values: Option<Vec<String>>,
    titled: Option<Vec<TitledOption>>,
    mut name: impl FnMut() -> Option<String>,
) -> Result<Vec<EnumOption>, &'static str> {
    if let Some(titled) = titled {
        let options = titled.into_iter();
        return Ok(options
            .map(|option| EnumOption::titled(option.r#const, option.title))
            .collect());
    }
    let values = values.ok_or("a choice needs `enum` or titled options")?;
    let options = values.into_iter();
    Ok(options
        .map(|value| EnumOption {
            value,
            title: name(),
        })
        .collect())
}

fn entry<M: SerializeMap, T: Serialize>(
    map: &mut M,
    name: &'static str,
    value: Option<T>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(name, &value),
        None => Ok(()),
    }
}
