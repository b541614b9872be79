//! Secrets: found wherever they are written down, and what is none is let be.

mod cases;
mod harmless;
mod planted;
mod stored;

use turnbuckle_context::Redactor;

use self::planted::{Dice, Planted};

const MOST_LEAKED_PERCENT: usize = 49;
const MOST_FALSE_ALARMS: usize = 0;

#[test]
fn secrets_of_every_kind_are_found_wherever_they_stand() {
    let mut missed = Vec::new();
    for planted in planted::all() {
        for (place, text) in places(&planted) {
            let redacted = Redactor::standard().redact(&text);
            let left = planted
                .secrets
                .iter()
                .any(|secret| redacted.text.contains(&**secret));
            let named = redacted
                .findings
                .iter()
                .any(|finding| &*finding.rule == planted.rule);
            if left || !named {
                missed.push(format!("{} in {place}: {}", planted.rule, redacted.text));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn redacting_again_changes_nothing() {
    let text: String = planted::all()
        .iter()
        .flat_map(|planted| places(planted))
        .map(|(_, text)| text + "\n")
        .collect();
    let once = Redactor::standard().redact(&text);
    let twice = Redactor::standard().redact(&once.text);
    assert_eq!(twice.text, once.text);
    assert!(twice.findings.is_empty());
}

#[test]
fn lines_keep_their_numbers() {
    let text: String = planted::all()
        .iter()
        .flat_map(|planted| places(planted))
        .map(|(_, text)| text + "\n")
        .collect();
    let redacted = Redactor::standard().redact(&text);
    assert_eq!(redacted.text.lines().count(), text.lines().count());
}

#[test]
fn what_is_no_secret_is_let_be() {
    for line in harmless::LINES {
        let redacted = Redactor::standard().redact(line);
        assert_eq!(redacted.text, *line);
    }
    let text = harmless::LINES.join("\n");
    assert_eq!(Redactor::standard().redact(&text).findings, []);
}

/// The set was written before the rules were read: 200 secrets as they stand in notes, logs, commands and files.
#[test]
fn realistic_secrets_are_redacted() {
    let cases = cases::secrets(cases::SECRETS);
    let leaked = cases::leaked(&cases);
    let report: Vec<_> = leaked
        .iter()
        .map(|(name, redacted)| format!("{name}: {redacted}"))
        .collect();
    println!("{} of {} leaked", leaked.len(), cases.len());
    assert!(
        leaked.len() * 100 <= cases.len() * MOST_LEAKED_PERCENT,
        "{} of {} leaked\n{}",
        leaked.len(),
        cases.len(),
        report.join("\n")
    );
}

#[test]
fn realistic_harmless_text_is_unchanged() {
    let mut changed = Vec::new();
    for text in cases::harmless(cases::HARMLESS) {
        let redacted = Redactor::standard().redact(&text);
        if redacted.text != text {
            changed.push(format!("{text}\n  -> {}", redacted.text));
        }
    }
    println!("{} false alarms", changed.len());
    assert!(
        changed.len() <= MOST_FALSE_ALARMS,
        "{} false alarms\n{}",
        changed.len(),
        changed.join("\n")
    );
}

/// Pieces of secrets, markers and signs in any order: what is taken out stays out, and lines stay where they are.
#[test]
fn whatever_is_mixed_once_is_enough() {
    let all = planted::all();
    let signs = [
        "\n",
        "\r\n",
        " ",
        "\"",
        "'",
        ": ",
        "=",
        ", ",
        "é",
        "\u{2028}",
        "[REDACTED:jwt]",
        "[REDACTED:",
        "]",
        "password",
        "token: ",
        "-----BEGIN PRIVATE KEY-----",
        "\\n",
        "https://a:",
        "@host",
        "\0",
    ];
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let mut text = String::new();
        for _ in 0..dice.below(12) {
            let secret = &all[dice.below(all.len())].text;
            // ASCII, so any place is one between letters.
            let (from, to) = (dice.below(8), secret.len() - dice.below(8));
            text.push_str(&secret[from.min(to)..to]);
            for _ in 0..dice.below(4) {
                text.push_str(signs[dice.below(signs.len())]);
            }
        }
        let once = Redactor::standard().redact(&text);
        let twice = Redactor::standard().redact(&once.text);
        assert_eq!(once.text, twice.text, "{text:?}");
        let lines = |text: &str| text.matches('\n').count();
        assert_eq!(lines(&once.text), lines(&text), "{text:?}");
    }
}

/// The same secret in a sentence, in JSON, in an environment and in code.
fn places(planted: &Planted) -> [(&'static str, String); 4] {
    let text = &planted.text;
    let json = serde_json::json!({ "note": text, "more": 1 }).to_string();
    [
        ("prose", in_sentence(text)),
        ("JSON", json),
        ("an environment", format!("A=1\n{text}\nB=2\n")),
        (
            "code",
            format!("fn main() {{\n    let value = r#\"{text}\"#;\n    run(value);\n}}\n"),
        ),
    ]
}

fn in_sentence(text: &str) -> String {
    format!("Für jetzt ist es {text} und später anders.")
}
