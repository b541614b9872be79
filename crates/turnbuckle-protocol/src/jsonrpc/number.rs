//! Integers of any size, in any spelling that JSON has for them.

use super::scan::Scanner;

/// The exact value of a JSON number without a fraction.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Integer {
    /// At most 64 bits.
    Small(i64),
    /// More.
    Huge(Huge),
}

/// An integer beyond 64 bits: digits without a zero at either end, times a power of ten.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Huge {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Integer {
    /// Reads a text that is one JSON number and nothing else.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        let starts = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        let mut scanner = Scanner::new(text.as_bytes()).ok().filter(|_| starts)?;
        let number = scanner.skip_value(0).ok()?;
        (number.end == text.len()).then(|| Self::from_scanned(text))?
    }

    /// Reads a number that the scan has seen; `None` if it has a fraction.
    ///
    /// An exponent beyond 64 bits counts as one, so that comparing stays exact.
    pub(super) fn from_scanned(json: &str) -> Option<Self> {
        let unsigned = json.trim_start_matches('-');
        let negative = unsigned.len() < json.len();
        let (mantissa, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

        let all = [whole, fraction].concat();
        let kept = all.trim_end_matches('0');
        let zeros = all.len() - kept.len();
        let digits = kept.trim_start_matches('0');
        if digits.is_empty() {
            return Some(Self::Small(0));
        }

        let power: i64 = power.parse().ok()?;
        let shift = i64::try_from(zeros).ok()? - i64::try_from(fraction.len()).ok()?;
        let exponent = power.checked_add(shift).filter(|exponent| *exponent >= 0)?;
        Some(match small(negative, digits, exponent) {
            Some(value) => Self::Small(value),
            None => Self::Huge(Huge {
                negative,
                digits: digits.to_owned(),
                exponent,
            }),
        })
    }
}

fn small(negative: bool, digits: &str, exponent: i64) -> Option<i64> {
    let power = 10_i128.checked_pow(u32::try_from(exponent).ok()?)?;
    let magnitude = digits.parse::<i128>().ok()?.checked_mul(power)?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}
