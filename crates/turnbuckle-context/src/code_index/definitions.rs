//! Finds the definitions in a text line by line, with a keyword table per language instead of a grammar.
//!
//! It misses some definitions, but takes time proportional to the text for any input, and supports a language with one entry
//! in a table.

mod language_rules;

pub(super) use self::language_rules::LanguageRules;
use self::language_rules::{BareDefinition, LineShape};
use crate::text::byte_prefix;

/// Maximum number of bytes of a line that are searched; readable definitions start earlier.
const MAX_LINE_BYTES: usize = 400;

/// A name that a text defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Definition<'t> {
    /// The line, counted from 0.
    pub(super) line: usize,
    pub(super) name: &'t str,
    /// The kind, such as `function`, `type` or `section`.
    pub(super) kind: &'static str,
}

/// Returns the definitions, in the order of the lines.
pub(super) fn definitions<'t>(rules: &LanguageRules, lines: &[&'t str]) -> Vec<Definition<'t>> {
    let mut found = Vec::new();
    let mut fence = None;
    for (number, line) in lines.iter().enumerate() {
        let line = byte_prefix(line, MAX_LINE_BYTES).trim_end_matches(['\n', '\r']);
        if rules.is_prose() && is_fenced(&mut fence, line) {
            continue;
        }
        if let Some((name, kind)) = definition(rules, line) {
            found.push(Definition {
                line: number,
                name,
                kind,
            });
        }
    }
    found
}

/// Returns whether a line of Markdown is in a code block, where `#` starts a comment.
fn is_fenced(fence: &mut Option<&'static str>, line: &str) -> bool {
    let mark = ["```", "~~~"]
        .into_iter()
        .find(|mark| line.trim_start().starts_with(mark));
    match (*fence, mark) {
        (None, Some(mark)) => *fence = Some(mark),
        (Some(open), Some(mark)) if open == mark => {
            *fence = None;
            return true;
        }
        _ => {}
    }
    fence.is_some()
}

type FoundName<'t> = Option<(&'t str, &'static str)>;

/// Words before a parenthesis that do not define a function.
const CONTROL_WORDS: &[&str] = &[
    "assert",
    "await",
    "case",
    "catch",
    "co_await",
    "co_return",
    "delete",
    "do",
    "elif",
    "else",
    "except",
    "for",
    "foreach",
    "goto",
    "guard",
    "if",
    "import",
    "lock",
    "new",
    "return",
    "sizeof",
    "super",
    "switch",
    "synchronized",
    "this",
    "throw",
    "try",
    "typeof",
    "using",
    "when",
    "while",
    "with",
    "yield",
    "defined",
];
/// Maximum length of a name; a longer one is data.
const MAX_NAME_BYTES: usize = 120;

/// Returns the name that a line defines, and its kind.
pub(super) fn definition<'t>(rules: &LanguageRules, line: &'t str) -> FoundName<'t> {
    let found = match rules.shape {
        LineShape::Words => words(rules, line).or_else(|| bare(rules, line)),
        LineShape::Sql => sql(rules, line),
        LineShape::Lisp => lisp(line),
        LineShape::Markdown => heading(line),
        LineShape::Sections => section(line),
        LineShape::Keys => key(line),
        LineShape::Blocks => block(rules, line),
    };
    found.filter(|(name, _)| !name.is_empty() && name.len() <= MAX_NAME_BYTES)
}

/// Modifiers, a keyword, a name.
fn words<'t>(rules: &LanguageRules, line: &'t str) -> FoundName<'t> {
    let mut rest = line.trim_start();
    let is_outermost = rest.len() == line.len();
    loop {
        let (word, after) = leading_word(rest);
        let kind = kind_of(rules, word);
        let is_modifier = rules.modifiers.contains(&word);
        let (next, _) = leading_word(skip_brackets(after).trim_start());
        let more_follows = kind_of(rules, next).is_some() || rules.modifiers.contains(&next);
        match kind {
            // `const fn`, `enum class`: the last keyword counts. A function may have any name.
            Some(kind) if more_follows && kind != "function" => rest = after.trim_start(),
            Some("constant") if !is_outermost => return None,
            Some(kind) => return named(kind, word, after),
            None if is_modifier => rest = skip_brackets(after).trim_start(),
            None => return None,
        }
        // `extern "C" fn`
        if let Some((_, after)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            rest = after.trim_start();
        }
    }
}

/// Returns the name after a keyword.
fn named<'t>(kind: &'static str, word: &str, after: &'t str) -> FoundName<'t> {
    // The keyword must end here: `type_of(x)` does not start with one. Operators such as `def+(other)` are skipped.
    if !after.starts_with([' ', '\t', '<', '*', '(', ':']) {
        return None;
    }
    if kind == "impl" {
        return implemented(after).map(|name| (name, kind));
    }
    let is_declared_only = |text: &str| text.trim_end().ends_with(';');
    let is_a_type = matches!(
        word,
        "struct" | "class" | "union" | "enum" | "mod" | "namespace"
    );
    if is_a_type && is_declared_only(after) && !after.contains(['{', '(']) {
        return None;
    }
    let mut rest = after.trim_start().trim_start_matches('*').trim_start();
    // `fun <T> name`, `func (r *Receiver) name`, `-record(name`
    rest = skip_angles(rest).trim_start();
    rest = rest.strip_prefix("rec ").unwrap_or(rest).trim_start();
    if word.starts_with('-') || matches!(word, "function" | "macro") && rest.starts_with('(') {
        rest = rest.trim_start_matches('(').trim_start();
    } else if word == "func" {
        rest = skip_brackets(rest).trim_start();
    }
    let kind = match kind {
        "constant" if is_function_value(rest) => "function",
        kind => kind,
    };
    Some((
        last_of_path(rest.trim_start_matches(['"', '\'', '`', '&', '$'])),
        kind,
    ))
}

/// Returns `Type` for `impl<T> Trait<T> for path::Type<T> {`.
fn implemented(after: &str) -> Option<&str> {
    let rest = skip_angles(after.trim_start()).trim_start();
    let rest = rest.split(['{', ';']).next().unwrap_or(rest);
    let of = rest.split_once(" for ").map_or(rest, |(_, of)| of);
    let of = of.trim_start().trim_start_matches(['&', '*', '!']);
    let of = of.strip_prefix("dyn ").unwrap_or(of);
    Some(last_of_path(of))
}

/// Returns a function that is defined without a keyword.
fn bare<'t>(rules: &LanguageRules, line: &'t str) -> FoundName<'t> {
    let is_outermost = !line.starts_with([' ', '\t']);
    match rules.bare {
        BareDefinition::Never => None,
        BareDefinition::Typed => typed(rules, line, is_outermost),
        BareDefinition::Script if is_outermost => assigned(line),
        BareDefinition::Script => method(rules, line),
        BareDefinition::Shell => shell(line),
        BareDefinition::Assigned => assigned(line),
        BareDefinition::Capitals if is_outermost => capitals(line),
        BareDefinition::Signature if is_outermost => signature(line),
        BareDefinition::Capitals | BareDefinition::Signature => None,
    }
}

/// Matches `static int name(…) {` and `void Type::name(`, but not a call or a declaration that ends on the line.
fn typed<'t>(rules: &LanguageRules, line: &'t str, is_outermost: bool) -> FoundName<'t> {
    let line = line.trim();
    let (first, _) = leading_word(line);
    let is_arrow = line.contains("=>") && rules.modifiers.contains(&first);
    let is_ended = line.ends_with(';') && !is_arrow;
    if first.is_empty() || CONTROL_WORDS.contains(&first) || is_ended {
        return None;
    }
    let (before, _) = line.split_once('(')?;
    let (head, name) = trailing_name(before.trim_end());
    let head = head.trim_end();
    let opens = line.ends_with('{') || line.ends_with('}') || line.contains("=>");
    let is_alone = is_outermost || rules.modifiers.contains(&first);
    let has_type = head.ends_with(|sign: char| sign.is_alphanumeric() || "_*&>]:~?".contains(sign));
    let is_one = has_type && (opens || is_alone) && !before.contains(['=', '"', '.', ';', '{']);
    (is_one && !CONTROL_WORDS.contains(&name)).then_some((name, "function"))
}

/// Matches `async name(…) {` in a class or an object.
fn method<'t>(rules: &LanguageRules, line: &'t str) -> FoundName<'t> {
    let mut rest = line.trim();
    // `call(a, function () {` has an unclosed parenthesis.
    let number = |sign: char| rest.matches(sign).count();
    if !rest.ends_with('{') || number('(') != number(')') {
        return None;
    }
    loop {
        let (word, after) = leading_word(rest.trim_start_matches(['*', '#']));
        let is_modifier = rules.modifiers.contains(&word) || matches!(word, "get" | "set");
        match after.trim_start() {
            after if is_modifier && !after.starts_with(['(', '<']) => rest = after,
            after => {
                let is_called =
                    after.starts_with('(') || after.starts_with('<') && after.contains('(');
                let is_one = is_called
                    && !word.is_empty()
                    && !CONTROL_WORDS.contains(&word)
                    && word != "function";
                return is_one.then_some((word, "function"));
            }
        }
    }
}

/// Matches `name() {`, and `name ()` with its brace on the next line.
fn shell(line: &str) -> FoundName<'_> {
    let (name, after) = line.trim().split_once("()")?;
    let name = name.trim_end();
    let is_name = |sign: char| sign.is_alphanumeric() || "_-:.".contains(sign);
    let is_one = name.chars().all(is_name)
        && matches!(after.trim_start().chars().next(), None | Some('{' | '#'));
    is_one.then_some((name, "function"))
}

/// Matches `exports.name = function` and `name <- function`.
fn assigned(line: &str) -> FoundName<'_> {
    let (left, right) = line.split_once("<-").or_else(|| line.split_once('='))?;
    let left = left.trim();
    let is_path = |sign: char| sign.is_alphanumeric() || "_.$:".contains(sign);
    let is_one = left.chars().all(is_path) && is_function(right.trim_start());
    is_one.then(|| (last_of_path(left), "function"))
}

/// Matches `name = (…) => {` after `const`.
fn is_function_value(rest: &str) -> bool {
    rest.split_once('=')
        .is_some_and(|(_, value)| is_function(value.trim_start()))
}

fn is_function(value: &str) -> bool {
    let value = value.strip_prefix("async").map_or(value, str::trim_start);
    value.starts_with("function")
        || value.contains("=>")
            && value.starts_with(|sign: char| sign == '(' || sign.is_alphabetic())
}

/// Matches `NAME = …` and `NAME: type = …`.
fn capitals(line: &str) -> FoundName<'_> {
    let (name, after) = leading_word(line);
    let is_capital = |sign: char| sign.is_ascii_uppercase() || sign.is_ascii_digit() || sign == '_';
    let is_one = name.len() > 1
        && name.chars().all(is_capital)
        && after.trim_start().starts_with(['=', ':']);
    is_one.then_some((name, "constant"))
}

/// Matches `name :: Type`.
fn signature(line: &str) -> FoundName<'_> {
    let (name, after) = leading_word(line);
    after
        .trim_start()
        .starts_with("::")
        .then_some((name, "function"))
}

/// Matches `CREATE OR REPLACE VIEW IF NOT EXISTS schema.name`.
fn sql<'t>(rules: &LanguageRules, line: &'t str) -> FoundName<'t> {
    let (first, mut rest) = leading_word(line.trim_start());
    if !first.eq_ignore_ascii_case("create") {
        return None;
    }
    let mut found = None;
    loop {
        let (word, after) = leading_word(rest.trim_start());
        let lower = word.to_ascii_lowercase();
        match kind_of(rules, &lower) {
            Some(kind) if found.is_none() => found = Some(kind),
            _ if rules.modifiers.contains(&lower.as_str()) => {}
            _ => break,
        }
        rest = after;
    }
    let name = rest.trim_start().split([' ', '(', ';', '\t']).next()?;
    let name = name.rsplit('.').next().unwrap_or(name);
    Some((name.trim_matches(['"', '`', '[', ']', '\'']), found?))
}

/// Matches `(defn name` and `(define (name`.
fn lisp(line: &str) -> FoundName<'_> {
    let rest = line.strip_prefix('(')?;
    let (word, after) = rest.split_once(char::is_whitespace)?;
    if !word.starts_with("def") && word != "ns" {
        return None;
    }
    // `(defn ^:private name`, `(define (name`
    let name = after
        .split_whitespace()
        .map(|name| name.trim_start_matches('('))
        .find(|name| !name.starts_with('^'))?;
    let kind = if word.contains("macro") {
        "macro"
    } else {
        "function"
    };
    Some((name.trim_end_matches(')'), kind))
}

fn heading(line: &str) -> FoundName<'_> {
    let text = line.trim_start_matches('#');
    let depth = line.len() - text.len();
    let is_one = (1..=6).contains(&depth) && text.starts_with(' ');
    is_one.then(|| (text.trim().trim_end_matches('#').trim_end(), "section"))
}

fn section(line: &str) -> FoundName<'_> {
    let name = line.strip_prefix('[')?.trim_start_matches('[');
    let (name, _) = name.split_once(']')?;
    Some((name.trim(), "section"))
}

fn key(line: &str) -> FoundName<'_> {
    let (name, after) = line.split_once(':')?;
    let is_name = |sign: char| sign.is_alphanumeric() || "_-./%".contains(sign);
    let is_one = name.chars().all(is_name)
        && !name.starts_with(['-', '.'])
        && !after.starts_with(['=', ':', '/']);
    is_one.then_some((name, "section"))
}

fn block<'t>(rules: &LanguageRules, line: &'t str) -> FoundName<'t> {
    let (word, after) = leading_word(line);
    let kind = kind_of(rules, word)?;
    let name = after
        .split('"')
        .rfind(|part| !part.trim().is_empty() && !part.contains('{'))?;
    Some((name, kind))
}

fn kind_of(rules: &LanguageRules, word: &str) -> Option<&'static str> {
    let mut rows = rules.keywords.iter();
    rows.find(|(keyword, _)| *keyword == word)
        .map(|(_, kind)| *kind)
}

/// Splits off the first word of a text. `#define`, `@interface` and `macro_rules!` are words.
fn leading_word(text: &str) -> (&str, &str) {
    let begin = usize::from(text.starts_with(['#', '@', '-']));
    let end = text[begin..]
        .find(|sign: char| !is_in_word(sign))
        .map_or(text.len(), |end| begin + end);
    let end = end + usize::from(text[end..].starts_with('!'));
    text.split_at(end)
}

fn trailing_name(text: &str) -> (&str, &str) {
    let begin = text
        .char_indices()
        .rev()
        .take_while(|(_, sign)| is_in_word(*sign))
        .last()
        .map_or(text.len(), |(at, _)| at);
    text.split_at(begin)
}

/// Returns `name` for `a::b<T>.name<T>(`.
fn last_of_path(text: &str) -> &str {
    if let Some((_, rest)) = text
        .split_once('<')
        .map(|(path, _)| text.split_at(path.len()))
        && let Some(rest) = skip_angles(rest).strip_prefix(['.', ':'])
        && !text[..text.len() - rest.len()].contains(['(', ' '])
    {
        return last_of_path(rest.trim_start_matches(':'));
    }
    let end = text
        .find(|sign: char| !is_in_word(sign) && !matches!(sign, '.' | ':' | '\\' | '-' | '?' | '!'))
        .unwrap_or(text.len());
    let path = text[..end].trim_end_matches(['.', ':', '\\', '-', '?', '!']);
    let begin = path.rfind(['.', ':', '\\']).map_or(0, |at| at + 1);
    &path[begin..]
}

fn is_in_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_' || sign == '$'
}

/// Skips a leading `(…)`, as in `pub(crate) fn`.
fn skip_brackets(text: &str) -> &str {
    match text.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, after)) => after,
        None => text,
    }
}

/// Skips a leading `<…>`.
fn skip_angles(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, sign) in text.char_indices() {
        match sign {
            '<' => depth += 1,
            // `->` in a bound
            '>' if text[..at].ends_with('-') => {}
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            let behind = at + usize::from(sign == '>');
            return &text[behind..];
        }
    }
    text
}

#[cfg(test)]
mod tests;
