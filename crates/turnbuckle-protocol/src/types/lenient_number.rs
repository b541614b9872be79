//! Lenient numbers.
//!
//! In JSON `3`, `3.0` and `3e0` are the same number. Deserialization accepts all of them for an integer;
//! serialization uses the shortest form.

use serde::{Serializer, ser::Serialize};

/// The magnitude below which every integer is exact in a double.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Serializes a whole number without a fraction.
pub(crate) fn without_fraction<S: Serializer>(
    value: &f64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < MAX_EXACT_INTEGER {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// Serializes an optional number like [`without_fraction`].
pub(crate) fn optional<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => without_fraction(value, serializer),
        None => None::<f64>.serialize(serializer),
    }
}

/// Deserializes integers that may have a zero fraction; negative ones become zero.
pub(crate) mod integer {
    use std::fmt;

    use serde::{
        Deserializer,
        de::{Error, Visitor},
    };

    /// Deserializes a required integer.
    pub(crate) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(IntegerVisitor)
    }

    /// Deserializes an integer that may be absent or null.
    pub(crate) fn optional<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        deserializer.deserialize_option(OptionalIntegerVisitor)
    }

    struct IntegerVisitor;

    impl Visitor<'_> for IntegerVisitor {
        type Value = u64;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("non-negative integer")
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
            Ok(value)
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
            Ok(u64::try_from(value).unwrap_or(0))
        }

        fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
            if value.fract() != 0.0 {
                return Err(E::invalid_value(serde::de::Unexpected::Float(value), &self));
            }
            // `as` saturates: a negative number becomes 0, an oversized one the maximum.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturation is wanted"
            )]
            Ok(value as u64)
        }
    }

    struct OptionalIntegerVisitor;

    impl<'de> Visitor<'de> for OptionalIntegerVisitor {
        type Value = Option<u64>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("non-negative integer or null")
        }

        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(
            self,
            deserializer: D,
        ) -> Result<Self::Value, D::Error> {
            required(deserializer).map(Some)
        }
    }
}
