//! Reads the evaluation sets in `tests/data` and measures how many of their secrets are redacted.
//!
//! The sets are kept as templates, so that no file of the repository contains a string that a secret scanner reports.

use turnbuckle_context::Redactor;

use super::planted::Dice;

pub(crate) const SECRETS: &str = include_str!("../../data/secrets.txt");
pub(crate) const HARMLESS: &str = include_str!("../../data/harmless.txt");
pub(crate) const MORE_SECRETS: &str = include_str!("../../data/more-secrets.txt");
pub(crate) const MORE_HARMLESS: &str = include_str!("../../data/more-harmless.txt");
pub(crate) const HELD_OUT_SECRETS: &str = include_str!("../../data/held-out-secrets.txt");

/// A text and the secrets in it.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) secrets: Vec<String>,
}

impl Case {
    /// Returns whether the redacted text still contains a considerable part of a secret.
    pub(crate) fn leaks(&self, redacted: &str) -> bool {
        let lines = self.secrets.iter().flat_map(|secret| secret.lines());
        lines.map(str::trim).any(|line| leaks(line, redacted))
    }
}

/// Returns the cases of a set. Each line is a name, a tab and a template.
pub(crate) fn secrets(set: &str) -> Vec<Case> {
    let case = |(number, line): (usize, &str)| {
        let (name, template) = line.split_once('\t').unwrap();
        let marked = expand(template, number);
        let secrets = marked.split('«').skip(1);
        let secrets = secrets.map(|part| part.split_once('»').unwrap().0.to_owned());
        Case {
            name: name.to_owned(),
            secrets: secrets.collect(),
            text: marked.replace(['«', '»'], ""),
        }
    };
    lines(set).enumerate().map(case).collect()
}

/// Returns the texts of a set. Each line is a template without a secret.
pub(crate) fn harmless(set: &str) -> Vec<String> {
    let text = |(number, line)| expand(line, number);
    lines(set).enumerate().map(text).collect()
}

/// Returns the cases with a remaining secret, and their redacted text.
pub(crate) fn leaked(cases: &[Case]) -> Vec<(&str, String)> {
    let redacted = |case: &Case| Redactor::standard().redact(&case.text).text.into_owned();
    let all = cases.iter().map(|case| (case, redacted(case)));
    all.filter(|(case, redacted)| case.leaks(redacted))
        .map(|(case, redacted)| (&*case.name, redacted))
        .collect()
}

fn lines(set: &str) -> impl Iterator<Item = &str> {
    let is_case = |line: &&str| !line.is_empty() && *line != "#" && !line.starts_with("# ");
    set.lines().filter(is_case)
}

/// Returns whether a third of the secret, at least 4 and at most 12 consecutive characters, remains.
fn leaks(secret: &str, redacted: &str) -> bool {
    let secret: Vec<char> = secret.chars().collect();
    let length = (secret.len() / 3).clamp(4, 12).min(secret.len());
    let mut parts = secret.windows(length.max(1));
    parts.any(|part| redacted.contains(&part.iter().collect::<String>()))
}

fn expand(template: &str, number: usize) -> String {
    let mut dice = Dice::new(number as u64 + 1000);
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['\\', '{', '¦']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix('¦') {
            rest = after;
        } else if let Some(after) = rest.strip_prefix('\\') {
            let escape = after.chars().next().unwrap();
            text.push(match escape {
                'n' => '\n',
                't' => '\t',
                other => other,
            });
            rest = &after[escape.len_utf8()..];
        } else if let Some((value, after)) = generate(rest, &mut dice) {
            text.push_str(&value);
            rest = after;
        } else {
            text.push('{');
            rest = &rest[1..];
        }
    }
    text + rest
}

/// Generates the text for a placeholder such as `{hex 40}`, and returns it with the rest of the template.
fn generate<'t>(template: &'t str, dice: &mut Dice) -> Option<(String, &'t str)> {
    let (inside, after) = template.strip_prefix('{')?.split_once('}')?;
    if inside == "uuid" {
        let mut hex = |length| dice.text("0123456789abcdef", length);
        let (a, b, c, d, e) = (hex(8), hex(4), hex(3), hex(3), hex(12));
        return Some((format!("{a}-{b}-4{c}-a{d}-{e}"), after));
    }
    let (kind, argument) = inside.split_once(' ')?;
    if kind == "enc" {
        return Some((base64(argument.as_bytes()), after));
    }
    let alphabet = match kind {
        "digits" => "0123456789",
        "hex" => "0123456789abcdef",
        "HEX" => "0123456789ABCDEF",
        "lower" => "abcdefghijklmnopqrstuvwxyz0123456789",
        "upper" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        "alpha" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "alnum" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "base32" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "base58" => "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
        "bech32" => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
        "url" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
        "b64" | "pem64" | "openssh64" => {
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        }
        _ => return None,
    };
    let count: usize = argument.parse().ok()?;
    let pem = |dice: &mut Dice, name: &str| {
        let body: String = (0..count).map(|_| dice.text(alphabet, 64) + "\n").collect();
        let text = format!("-----BEGIN {name} KEY-----\n{body}-----END {name} KEY-----\n");
        base64(text.as_bytes())
    };
    let value = match kind {
        "pem64" => pem(dice, "RSA PRIVATE"),
        "openssh64" => pem(dice, "OPENSSH PRIVATE"),
        _ => dice.text(alphabet, count),
    };
    Some((value, after))
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place)) & 63;
            let is_padding = place > chunk.len();
            text.push(if is_padding {
                '='
            } else {
                char::from(ALPHABET[index as usize])
            });
        }
    }
    text
}
