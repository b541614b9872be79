//! Parameters of forms and URL queries: `name=value&…`, percent-encoded.

/// Returns the value of a parameter.
pub(crate) fn value(text: &str, name: &str) -> Option<String> {
    text.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (decode(key) == name).then(|| decode(value))
    })
}

/// Returns the query of a path.
pub(crate) fn query_of(path: &str) -> &str {
    path.split_once('?').map_or("", |(_, query)| query)
}

/// Percent-encodes a value.
pub(crate) fn encode(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let write = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    value.bytes().map(write).collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (escaped, first) {
            (Some(byte), _) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (None, b'+') => {
                bytes.push(b' ');
                rest = after;
            }
            (None, other) => {
                bytes.push(*other);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_as_it_was() {
        let unusual = "a b&c=d%+\u{e9}/";

        let query = format!("other=1&name={}", encode(unusual));

        assert_eq!(value(&query, "name").as_deref(), Some(unusual));
        assert_eq!(value(&query, "none"), None);
    }

    #[test]
    fn what_is_no_escape_stays() {
        assert_eq!(value("a=100%&b=%zz+x", "a").as_deref(), Some("100%"));
        assert_eq!(value("a=100%&b=%zz+x", "b").as_deref(), Some("%zz x"));
    }
}
