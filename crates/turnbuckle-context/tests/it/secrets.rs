//! Tests of redaction: secrets are found in every context, and harmless text is not changed.

mod cases;
mod harmless;
mod planted;
mod stored;

use proptest::{collection::vec, prelude::*, sample};
use turnbuckle_context::Redactor;

use self::planted::{Dice, Planted};

#[test]
fn secrets_of_every_kind_are_found_in_every_context() {
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
fn harmless_text_is_not_changed() {
    for line in harmless::LINES {
        let redacted = Redactor::standard().redact(line);
        assert_eq!(redacted.text, *line);
    }
    let text = harmless::LINES.join("\n");
    assert_eq!(Redactor::standard().redact(&text).findings, []);
}

/// 200 secrets as in notes, logs, commands and files. The authors of the set did not know the rules.
#[test]
fn realistic_secrets_are_redacted() {
    assert_leaked(cases::SECRETS, 0);
}

#[test]
fn realistic_harmless_text_is_unchanged() {
    assert_unchanged(cases::HARMLESS);
}

/// A second set. Rules were added for its misses; one miss is left.
#[test]
fn more_realistic_secrets_are_redacted() {
    assert_leaked(cases::MORE_SECRETS, 1);
}

#[test]
fn more_realistic_harmless_text_is_unchanged() {
    assert_unchanged(cases::MORE_HARMLESS);
}

/// A third set, written after all rules and not used to change them: 50 of 60 are redacted.
#[test]
fn held_out_secrets_are_redacted() {
    assert_leaked(cases::HELD_OUT_SECRETS, 10);
}

fn assert_leaked(set: &str, most: usize) {
    let cases = cases::secrets(set);
    let leaked = cases::leaked(&cases);
    let report: Vec<_> = leaked
        .iter()
        .map(|(name, redacted)| format!("{name}: {redacted}"))
        .collect();
    let (count, all) = (leaked.len(), cases.len());
    let report = report.join("\n");
    assert!(count <= most, "{count} of {all} leaked\n{report}");
}

fn assert_unchanged(set: &str) {
    let mut changed = Vec::new();
    for text in cases::harmless(set) {
        let redacted = Redactor::standard().redact(&text);
        if redacted.text != text {
            changed.push(format!("{text}\n  -> {}", redacted.text));
        }
    }
    let (count, report) = (changed.len(), changed.join("\n"));
    assert!(changed.is_empty(), "{count} false alarms\n{report}");
}

/// Redacts parts of secrets, markers and punctuation in any order; the result is stable and keeps its line numbers.
#[test]
fn mixed_texts_are_redacted_in_one_call() {
    let planted = planted::all().into_iter().map(|planted| planted.text);
    let realistic = [cases::SECRETS, cases::MORE_SECRETS, cases::HELD_OUT_SECRETS];
    let realistic = realistic.into_iter().flat_map(cases::secrets);
    let all: Vec<_> = planted.chain(realistic.map(|case| case.text)).collect();
    for seed in 0..600 {
        let text = mixed(&all, &mut Dice::new(seed));
        let once = Redactor::standard().redact(&text);
        let twice = Redactor::standard().redact(&once.text);
        assert_eq!(once.text, twice.text, "{text:?}");
        let lines = |text: &str| text.matches('\n').count();
        assert_eq!(lines(&once.text), lines(&text), "{text:?}");
    }
}

/// Joins up to eleven texts, truncated at their ends, with punctuation between them.
fn mixed(texts: &[String], dice: &mut Dice) -> String {
    let signs = [
        "\n",
        "\r\n",
        " ",
        "\"",
        "'",
        ": ",
        "=",
        ", ",
        " | ",
        "\t",
        "é",
        "\u{2028}",
        "[REDACTED:jwt]",
        "[REDACTED:",
        "]",
        "password",
        "pass=",
        "token: ",
        "Cookie: ",
        "-----BEGIN PRIVATE KEY-----",
        "\\n",
        "https://a:",
        "@host",
        "\0",
    ];
    let mut mixed = String::new();
    for _ in 0..dice.below(12) {
        let text: Vec<char> = texts[dice.below(texts.len())].chars().collect();
        let (from, to) = (dice.below(8), text.len().saturating_sub(dice.below(8)));
        mixed.extend(&text[from.min(to)..to]);
        for _ in 0..dice.below(4) {
            mixed.push_str(signs[dice.below(signs.len())]);
        }
    }
    mixed
}

proptest! {
    /// Any characters, mixed with keywords of the rules.
    #[test]
    fn redacting_any_text_twice_changes_nothing(
        pieces in vec(
            prop_oneof![
                "\\PC{0,12}",
                "[A-Za-z0-9+/=_.-]{0,70}",
                sample::select(vec![
                    "\n", " ", "://", "@", ":", "|", ",", "password", "token=", "cookie: ", "--password ", "mysql -p",
                    "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "# ", "private key ", "$6$",
                ]).prop_map(str::to_owned),
            ],
            0..30,
        )
    ) {
        let text = pieces.concat();
        let once = Redactor::standard().redact(&text);
        let twice = Redactor::standard().redact(&once.text);
        prop_assert_eq!(&once.text, &twice.text);
    }
}

/// Returns the same secret in a sentence, in JSON, in an environment variable and in code.
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
