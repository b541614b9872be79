//! Blanks everything that is not code.

/// Returns the text with comments and the contents of strings and characters replaced by spaces.
pub fn without_comments_and_strings(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_word = blanked.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        let (kept, length) = match not_code(rest, in_word) {
            Some(length) => (false, length),
            None => (true, first.len_utf8()),
        };
        let (piece, after) = rest.split_at(length);
        push(&mut blanked, piece, kept);
        rest = after;
    }
    blanked
}

/// Returns the code without the items marked `#[cfg(test)]`; expects text without comments and strings.
pub fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut blanked = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(MARK) {
        let (before, marked) = rest.split_at(start);
        let (item, after) = marked.split_at(item_length(marked));
        push(&mut blanked, before, true);
        push(&mut blanked, item, false);
        rest = after;
    }
    blanked + rest
}

fn push(blanked: &mut String, piece: &str, keep: bool) {
    let blank = |letter: char| if keep || letter == '\n' { letter } else { ' ' };
    blanked.extend(piece.chars().map(blank));
}

/// Returns the length of the comment, string or character that the text begins with.
fn not_code(text: &str, in_word: bool) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    if text.starts_with('"') {
        return Some(quoted(text, '"'));
    }
    if text.starts_with('\'') {
        return is_character(text).then(|| quoted(text, '\''));
    }
    if in_word { None } else { raw_string(text) }
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += 1;
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn quoted(text: &str, mark: char) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == mark {
            return at + 1;
        }
    }
    text.len()
}

/// Tells `'a'` and `'\n'` from the lifetime `'a`.
fn is_character(text: &str) -> bool {
    let mut letters = text.chars().skip(1);
    let first = letters.next();
    first == Some('\\') || letters.next() == Some('\'')
}

fn raw_string(text: &str) -> Option<usize> {
    let after = ["br", "cr", "r"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))?;
    let body = after.trim_start_matches('#');
    let hashes = after.len() - body.len();
    let body = body.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let opening = text.len() - body.len();
    Some(
        body.find(&end)
            .map_or(text.len(), |at| opening + at + end.len()),
    )
}

/// Returns the length of an item: up to the `;` or the closing brace at its own level.
fn item_length(text: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 && (letter == ';' || letter == '}') {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
