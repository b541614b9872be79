//! The binary form of values, before they are sealed.
//!
//! Every value begins with a version byte. A decoder accepts bytes behind those that it knows, so a later version of this crate can
//! add fields at the end; it takes another version byte if older decoders would misunderstand the value.

mod change;
mod control;
mod message;
mod request;
mod session;
mod task;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use change::{BusEntry, decode_change, encode_change, is_list_change};
pub(crate) use control::{decode_control, encode_control};
pub(crate) use message::{decode_inbox_entry, encode_inbox_entry};
pub(crate) use request::{decode_requests, encode_requests};
use serde::{Serialize, de::DeserializeOwned};
pub(crate) use session::{decode_session, encode_session};
pub(crate) use task::{decode_task, encode_task};

/// The version byte of all values.
const VERSION: u8 = 1;

/// A value of another version, or one that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a value in Redis has an unknown form")]
pub(crate) struct DecodeError;

/// Writes a value.
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    pub(crate) fn new() -> Self {
        Self(vec![VERSION])
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    /// Writes seven bits in each byte, the lowest first.
    pub(crate) fn number(&mut self, mut number: u64) -> &mut Self {
        while number > 0x7f {
            // The mask leaves seven bits.
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    pub(crate) fn flag(&mut self, flag: bool) -> &mut Self {
        self.number(flag.into())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn optional(&mut self, text: Option<&str>) -> &mut Self {
        self.flag(text.is_some());
        if let Some(text) = text {
            self.text(text);
        }
        self
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> &mut Self {
        // The values here have string keys only, so they have a JSON form.
        let json = serde_json::to_vec(value).unwrap_or_default();
        self.bytes(&json)
    }

    pub(crate) fn duration(&mut self, duration: Duration) -> &mut Self {
        self.number(duration.as_secs())
            .number(duration.subsec_nanos().into())
    }

    pub(crate) fn time(&mut self, time: SystemTime) -> &mut Self {
        self.duration(time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

/// Reads a value.
pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        match bytes.split_first() {
            Some((&VERSION, rest)) => Ok(Self(rest)),
            _ => Err(DecodeError),
        }
    }

    pub(crate) fn number(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(DecodeError)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError)
    }

    pub(crate) fn size(&mut self) -> Result<usize, DecodeError> {
        usize::try_from(self.number()?).map_err(|_| DecodeError)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, DecodeError> {
        Ok(self.number()? != 0)
    }

    pub(crate) fn small_number(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.number()?).map_err(|_| DecodeError)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.size()?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(DecodeError)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, DecodeError> {
        str::from_utf8(self.bytes()?).map_err(|_| DecodeError)
    }

    pub(crate) fn optional(&mut self) -> Result<Option<&'a str>, DecodeError> {
        Ok(if self.flag()? {
            Some(self.text()?)
        } else {
            None
        })
    }

    pub(crate) fn parsed<T: std::str::FromStr>(&mut self) -> Result<T, DecodeError> {
        self.text()?.parse().map_err(|_| DecodeError)
    }

    pub(crate) fn json<T: DeserializeOwned>(&mut self) -> Result<T, DecodeError> {
        serde_json::from_slice(self.bytes()?).map_err(|_| DecodeError)
    }

    pub(crate) fn duration(&mut self) -> Result<Duration, DecodeError> {
        let (seconds, nanos) = (self.number()?, self.number()?);
        let nanos = u32::try_from(nanos).map_err(|_| DecodeError)?;
        if nanos >= 1_000_000_000 {
            return Err(DecodeError);
        }
        Ok(Duration::new(seconds, nanos))
    }

    pub(crate) fn time(&mut self) -> Result<SystemTime, DecodeError> {
        UNIX_EPOCH.checked_add(self.duration()?).ok_or(DecodeError)
    }

    /// Reads a list.
    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.size()?;
        // An item takes a byte at least, so a wrong count cannot allocate more than the value itself.
        if count > self.0.len() {
            return Err(DecodeError);
        }
        (0..count).map(|_| item(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut encoder = Encoder::new();
        for number in [0, 127, 128, u64::MAX] {
            encoder.number(number);
        }
        encoder.text("text").optional(None).optional(Some(""));
        encoder.duration(Duration::MAX).flag(true);
        let bytes = encoder.finish();

        let decoder = &mut Decoder::new(&bytes).unwrap();
        for number in [0, 127, 128, u64::MAX] {
            assert_eq!(decoder.number(), Ok(number));
        }
        assert_eq!(decoder.text(), Ok("text"));
        assert_eq!(decoder.optional(), Ok(None));
        assert_eq!(decoder.optional(), Ok(Some("")));
        assert_eq!(decoder.duration(), Ok(Duration::MAX));
        assert_eq!(decoder.flag(), Ok(true));
        assert_eq!(decoder.number(), Err(DecodeError));
    }

    #[test]
    fn an_unknown_version_and_a_length_beyond_the_end_are_errors() {
        assert!(Decoder::new(&[VERSION + 1, 0]).is_err());
        assert!(Decoder::new(&[]).is_err());
        let mut huge = Decoder::new(&[VERSION, 0xff, 0xff, 0xff, 0x7f]).unwrap();
        assert_eq!(huge.bytes(), Err(DecodeError));
        let mut endless = Decoder::new(&[VERSION, 0xff, 0xff, 0xff, 0x7f]).unwrap();
        assert!(endless.list(Decoder::number).is_err());
    }
}
