//! How a content block is read: by the name of its kind, wherever that stands.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};

use super::ContentBlock;
use crate::json;

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Block)
    }
}

/// The name of a member.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Name {
    Type,
    Other(String),
}

/// What a block says about its kind.
///
/// By name and not by trying: a malformed text block is an error, not an unknown kind.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Kind {
    Text,
    Image,
    Audio,
    ResourceLink,
    Resource,
    ToolUse,
    ToolResult,
    Other(String),
}

struct Block;

impl<'de> Visitor<'de> for Block {
    type Value = ContentBlock;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ContentBlock, A::Error> {
        match map.next_key()? {
            // Nearly everybody says it first, and then the rest is read into its place at once.
            Some(Name::Type) => {
                let kind: Kind = map.next_value()?;
                kind.read(MapAccessDeserializer::new(map))
            }
            Some(Name::Other(name)) => late(name, map),
            None => Err(A::Error::custom(NO_TYPE)),
        }
    }
}

const NO_TYPE: &str = "a content block needs a `type`";

impl Kind {
    /// Reads the members beside `type`, which may be among them too.
    fn read<'de, D: Deserializer<'de>>(self, rest: D) -> Result<ContentBlock, D::Error> {
        Ok(match self {
            Self::Text => ContentBlock::Text(Deserialize::deserialize(rest)?),
            Self::Image => ContentBlock::Image(Deserialize::deserialize(rest)?),
            Self::Audio => ContentBlock::Audio(Deserialize::deserialize(rest)?),
            Self::ResourceLink => ContentBlock::ResourceLink(Deserialize::deserialize(rest)?),
            Self::Resource => ContentBlock::Resource(Deserialize::deserialize(rest)?),
            Self::ToolUse => ContentBlock::ToolUse(Deserialize::deserialize(rest)?),
            Self::ToolResult => ContentBlock::ToolResult(Deserialize::deserialize(rest)?),
            Self::Other(kind) => {
                let mut members = Map::from_iter([("type".to_owned(), Value::String(kind))]);
                members.extend(Map::<String, Value>::deserialize(rest)?);
                ContentBlock::Unknown(Value::Object(members))
            }
        })
    }
}

/// A block whose kind is known.
struct BlockOf(Kind);

impl<'de> DeserializeSeed<'de> for BlockOf {
    type Value = ContentBlock;

    fn deserialize<D: Deserializer<'de>>(self, rest: D) -> Result<ContentBlock, D::Error> {
        self.0.read(rest)
    }
}

/// Reads a block that says its kind later, or never.
fn late<'de, A: MapAccess<'de>>(first: String, mut map: A) -> Result<ContentBlock, A::Error> {
    let mut members = Map::new();
    members.insert(first, map.next_value()?);
    while let Some((name, value)) = map.next_entry()? {
        members.insert(name, value);
    }
    let kind = members.get("type");
    let kind = kind.ok_or_else(|| A::Error::custom(NO_TYPE))?;
    let kind = json::from_value(kind).map_err(|error| error.within("type"));
    let block = kind.and_then(|kind: Kind| {
        let whole = Value::Object(members);
        match kind {
            Kind::Other(_) => Ok(ContentBlock::Unknown(whole)),
            known => json::read_value_with(whole, BlockOf(known)),
        }
    });
    block.map_err(A::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: &str) -> Result<ContentBlock, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn the_kind_may_stand_anywhere() {
        let expected = ContentBlock::text("a\nb");

        for json in [
            r#"{"type":"text","text":"a\nb"}"#,
            r#"{"text":"a\nb","type":"text"}"#,
            r#"{"more":[1],"type":"text","text":"a\nb"}"#,
            r#"{"ty\u0070e":"te\u0078t","text":"a\nb"}"#,
        ] {
            assert_eq!(read(json), Ok(expected.clone()), "{json}");
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(
                serde_json::from_value::<ContentBlock>(value).unwrap(),
                expected
            );
        }
    }

    #[test]
    fn a_kind_that_nobody_knows_is_passed_on_unchanged() {
        for json in [
            r#"{"type":"hologram","b":1,"a":[null]}"#,
            r#"{"b":1,"type":"hologram","a":[null]}"#,
        ] {
            let block = read(json).unwrap();

            assert_eq!(serde_json::to_string(&block).unwrap(), json);
        }
    }

    #[test]
    fn a_block_without_a_kind_or_with_members_of_another_is_refused() {
        for json in [
            json!({}),
            json!({ "text": "a" }),
            json!({ "type": null, "text": "a" }),
            json!({ "text": "a", "type": 1 }),
            json!({ "type": ["text"], "text": "a" }),
            json!({ "type": "text" }),
            json!({ "data": "", "type": "text" }),
            json!({ "type": "image", "data": "" }),
            json!("text"),
            json!([]),
            json!(null),
        ] {
            assert!(read(&json.to_string()).is_err(), "{json}");
        }
    }
}
