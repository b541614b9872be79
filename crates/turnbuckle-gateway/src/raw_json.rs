//! JSON objects that are edited as text, so that unknown members keep their bytes.

use turnbuckle_protocol::{RpcError, jsonrpc::RawObject};

/// Writes a JSON object member by member.
pub(crate) struct ObjectWriter {
    out: String,
}

impl ObjectWriter {
    pub(crate) fn new() -> Self {
        Self {
            out: String::from("{"),
        }
    }

    /// Creates a writer for about this many bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut out = String::with_capacity(bytes);
        out.push('{');
        Self { out }
    }

    /// Writes a member with a value that is JSON text.
    pub(crate) fn member(&mut self, name: &str, value: &str) {
        if self.out.len() > 1 {
            self.out.push(',');
        }
        write_string(&mut self.out, name);
        self.out.push(':');
        self.out.push_str(value);
    }

    /// Writes a member with a string.
    pub(crate) fn string(&mut self, name: &str, value: &str) {
        self.member(name, &quote(value));
    }

    pub(crate) fn finish(mut self) -> String {
        self.out.push('}');
        self.out
    }

    /// Returns the members without braces.
    pub(crate) fn into_members(mut self) -> String {
        self.out.remove(0);
        self.out
    }
}

/// Returns a JSON string.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

fn write_string(out: &mut String, text: &str) {
    let is_escaped = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    if text.bytes().any(is_escaped) {
        out.push_str(&serde_json::Value::from(text).to_string());
        return;
    }
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// Copies an object, without some of its members and with others replaced or added at the end.
pub(crate) fn edit(
    object: &str,
    remove: &[&str],
    set: &[(&str, String)],
) -> Result<String, RpcError> {
    let length = object.len();
    let object = RawObject::parse(object)?;
    let added: usize = set
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum();
    let mut out = ObjectWriter::with_capacity(length + added);
    let replaced = |name: &str| set.iter().find(|(set, _)| *set == name);
    for (name, value) in object
        .members()
        .filter(|(name, _)| !remove.contains(&&**name))
    {
        match replaced(&name) {
            Some((_, value)) => out.member(&name, value),
            None => out.member(&name, value),
        }
    }
    for (name, value) in set.iter().filter(|(name, _)| object.get(name).is_none()) {
        out.member(name, value);
    }
    Ok(out.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_members_keep_their_bytes() {
        let object = r#"{"a": 1.50 ,"b":{"c" : [1, 2]},"d":"\u0041"}"#;
        let edited = edit(object, &["a"], &[("d", "7".into()), ("e", "8".into())]);
        assert_eq!(edited.unwrap(), r#"{"b":{"c" : [1, 2]},"d":7,"e":8}"#);
    }

    #[test]
    fn a_quoted_text_is_what_serde_json_writes() {
        for text in ["", "name", "é", "a\"b", "a\\b", "a\nb", "\u{7f}", "\u{0}"] {
            assert_eq!(quote(text), serde_json::to_string(text).unwrap());
        }
    }

    #[test]
    fn an_array_is_not_edited() {
        assert!(edit("[1]", &[], &[]).is_err());
    }
}
