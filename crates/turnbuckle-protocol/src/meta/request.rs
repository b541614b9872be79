//! The keys of a request's `_meta`, read in place.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::keys;
use crate::RequestId;

/// What the specification defines in the `_meta` of a request, borrowed from its JSON text.
///
/// Nothing is built, and unknown keys are skipped. Whoever needs the identity or the capabilities of the client
/// parses the raw text it finds here. A known key that is null counts as absent; one that comes twice is an error.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RequestMeta<'a> {
    /// The revision of the request; present on every modern one.
    pub protocol_version: Option<Cow<'a, str>>,
    /// Who asks.
    pub client_info: Option<&'a RawValue>,
    /// What the asking client can do; present on every modern request.
    pub client_capabilities: Option<&'a RawValue>,
    /// From which level on log messages are wanted, not yet checked.
    pub log_level: Option<Cow<'a, str>>,
    /// What progress notifications of this request are to bear.
    pub progress_token: Option<RequestId>,
    /// The parent of the W3C trace context.
    pub traceparent: Option<Cow<'a, str>>,
    /// The state of the W3C trace context.
    pub tracestate: Option<Cow<'a, str>>,
    /// The W3C baggage.
    pub baggage: Option<Cow<'a, str>>,
}

impl<'a> RequestMeta<'a> {
    /// Reads the raw text of a `_meta` object.
    pub fn read(meta: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(meta)
    }
}

// By hand, because a derived reader would copy the strings and take an array for an object.
impl<'de: 'a, 'a> Deserialize<'de> for RequestMeta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = RequestMeta<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a `_meta` object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut meta = RequestMeta::default();
        while let Some(Text(key)) = map.next_key()? {
            match &*key {
                keys::PROTOCOL_VERSION => text(&mut meta.protocol_version, &mut map, &key)?,
                keys::CLIENT_INFO => once(&mut meta.client_info, map.next_value()?, &key)?,
                keys::CLIENT_CAPABILITIES => {
                    once(&mut meta.client_capabilities, map.next_value()?, &key)?;
                }
                keys::LOG_LEVEL => text(&mut meta.log_level, &mut map, &key)?,
                keys::PROGRESS_TOKEN => once(&mut meta.progress_token, map.next_value()?, &key)?,
                keys::TRACEPARENT => text(&mut meta.traceparent, &mut map, &key)?,
                keys::TRACESTATE => text(&mut meta.tracestate, &mut map, &key)?,
                keys::BAGGAGE => text(&mut meta.baggage, &mut map, &key)?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(meta)
    }
}

/// A string that is borrowed unless it has escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn text<'de, A: MapAccess<'de>>(
    place: &mut Option<Cow<'de, str>>,
    map: &mut A,
    key: &str,
) -> Result<(), A::Error> {
    let value = map.next_value::<Option<Text<'de>>>()?;
    once(place, value.map(|Text(text)| text), key)
}

fn once<T, E: Error>(place: &mut Option<T>, value: Option<T>, key: &str) -> Result<(), E> {
    if place.is_some() {
        return Err(E::custom(format_args!("duplicate `{key}`")));
    }
    *place = value;
    Ok(())
}
