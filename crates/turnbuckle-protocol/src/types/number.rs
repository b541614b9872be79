//! Numbers as peers write them.
//!
//! JSON knows one kind of number: `3`, `3.0` and `3e0` are the same. Reading accepts all of them where the
//! specification means an integer; writing uses the shortest form.

use serde::{Serializer, ser::Serialize};

/// The largest magnitude below which every integer is exact in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Writes a whole number without a fraction.
pub(crate) fn plain<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// Writes an optional number as [`plain`] does.
pub(crate) fn optional<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => plain(value, serializer),
        None => None::<f64>.serialize(serializer),
    }
}

/// Reads integers that may be written with a fraction of zero, and takes negative ones as zero.
pub(crate) mod integer {
    use std::fmt;

    use serde::{
        Deserializer,
        de::{Error, Visitor},
    };

    /// Reads a required integer.
    pub(crate) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(Integer)
    }

    /// Reads an integer that may be absent or null.
    pub(crate) fn optional<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        deserializer.deserialize_option(Optional)
    }

    struct Integer;

    impl Visitor<'_> for Integer {
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
            // `as` saturates: a negative number becomes 0, a huge one the largest.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturation is wanted"
            )]
            Ok(value as u64)
        }
    }

    struct Optional;

    impl<'de> Visitor<'de> for Optional {
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
