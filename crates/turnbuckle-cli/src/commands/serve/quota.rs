//! How much each caller may keep.

/// A number of bytes, or no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quota(pub(super) Option<u64>);

/// Reads a quota: `500MB`, `4GB`, `1GiB`, a plain number of bytes, or `none`.
pub(super) fn read(text: &str) -> Result<Quota, String> {
    if text == "none" {
        return Ok(Quota(None));
    }
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("write it as 500MB, 4GB, 1GiB or none".to_owned()),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "a number is missing".to_owned())?;
    match number.checked_mul(unit) {
        Some(0) | None => Err("write a number of bytes from 1 to 2^64 - 1".to_owned()),
        bytes => Ok(Quota(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("500MB", Some(500_000_000)),
            ("4 GB", Some(4_000_000_000)),
            ("1GiB", Some(1 << 30)),
            ("1000", Some(1_000)),
            ("none", None),
        ] {
            assert_eq!(read(text), Ok(Quota(bytes)), "{text}");
        }
        for wrong in ["", "GB", "0", "-1", "4 pints", "99999999999GB"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
