//! How a matcher may look at a URI.

use memchr::memmem;

/// The only ways in which the matcher walks over text, counted in bytes.
///
/// The count is what the tests hold against the length of a URI: a clock would tell less, and not always the same.
#[derive(Debug, Default)]
pub(super) struct Steps(usize);

impl Steps {
    pub(super) fn taken(&self) -> usize {
        self.0
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.0 += bytes;
    }

    pub(super) fn strip_prefix<'u>(&mut self, text: &'u str, prefix: &str) -> Option<&'u str> {
        self.add(prefix.len());
        text.strip_prefix(prefix)
    }

    /// Returns where an ASCII text first occurs after `skip` bytes.
    pub(super) fn find(&mut self, text: &str, skip: usize, literal: &str) -> Option<usize> {
        let bytes = text.as_bytes().get(skip..)?;
        let found = memmem::find(bytes, literal.as_bytes());
        self.add(found.map_or(bytes.len(), |at| at + literal.len()));
        Some(skip + found?)
    }

    /// Returns where one of these ASCII characters first occurs after `skip` bytes, or the end.
    pub(super) fn find_any(&mut self, text: &str, skip: usize, characters: &[char]) -> usize {
        let bytes = text.as_bytes().get(skip..).unwrap_or_default();
        let is_one = |&byte: &u8| characters.contains(&byte.into());
        let found = (!characters.is_empty()).then(|| bytes.iter().position(is_one));
        let end = match found.flatten() {
            Some(at) => skip + at,
            None => text.len(),
        };
        self.add(end.saturating_sub(skip));
        end
    }

    pub(super) fn split_once<'u>(
        &mut self,
        text: &'u str,
        separator: char,
    ) -> Option<(&'u str, &'u str)> {
        let parts = text.split_once(separator);
        self.add(parts.map_or(text.len(), |(before, _)| before.len() + 1));
        parts
    }

    pub(super) fn rsplit_once<'u>(
        &mut self,
        text: &'u str,
        separator: char,
    ) -> Option<(&'u str, &'u str)> {
        let parts = text.rsplit_once(separator);
        self.add(parts.map_or(text.len(), |(_, after)| after.len() + 1));
        parts
    }

    /// Returns the first item, and what follows if a separator does.
    pub(super) fn next_item<'u>(
        &mut self,
        text: &'u str,
        separator: char,
    ) -> (&'u str, Option<&'u str>) {
        match self.split_once(text, separator) {
            Some((item, after)) => (item, Some(after)),
            None => (text, None),
        }
    }
}
