//! Rules for the code under `crates/`. Comments, strings and tests are not checked.

use turnbuckle_arch_tests::source::{self, SourceCode, Token, tokens};
use turnbuckle_spec_coverage::side::REVISION_INDEPENDENT;

/// Returns the tokens that violate the rule.
type Rule = for<'a> fn(&[Token<'a>]) -> Vec<Token<'a>>;

#[test]
fn features_apply_to_modules_and_imports() {
    assert_rule(
        feature_on_other_item,
        |_| true,
        "`cfg(feature)` is allowed only on `mod` and `use`",
    );
}

#[test]
fn only_the_command_line_prints() {
    assert_rule(printing, is_not_cli, "only the command line prints");
}

#[test]
fn only_the_command_line_reads_the_environment() {
    assert_rule(
        environment,
        must_not_read_environment,
        "only the command line reads the environment",
    );
}

#[test]
fn only_revision_and_lifecycle_compare_revisions() {
    assert_rule(
        dates,
        must_not_compare_revisions,
        "only `revision` and `lifecycle` compare revisions",
    );
}

#[test]
fn revision_independent_packages_compare_no_revisions() {
    assert_rule(
        revisions,
        |path| {
            let mut packages = REVISION_INDEPENDENT.iter();
            packages.any(|package| path.starts_with(&format!("crates/{package}/")))
        },
        "tests of these packages count for every revision, so the packages must behave the same in all of them",
    );
}

#[test]
fn errors_of_other_deserializers_are_not_shown() {
    assert_rule(
        shown_serde_errors,
        must_not_show_serde_errors,
        "an error of `serde_json` or `toml` names Rust types: use `turnbuckle_protocol::json`",
    );
}

#[test]
fn nothing_is_unsafe() {
    assert_rule(|tokens| words(tokens, &["unsafe"]), |_| true, "no `unsafe`");
}

fn assert_rule(rule: Rule, applies: fn(&str) -> bool, claim: &str) {
    let files = source::library_code();
    assert!(!files.is_empty(), "no sources found");
    let violations: Vec<_> = files
        .iter()
        .filter(|file| applies(&file.path))
        .flat_map(|file| locations(file, rule))
        .collect();
    assert!(violations.is_empty(), "{claim}:\n{}", violations.join("\n"));
}

fn locations(file: &SourceCode, rule: Rule) -> Vec<String> {
    let location = |token: &Token<'_>| format!("{}:{}: {}", file.path, token.line, token.text);
    rule(&tokens(&file.code)).iter().map(location).collect()
}

fn is_not_cli(path: &str) -> bool {
    !path.starts_with("crates/turnbuckle-cli/")
}

/// One file passes `PATH` and a few more variables on to child processes.
fn must_not_read_environment(path: &str) -> bool {
    const ENVIRONMENT_FILE: &str = "crates/turnbuckle-client/src/transport/stdio/environment.rs";
    is_not_cli(path) && path != ENVIRONMENT_FILE
}

/// Public test suites, such as the one for stores, count as tests. The checker verifies what each revision requires, so it
/// compares revisions everywhere.
fn must_not_compare_revisions(path: &str) -> bool {
    const ALLOWED: &[&str] = &[
        "crates/turnbuckle-check/",
        "/lifecycle/",
        "/lifecycle.rs",
        "/conformance/",
        "/conformance.rs",
        "/testing/",
        "/testing.rs",
    ];
    let protocol = ["revision/", "revision.rs", "method.rs", "meta.rs"]
        .iter()
        .any(|name| path.starts_with(&format!("crates/turnbuckle-protocol/src/{name}")));
    !protocol && !ALLOWED.iter().any(|part| path.contains(part))
}

/// These files read any JSON, so that only its syntax can be wrong, or show no more than the position, or translate the
/// error.
fn must_not_show_serde_errors(path: &str) -> bool {
    const ALLOWED: &[&str] = &[
        "crates/turnbuckle-auth/src/client/file_store/format.rs",
        "crates/turnbuckle-check/src/baseline.rs",
        "crates/turnbuckle-cli/src/commands/bridge/config.rs",
        "crates/turnbuckle-cli/src/commands/check/options.rs",
        "crates/turnbuckle-cli/src/commands/serve/config.rs",
        "crates/turnbuckle-cli/src/target/read.rs",
        "crates/turnbuckle-cli/src/tool_args.rs",
        "crates/turnbuckle-context/src/transfer/import.rs",
        "crates/turnbuckle-protocol/src/json.rs",
        "crates/turnbuckle-server/src/testing/transport.rs",
    ];
    !ALLOWED.contains(&path)
}

/// Finds calls of other deserializers with an error that is used: `map_err`, unless it ignores the error, and
/// `Err(error)`.
fn shown_serde_errors<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    const STATEMENT_TOKENS: usize = 40;
    let is_call = |at: &usize| {
        matches!(tokens[*at].text, "serde_json" | "toml")
            && tokens
                .get(at + 2)
                .is_some_and(|name| name.text.starts_with("from_"))
    };
    let shows = |at: &usize| {
        let statement = tokens[*at..].iter().take(STATEMENT_TOKENS);
        let statement: Vec<_> = statement
            .map(|token| token.text)
            .take_while(|&text| text != ";")
            .collect();
        statement.windows(4).any(|window| match window {
            ["map_err", "(", "|", argument] => *argument != "_",
            ["map_err", "(", ..] => true,
            ["Err", "(", name, ")"] => *name != "_",
            _ => false,
        })
    };
    let calls = (0..tokens.len()).filter(is_call).filter(shows);
    calls.map(|at| tokens[at]).collect()
}

fn printing<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    const MACROS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];
    pairs(tokens)
        .filter(|(name, next)| MACROS.contains(&name.text) && next.text == "!")
        .map(|(name, _)| name)
        .collect()
}

/// Finds `std::env`. `env!` is evaluated by the compiler and `.env(…)` sets a variable of a child process: both are allowed.
fn environment<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut found = words(tokens, &["home_dir"]);
    let mut in_use = false;
    for (token, next) in pairs(tokens) {
        in_use = token.text == "use" || (in_use && token.text != ";");
        if token.text == "env" && (in_use || next.text == "::") {
            found.push(token);
        }
    }
    found
}

fn dates<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let dates = tokens
        .iter()
        .filter(|token| token.text.starts_with("V20") && token.text.contains('_'));
    let eras = tokens.windows(3).filter_map(|window| match window {
        [name, colons, era] if name.text == "Revision" && colons.text == "::" => Some(era),
        _ => None,
    });
    dates
        .chain(eras.filter(|era| ["MODERN", "LATEST_LEGACY"].contains(&era.text)))
        .copied()
        .collect()
}

/// Finds uses of the revision type, and protocol versions that are compared instead of being passed on.
fn revisions<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    const COMPARISONS: &[&str] = &["starts_with", "parse", "cmp", "eq", "ne"];
    let mut found = dates(tokens);
    found.extend(words(tokens, &["Revision", "Era"]));
    for window in tokens.windows(4) {
        let [before, version, first, second] = [0, 1, 2, 3].map(|at| window[at]);
        let is_compared = matches!((first.text, second.text), ("=" | "!", "=") | ("<" | ">", _));
        let is_inspected = first.text == "." && COMPARISONS.contains(&second.text);
        if version.text == "protocol_version"
            && (before.text == "match" || is_compared || is_inspected)
        {
            found.push(version);
        }
    }
    found
}

/// Finds `feature =` in a `cfg!`, or in an attribute of anything but `mod` and `use`.
fn feature_on_other_item<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let is_feature = |at: usize| {
        tokens[at].text == "feature"
            && tokens.get(at + 1).is_some_and(|next| next.text == "=")
            && at > 0
            && ["(", ","].contains(&tokens[at - 1].text)
    };
    (0..tokens.len())
        .filter(|&at| is_feature(at) && !is_on_module(tokens, at))
        .map(|at| tokens[at])
        .collect()
}

fn is_on_module(tokens: &[Token<'_>], at: usize) -> bool {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let Some(start) = (0..at).rev().find(|&start| text(start) == "#") else {
        return false;
    };
    if text(start + 1) != "[" || text(start + 2) != "cfg" {
        return false;
    }
    let mut item = start;
    while text(item) == "#" {
        item = after_group(tokens, item + 1);
    }
    if text(item) == "pub" {
        item += 1;
        if text(item) == "(" {
            item = after_group(tokens, item);
        }
    }
    item > at && ["mod", "use"].contains(&text(item))
}

/// Returns the index after the group that opens at `open`.
fn after_group(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

fn words<'a>(tokens: &[Token<'a>], words: &[&str]) -> Vec<Token<'a>> {
    tokens
        .iter()
        .filter(|token| words.contains(&token.text))
        .copied()
        .collect()
}

fn pairs<'a>(tokens: &[Token<'a>]) -> impl Iterator<Item = (Token<'a>, Token<'a>)> {
    tokens.windows(2).map(|pair| (pair[0], pair[1]))
}

mod rules {
    use super::*;

    fn violates(rule: Rule, code: &str) -> bool {
        !rule(&tokens(code)).is_empty()
    }

    #[test]
    fn a_feature_may_apply_to_a_module_or_an_import() {
        for code in [
            "#[cfg(feature = )] mod a;",
            "#[cfg(feature = )]\n#[path = ]\npub(crate) mod a;",
            "#[cfg(all(unix, feature = ))] pub use a::b;",
            "#[cfg(unix)] fn a() {}",
            "let feature = 1; call(a, b)",
        ] {
            assert!(!violates(feature_on_other_item, code), "{code}");
        }
    }

    #[test]
    fn a_feature_may_not_apply_to_other_items() {
        for code in [
            "#[cfg(feature = )] fn a() {}",
            "#[cfg(feature = )] pub struct A;",
            "enum A { #[cfg(feature = )] B }",
            "#[cfg_attr(feature = , derive(A))] mod a;",
            "if cfg!(feature = ) { mod a; }",
            "#[cfg(unix)] mod a; fn b() { cfg!(feature = ) }",
        ] {
            assert!(violates(feature_on_other_item, code), "{code}");
        }
    }

    #[test]
    fn comparing_revisions_is_found() {
        for code in [
            "if settings.protocol_version == a {",
            "if protocol_version != a {",
            "if protocol_version < a {",
            "match protocol_version { a => b }",
            "let modern = protocol_version.starts_with(a);",
            "fn a(of: Revision) {}",
            "let a = b::V2025_11_25;",
        ] {
            assert!(violates(revisions, code), "{code}");
        }
        for code in [
            "discover(url, &settings.protocol_version).await",
            "settings.protocol_version = version.into()",
            "protocol_version: a.to_owned(),",
            "pub fn protocol_version(self) {}",
        ] {
            assert!(!violates(revisions, code), "{code}");
        }
    }

    #[test]
    fn printing_is_found() {
        assert!(violates(printing, "eprintln!()"));
        assert!(!violates(printing, "print(a)"));
    }

    #[test]
    fn reading_the_environment_is_found() {
        for code in [
            "std::env::var()",
            "use std::env;",
            "use std::{env, fs};",
            "env::args()",
            "std::env::home_dir",
        ] {
            assert!(violates(environment, code), "{code}");
        }
        for code in ["env!()", "Command::new().env(a, b)", "use a; let env = 1;"] {
            assert!(!violates(environment, code), "{code}");
        }
    }

    #[test]
    fn one_file_of_the_library_may_read_the_environment() {
        assert!(!must_not_read_environment(
            "crates/turnbuckle-client/src/transport/stdio/environment.rs"
        ));
        assert!(must_not_read_environment(
            "crates/turnbuckle-client/src/stdio.rs"
        ));
        assert!(must_not_read_environment(
            "crates/turnbuckle-server/src/stdio/environment.rs"
        ));
    }

    #[test]
    fn shown_errors_of_deserializers_are_found() {
        for code in [
            "serde_json::from_slice(json).map_err(|error| Invalid(error.to_string()))?;",
            "serde_json::from_str(json).map_err(Invalid)?;",
            "match toml::from_str(text) { Ok(config) => config, Err(error) => fail(error) }",
        ] {
            assert!(violates(shown_serde_errors, code), "{code}");
        }
        for code in [
            "serde_json::from_slice(json).map_err(|_| Invalid)?;",
            "serde_json::from_slice(json).ok()?; other().map_err(|error| error)",
            "json::from_slice(json).map_err(|error| Invalid(error.to_string()))?;",
        ] {
            assert!(!violates(shown_serde_errors, code), "{code}");
        }
    }

    #[test]
    fn dates_are_found() {
        assert!(violates(dates, "if revision >= Revision::V2025_06_18 {"));
        assert!(violates(dates, "use Revision::*; V2025_06_18"));
        assert!(violates(dates, "revision == Revision::MODERN"));
        assert!(!violates(dates, "Revision::ALL; V2"));
    }

    #[test]
    fn some_files_may_compare_revisions() {
        assert!(!must_not_compare_revisions(
            "crates/turnbuckle-protocol/src/revision/v2025_06_18.rs"
        ));
        assert!(!must_not_compare_revisions(
            "crates/turnbuckle-server/src/lifecycle/session.rs"
        ));
        assert!(!must_not_compare_revisions(
            "crates/turnbuckle-store/src/conformance/sessions.rs"
        ));
        assert!(must_not_compare_revisions(
            "crates/turnbuckle-protocol/src/types/tool.rs"
        ));
        assert!(must_not_compare_revisions(
            "crates/turnbuckle-server/src/revision/mod.rs"
        ));
    }
}
