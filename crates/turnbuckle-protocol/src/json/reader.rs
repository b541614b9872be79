//! A deserializer adapter that rejects arrays in place of objects.
//!
//! It only counts members during deserialization; the path of an error is computed afterwards.

use std::{
    cell::Cell,
    fmt::{self, Display, Write},
};

use serde::{
    Deserializer,
    de::{
        DeserializeSeed, EnumAccess, Error, Expected, MapAccess, SeqAccess, Unexpected,
        VariantAccess, Visitor,
    },
};

use super::error::{JsonError, in_json_words};

/// Stores the error while it passes through the wrapped deserializer, because its error type cannot carry it.
#[derive(Default)]
pub(super) struct FailureSlot {
    error: Cell<Option<JsonError>>,
    /// The expectation of the visitor that was called last.
    expected: Cell<Option<String>>,
}

impl FailureSlot {
    /// Stores an error and returns a placeholder of the error type of the wrapped deserializer.
    fn put<E: Error>(&self, error: JsonError) -> E {
        self.error.set(Some(error));
        E::custom("")
    }

    /// Returns the stored error, or converts the one that the wrapped deserializer created.
    fn take(&self, error: impl Display) -> JsonError {
        let expected = self.expected.take();
        match self.error.take() {
            Some(error) => error,
            None => JsonError::foreign(&error, expected.as_deref()),
        }
    }
}

/// Deserializes from `inner` and rejects arrays in place of objects.
pub(super) struct StrictReader<'f, D> {
    inner: D,
    failure: &'f FailureSlot,
}

impl<'f, D> StrictReader<'f, D> {
    pub(super) fn new(inner: D, failure: &'f FailureSlot) -> Self {
        Self { inner, failure }
    }
}

/// Forwards methods of `Deserializer` with the expected shape.
macro_rules! forward {
    ($($method:ident($($name:ident: $type:ty),*) $shape:ident;)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, JsonError> {
            let Self { inner, failure } = self;
            let visitor = CheckedVisitor { visitor, failure, shape: ExpectedShape::$shape };
            inner.$method($($name,)* visitor).map_err(|error| failure.take(error))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for StrictReader<'_, D> {
    type Error = JsonError;

    forward! {
        deserialize_any() Any;
        deserialize_bool() Other;
        deserialize_i8() Other;
        deserialize_i16() Other;
        deserialize_i32() Other;
        deserialize_i64() Other;
        deserialize_i128() Other;
        deserialize_u8() Other;
        deserialize_u16() Other;
        deserialize_u32() Other;
        deserialize_u64() Other;
        deserialize_u128() Other;
        deserialize_f32() Other;
        deserialize_f64() Other;
        deserialize_char() Other;
        deserialize_str() Other;
        deserialize_string() Other;
        deserialize_bytes() Other;
        deserialize_byte_buf() Other;
        deserialize_option() Other;
        deserialize_unit() Other;
        deserialize_unit_struct(name: &'static str) Other;
        deserialize_newtype_struct(name: &'static str) Other;
        deserialize_seq() Other;
        deserialize_tuple(length: usize) Other;
        deserialize_tuple_struct(name: &'static str, length: usize) Other;
        deserialize_map() Object;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) Object;
        deserialize_identifier() Other;
        deserialize_ignored_any() Other;
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        let Self { inner, failure } = self;
        let visitor = CheckedVisitor {
            visitor,
            failure,
            shape: ExpectedShape::Other,
        };
        let read = inner.deserialize_enum(name, variants, visitor);
        read.map_err(|error| match failure.error.take() {
            Some(error) => error,
            None => JsonError::not_one_of(&error, variants),
        })
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// The shape that a `Deserialize` implementation requested.
#[derive(Clone, Copy, PartialEq)]
enum ExpectedShape {
    Object,
    Any,
    Other,
}

/// Forwards to a visitor, unless an array is read in place of an object.
struct CheckedVisitor<'f, V> {
    visitor: V,
    failure: &'f FailureSlot,
    shape: ExpectedShape,
}

macro_rules! visit {
    ($($method:ident($($value:ident: $type:ty)?);)*) => {$(
        #[inline]
        fn $method<E: Error>(self $(, $value: $type)?) -> Result<V::Value, E> {
            let Self { visitor, failure, .. } = self;
            visitor.$method($($value)?).map_err(|error| failure.put(error))
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for CheckedVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = in_json_words(&VisitorExpectation(&self.visitor).to_string());
        f.write_str(&expected)?;
        self.failure.expected.set(Some(expected));
        Ok(())
    }

    visit! {
        visit_bool(value: bool);
        visit_i8(value: i8);
        visit_i16(value: i16);
        visit_i32(value: i32);
        visit_i64(value: i64);
        visit_i128(value: i128);
        visit_u8(value: u8);
        visit_u16(value: u16);
        visit_u32(value: u32);
        visit_u64(value: u64);
        visit_u128(value: u128);
        visit_f32(value: f32);
        visit_f64(value: f64);
        visit_char(value: char);
        visit_str(value: &str);
        visit_borrowed_str(value: &'de str);
        visit_string(value: String);
        visit_bytes(value: &[u8]);
        visit_borrowed_bytes(value: &'de [u8]);
        visit_byte_buf(value: Vec<u8>);
        visit_none();
        visit_unit();
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let Self {
            visitor, failure, ..
        } = self;
        let read = visitor.visit_some(StrictReader { inner, failure });
        read.map_err(|error| failure.put(error))
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let Self {
            visitor, failure, ..
        } = self;
        let read = visitor.visit_newtype_struct(StrictReader { inner, failure });
        read.map_err(|error| failure.put(error))
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let Self {
            visitor,
            failure,
            shape,
        } = self;
        if shape == ExpectedShape::Object || shape == ExpectedShape::Any && is_tagged_enum(&visitor)
        {
            let error = JsonError::invalid_type(Unexpected::Seq, &"object");
            return Err(failure.put(error));
        }
        let read = visitor.visit_seq(CountingAccess::new(inner, failure));
        read.map_err(|error| failure.put(error))
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let Self {
            visitor, failure, ..
        } = self;
        let read = visitor.visit_map(CountingAccess::new(inner, failure));
        read.map_err(|error| failure.put(error))
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let Self {
            visitor, failure, ..
        } = self;
        let read = visitor.visit_enum(StrictReader { inner, failure });
        read.map_err(|error| failure.put(error))
    }
}

/// Displays the expectation of a visitor.
struct VisitorExpectation<'v, V>(&'v V);

impl<'de, V: Visitor<'de>> Display for VisitorExpectation<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Expected::fmt(self.0, f)
    }
}

/// Returns whether an internally tagged enum is deserialized. It accepts any value and searches for its tag
/// afterwards, in arrays too; only its expectation identifies it.
fn is_tagged_enum<'de>(visitor: &impl Visitor<'de>) -> bool {
    let mut rest = ExpectedPrefix("internally tagged enum ");
    // The writer fails as soon as the result is known.
    let _ = write!(rest, "{}", VisitorExpectation(visitor));
    rest.0.is_empty()
}

/// The rest of an expected prefix.
struct ExpectedPrefix(&'static str);

impl Write for ExpectedPrefix {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Some(rest) = self.0.strip_prefix(text) {
            self.0 = rest;
            return Ok(());
        }
        if text.starts_with(self.0) {
            self.0 = "";
        }
        Err(fmt::Error)
    }
}

/// Counts the members of an object or the items of an array.
struct CountingAccess<'f, A> {
    inner: A,
    failure: &'f FailureSlot,
    index: usize,
}

impl<'f, A> CountingAccess<'f, A> {
    fn new(inner: A, failure: &'f FailureSlot) -> Self {
        Self {
            inner,
            failure,
            index: 0,
        }
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for CountingAccess<'_, A> {
    type Error = JsonError;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, JsonError> {
        let failure = self.failure;
        let item = self
            .inner
            .next_element_seed(StrictReader::new(seed, failure));
        let item = item.map_err(|error| failure.take(error).inside(self.index))?;
        self.index += 1;
        Ok(item)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for CountingAccess<'_, A> {
    type Error = JsonError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, JsonError> {
        let failure = self.failure;
        let key = self.inner.next_key_seed(StrictReader::new(seed, failure));
        key.map_err(|error| failure.take(error))
    }

    #[inline]
    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, JsonError> {
        let failure = self.failure;
        let value = self.inner.next_value_seed(StrictReader::new(seed, failure));
        let value = value.map_err(|error| failure.take(error).inside(self.index))?;
        self.index += 1;
        Ok(value)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for StrictReader<'_, S> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let Self {
            inner: seed,
            failure,
        } = self;
        let read = seed.deserialize(StrictReader { inner, failure });
        read.map_err(|error| failure.put(error))
    }
}

impl<'de, 'f, A: EnumAccess<'de>> EnumAccess<'de> for StrictReader<'f, A> {
    type Error = JsonError;
    type Variant = StrictReader<'f, A::Variant>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Self::Variant), JsonError> {
        let Self { inner, failure } = self;
        let read = inner.variant_seed(StrictReader::new(seed, failure));
        let (variant, inner) = read.map_err(|error| failure.take(error))?;
        Ok((variant, StrictReader { inner, failure }))
    }
}

/// The content of a variant is the only member of an object.
impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for StrictReader<'_, A> {
    type Error = JsonError;

    fn unit_variant(self) -> Result<(), JsonError> {
        let read = self.inner.unit_variant();
        read.map_err(|error| self.failure.take(error).inside(0))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, JsonError> {
        let Self { inner, failure } = self;
        let read = inner.newtype_variant_seed(StrictReader::new(seed, failure));
        read.map_err(|error| failure.take(error).inside(0))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        let Self { inner, failure } = self;
        let visitor = CheckedVisitor {
            visitor,
            failure,
            shape: ExpectedShape::Other,
        };
        let read = inner.tuple_variant(length, visitor);
        read.map_err(|error| failure.take(error).inside(0))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        let Self { inner, failure } = self;
        let visitor = CheckedVisitor {
            visitor,
            failure,
            shape: ExpectedShape::Object,
        };
        let read = inner.struct_variant(fields, visitor);
        read.map_err(|error| failure.take(error).inside(0))
    }
}
