//! Words in an input that stand for values sent by the server.

use std::collections::HashMap;

use serde_json::Value;

/// The last values sent by the server, by the name that an input uses for them.
///
/// `@state@` stands for the last `requestState`, `@cut.9@` for its first nine characters, `@bent.9@` for all of it with
/// the tenth changed. The others: `@cursor@` (the last `nextCursor`), `@question@` (the id of the server's last
/// request, as JSON), `@session@`, `@event@` and `@messages@` (of the last response on HTTP).
#[derive(Default)]
pub struct Marks {
    values: HashMap<&'static str, String>,
}

impl Marks {
    /// Records a value sent by the server.
    pub fn note(&mut self, name: &'static str, value: &str) {
        self.values.insert(name, value.to_owned());
    }

    /// Records the values in a message of the server.
    pub fn note_message(&mut self, message: &Value) {
        let result = &message["result"];
        if let Some(state) = result["requestState"].as_str() {
            self.note("state", state);
        }
        if let Some(cursor) = result["nextCursor"].as_str() {
            self.note("cursor", cursor);
        }
        if message["method"].is_string() && !message["id"].is_null() {
            self.note("question", &message["id"].to_string());
        }
    }

    /// Replaces every mark that has a value; all other text is unchanged.
    pub fn fill(&self, text: &[u8]) -> Vec<u8> {
        let mut filled = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.iter().position(|byte| *byte == b'@') {
            filled.extend_from_slice(&rest[..at]);
            let after = &rest[at + 1..];
            let end = after.iter().take(16).position(|byte| *byte == b'@');
            let meant = end.and_then(|end| Some((self.meaning(&after[..end])?, end)));
            rest = match meant {
                Some((values, end)) => {
                    filled.extend_from_slice(values.as_bytes());
                    &after[end + 1..]
                }
                None => {
                    filled.push(b'@');
                    after
                }
            };
        }
        filled.extend_from_slice(rest);
        filled
    }

    fn meaning(&self, mark: &[u8]) -> Option<String> {
        let mark = std::str::from_utf8(mark).ok()?;
        let Some((change, place)) = mark.split_once('.') else {
            return self.values.get(mark).cloned();
        };
        let mut state = self.values.get("state")?.clone();
        let place = place.parse::<usize>().ok()? % state.len().max(1);
        match change {
            "cut" => state.truncate(place),
            "bent" => {
                let other = if state[place..].starts_with('A') {
                    "B"
                } else {
                    "A"
                };
                state.replace_range(place..=place, other);
            }
            _ => return None,
        }
        Some(state)
    }
}
