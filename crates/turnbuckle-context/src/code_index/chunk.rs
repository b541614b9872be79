//! Splits a text into chunks, the unit of search, display and embedding.
//!
//! A chunk starts with a definition and the comments above it. Small neighbors are joined; a long part is split at a nearby
//! blank line if there is one. Chunks do not overlap, and cover all lines except blank ones between them.

use super::definitions::{Definition, LanguageRules, definitions};
use crate::text::byte_prefix;

/// Maximum size of a chunk: it should fit on a screen and into the input of an embedding model.
const MAX_LINES: usize = 60;
const MAX_BYTES: usize = 6_000;
/// A shorter part is joined with the next one.
const SMALL_LINES: usize = 12;
/// A part of at most this length is joined with the previous one, so that constants stay together.
const TINY_LINES: usize = 3;
/// Maximum length of joined parts.
const MAX_JOINED_LINES: usize = 40;

/// A chunk of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextChunk<'t> {
    /// Counted from 1.
    pub(super) first_line: usize,
    pub(super) last_line: usize,
    /// The first name it defines, or the definition that it continues.
    pub(super) symbol: &'t str,
    pub(super) kind: &'static str,
    /// All names it defines.
    pub(super) defs: Vec<&'t str>,
    pub(super) body: &'t str,
}

/// Splits a text into chunks.
pub(super) fn chunks<'t>(language: &str, text: &'t str) -> Vec<TextChunk<'t>> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let rules = LanguageRules::for_language(language);
    let found = rules.map_or_else(Vec::new, |rules| definitions(rules, &lines));
    let rows = rows(text, &lines);
    let parts = join_small_parts(
        &rows,
        split_long_parts(&rows, sections(&rows, &lines, rules, &found)),
    );
    let chunk = |part: &ChunkPart| chunk(text, &rows, &found, part);
    parts.iter().filter_map(chunk).collect()
}

/// A line, or a part of a line that is too long for a chunk.
struct ChunkRow {
    begin: usize,
    end: usize,
    line: usize,
    is_blank: bool,
}

/// Consecutive rows that belong to one definition.
#[derive(Clone, Debug)]
struct ChunkPart {
    begin: usize,
    end: usize,
    /// The definition that the rows start or continue.
    of: Option<usize>,
}

impl ChunkPart {
    fn lines(&self) -> usize {
        self.end - self.begin
    }

    fn bytes(&self, rows: &[ChunkRow]) -> usize {
        rows[self.end - 1].end - rows[self.begin].begin
    }
}

fn rows(text: &str, lines: &[&str]) -> Vec<ChunkRow> {
    let mut rows = Vec::with_capacity(lines.len());
    let mut begin = 0;
    for (line, content) in lines.iter().enumerate() {
        let line_end = begin + content.len();
        while begin < line_end {
            let end = if line_end - begin <= MAX_BYTES {
                line_end
            } else {
                begin + byte_prefix(&text[begin..], MAX_BYTES).len()
            };
            let is_blank = text[begin..end].trim().is_empty();
            rows.push(ChunkRow {
                begin,
                end,
                line,
                is_blank,
            });
            begin = end;
        }
    }
    rows
}

/// Returns one part per definition, with the comments above it, and one for the rows before the first definition.
fn sections(
    rows: &[ChunkRow],
    lines: &[&str],
    rules: Option<&LanguageRules>,
    found: &[Definition<'_>],
) -> Vec<ChunkPart> {
    let mut parts = Vec::with_capacity(found.len() + 1);
    let (mut begin, mut of) = (0, None);
    for (number, definition) in found.iter().enumerate() {
        let after = number.checked_sub(1).map_or(0, |last| found[last].line + 1);
        let mut line = definition.line;
        while line > after && rules.is_some_and(|rules| rules.is_attached_above(lines[line - 1])) {
            line -= 1;
        }
        let row = rows.partition_point(|row| row.line < line);
        if row > begin {
            parts.push(ChunkPart {
                begin,
                end: row,
                of,
            });
        }
        (begin, of) = (row, Some(number));
    }
    if rows.len() > begin {
        parts.push(ChunkPart {
            begin,
            end: rows.len(),
            of,
        });
    }
    parts
}

/// Splits long parts into parts of similar length.
fn split_long_parts(rows: &[ChunkRow], parts: Vec<ChunkPart>) -> Vec<ChunkPart> {
    let mut divided = Vec::with_capacity(parts.len());
    for mut part in parts {
        loop {
            let pieces = part
                .lines()
                .div_ceil(MAX_LINES)
                .max(part.bytes(rows).div_ceil(MAX_BYTES));
            if pieces <= 1 {
                break;
            }
            let cut = cut_position(rows, &part, part.lines().div_ceil(pieces));
            divided.push(ChunkPart {
                end: cut,
                ..part.clone()
            });
            part.begin = cut;
        }
        divided.push(part);
    }
    divided
}

/// Returns the position to split a long part: after a blank row near the target length, or else at the target length.
fn cut_position(rows: &[ChunkRow], part: &ChunkPart, target: usize) -> usize {
    let begin = part.begin;
    let fits = |end: &usize| rows[end - 1].end - rows[begin].begin <= MAX_BYTES;
    let most = (begin + 1..=(begin + MAX_LINES).min(part.end - 1))
        .take_while(fits)
        .last();
    let most = most.unwrap_or(begin + 1);
    let (least, far) = (begin + target * 3 / 4, begin + target * 5 / 4);
    let blank = (least.max(begin + 1)..=far.min(most))
        .rev()
        .find(|end| rows[end - 1].is_blank);
    blank.unwrap_or_else(|| (begin + target).clamp(begin + 1, most))
}

/// Joins small neighbors.
fn join_small_parts(rows: &[ChunkRow], parts: Vec<ChunkPart>) -> Vec<ChunkPart> {
    let mut joined: Vec<ChunkPart> = Vec::with_capacity(parts.len());
    for part in parts {
        match joined.last_mut() {
            Some(last) if should_join(rows, last, &part) => {
                last.of = last.of.or(part.of);
                last.end = part.end;
            }
            _ => joined.push(part),
        }
    }
    joined
}

fn should_join(rows: &[ChunkRow], one: &ChunkPart, next: &ChunkPart) -> bool {
    let both = ChunkPart {
        end: next.end,
        ..one.clone()
    };
    let are_small = one.lines() < SMALL_LINES || next.lines() <= TINY_LINES;
    are_small && both.lines() <= MAX_JOINED_LINES && both.bytes(rows) <= MAX_BYTES
}

fn chunk<'t>(
    text: &'t str,
    rows: &[ChunkRow],
    found: &[Definition<'t>],
    part: &ChunkPart,
) -> Option<TextChunk<'t>> {
    let filled = |row: &usize| !rows[*row].is_blank;
    let begin = (part.begin..part.end).find(filled)?;
    let end = (part.begin..part.end).rev().find(filled)?;
    let (first, last) = (rows[begin].line, rows[end].line);
    // A line that is split defines its name in the first part.
    let is_begun = begin == 0 || rows[begin - 1].line < first;
    let from = found.partition_point(|found| found.line < first + usize::from(!is_begun));
    let to = found.partition_point(|found| found.line <= last);
    let here = &found[from..to.max(from)];
    let named = here.first().or_else(|| found.get(part.of?));
    Some(TextChunk {
        first_line: first + 1,
        last_line: last + 1,
        symbol: named.map_or("", |named| named.name),
        kind: named.map_or("", |named| named.kind),
        defs: here.iter().map(|found| found.name).collect(),
        body: text[rows[begin].begin..rows[end].end].trim_end_matches(['\n', '\r']),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape<'t>(chunks: &[TextChunk<'t>]) -> Vec<(usize, usize, &'t str)> {
        let shape = |chunk: &TextChunk<'t>| (chunk.first_line, chunk.last_line, chunk.symbol);
        chunks.iter().map(shape).collect()
    }

    fn body(lines: usize) -> String {
        "    step();\n".repeat(lines)
    }

    #[test]
    fn a_definition_begins_a_chunk_with_what_stands_above_it() {
        let text = format!(
            "use a;\n\n/// Says one.\n#[inline]\nfn one() {{\n{}}}\n\n/// Says two.\nfn two() {{\n{}}}\n",
            body(20),
            body(20)
        );
        let chunks = chunks("rust", &text);
        assert_eq!(shape(&chunks), [(1, 26, "one"), (28, 50, "two")]);
        assert!(chunks[1].body.starts_with("/// Says two."));
        assert_eq!(chunks[1].defs, ["two"]);
    }

    #[test]
    fn small_neighbours_are_one_chunk() {
        let text = "const A: u8 = 1;\nconst B: u8 = 2;\n\nfn one() {}\n\nfn two() {}\n";
        let chunks = chunks("rust", text);
        assert_eq!(shape(&chunks), [(1, 6, "A")]);
        assert_eq!(chunks[0].defs, ["A", "B", "one", "two"]);
    }

    #[test]
    fn a_long_definition_is_cut_evenly_and_keeps_its_name() {
        let text = format!("fn long() {{\n{}\n{}}}\n", body(35), body(35));
        let chunks = chunks("rust", &text);
        assert_eq!(shape(&chunks), [(1, 36, "long"), (38, 73, "long")]);
        assert!(chunks[1].defs.is_empty());
    }

    #[test]
    fn a_text_without_definitions_is_cut_at_blank_lines() {
        let paragraph = format!("{}\n", "words and words\n".repeat(9));
        let text = paragraph.repeat(20);
        let chunks = chunks("text", &text);
        assert!(chunks.len() > 3);
        for chunk in &chunks {
            assert!(chunk.last_line - chunk.first_line < MAX_LINES);
            assert_eq!(chunk.first_line % 10, 1, "begins a paragraph");
        }
    }

    #[test]
    fn a_very_long_line_is_cut_between_characters() {
        for text in [
            "é".repeat(500_000),
            format!("fn a() {{}} {}", "x".repeat(1_000_000)),
        ] {
            let chunks = chunks("rust", &text);
            let whole: String = chunks.iter().map(|chunk| chunk.body).collect();
            assert_eq!(whole, text);
            assert!(chunks.iter().all(|chunk| chunk.body.len() <= MAX_BYTES));
            assert!(
                chunks
                    .iter()
                    .all(|chunk| (chunk.first_line, chunk.last_line) == (1, 1))
            );
            assert!(chunks.iter().filter(|chunk| !chunk.defs.is_empty()).count() <= 1);
        }
    }

    #[test]
    fn every_line_that_is_not_blank_is_in_one_chunk() {
        let piece = "fn a() {\n    b();\n}\n\n\n// c\nstruct D;\n\tx\n";
        for times in 1..80 {
            let text = piece.repeat(times);
            let mut next = 1;
            for chunk in chunks("rust", &text) {
                assert!(chunk.first_line >= next && chunk.last_line >= chunk.first_line);
                let between = text.lines().take(chunk.first_line - 1).skip(next - 1);
                assert!(between.clone().all(|line| line.trim().is_empty()));
                next = chunk.last_line + 1;
            }
            assert!(
                text.lines()
                    .skip(next - 1)
                    .all(|line| line.trim().is_empty())
            );
        }
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert!(chunks("rust", "").is_empty());
        assert!(chunks("text", " \n\n\t\n").is_empty());
    }
}
