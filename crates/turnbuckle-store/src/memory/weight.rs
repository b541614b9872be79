//! What a value costs in memory, roughly.

use std::io;

use serde::Serialize;

/// Estimates the bytes that `value` occupies from its JSON text.
///
/// A short text can be a large tree, so every node counts for more than its characters. Nothing is
/// built: the text is counted as it is written.
pub(super) fn weight(value: &impl Serialize) -> usize {
    let mut scale = Scale(0);
    match serde_json::to_writer(&mut scale, value) {
        Ok(()) => scale.0,
        // What cannot be weighed is too heavy.
        Err(_) => usize::MAX / 4,
    }
}

/// What a node of a JSON tree costs beside its text.
const NODE: usize = 64;

struct Scale(usize);

impl io::Write for Scale {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let nodes = text
            .iter()
            .filter(|byte| matches!(byte, b',' | b'{' | b'['));
        self.0 += text.len() + NODE * nodes.count();
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
