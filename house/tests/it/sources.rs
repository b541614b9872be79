//! What the sources under `crates/` may say. Comments, strings and tests are free.

use turnbuckle_house::source::{self, File, Token, tokens};
use turnbuckle_ledger::side::REVISION_INDEPENDENT;

/// A rule returns the tokens that break it.
type Rule = for<'a> fn(&[Token<'a>]) -> Vec<Token<'a>>;

#[test]
fn features_switch_whole_modules() {
    assert_kept(
        feature_inside_a_module,
        |_| true,
        "`cfg(feature)` stands only on `mod` and `use`",
    );
}

#[test]
fn only_the_command_line_prints() {
    assert_kept(printing, is_not_cli, "only the command line prints");
}

#[test]
fn only_the_command_line_reads_the_environment() {
    assert_kept(
        environment,
        may_not_read_environment,
        "only the command line reads the environment",
    );
}

#[test]
fn only_revision_and_lifecycle_know_dates() {
    assert_kept(
        dates,
        may_not_know_dates,
        "only `revision` and `lifecycle` compare revisions",
    );
}

#[test]
fn packages_that_count_for_every_revision_depend_on_none() {
    assert_kept(
        revisions,
        |path| {
            let mut packages = REVISION_INDEPENDENT.iter();
            packages.any(|package| path.starts_with(&format!("crates/{package}/")))
        },
        "what a test of these packages proves counts in every revision, so they do the same in all of them",
    );
}

#[test]
fn nothing_is_unsafe() {
    assert_kept(|tokens| words(tokens, &["unsafe"]), |_| true, "no `unsafe`");
}

fn assert_kept(rule: Rule, applies: fn(&str) -> bool, claim: &str) {
    let files = source::files();
    assert!(!files.is_empty(), "there are sources to look at");
    let broken: Vec<_> = files
        .iter()
        .filter(|file| applies(&file.path))
        .flat_map(|file| places(file, rule))
        .collect();
    assert!(broken.is_empty(), "{claim}:\n{}", broken.join("\n"));
}

fn places(file: &File, rule: Rule) -> Vec<String> {
    let place = |token: &Token<'_>| format!("{}:{}: {}", file.path, token.line, token.text);
    rule(&tokens(&file.code)).iter().map(place).collect()
}

fn is_not_cli(path: &str) -> bool {
    !path.starts_with("crates/turnbuckle-cli/")
}

/// A child process needs `PATH` and a few more variables, which only the environment has. One file passes them on.
fn may_not_read_environment(path: &str) -> bool {
    const PASSES_ON: &str = "crates/turnbuckle-client/src/stdio/environment.rs";
    is_not_cli(path) && path != PASSES_ON
}

/// Tests that a crate offers to others, such as the suite of the stores, are tests too; and what each revision asks for is
/// the very subject of the checker.
fn may_not_know_dates(path: &str) -> bool {
    const PLACES: &[&str] = &[
        "crates/turnbuckle-check/",
        "/lifecycle/",
        "/lifecycle.rs",
        "/suite/",
        "/suite.rs",
        "/testing/",
        "/testing.rs",
    ];
    let protocol = ["revision/", "revision.rs", "method.rs", "meta.rs"]
        .iter()
        .any(|place| path.starts_with(&format!("crates/turnbuckle-protocol/src/{place}")));
    !protocol && !PLACES.iter().any(|place| path.contains(place))
}

fn printing<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    const MACROS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];
    pairs(tokens)
        .filter(|(name, next)| MACROS.contains(&name.text) && next.text == "!")
        .map(|(name, _)| name)
        .collect()
}

/// `env!` is read by the compiler and `.env(…)` speaks to a child: neither is meant.
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

/// Finds revisions by their type, and a version that is looked into instead of being passed on.
fn revisions<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    const LOOKS: &[&str] = &["starts_with", "parse", "cmp", "eq", "ne"];
    let mut found = dates(tokens);
    found.extend(words(tokens, &["Revision", "Era"]));
    for window in tokens.windows(4) {
        let [before, version, first, second] = [0, 1, 2, 3].map(|at| window[at]);
        let is_compared = matches!((first.text, second.text), ("=" | "!", "=") | ("<" | ">", _));
        let is_looked_into = first.text == "." && LOOKS.contains(&second.text);
        if version.text == "protocol_version"
            && (before.text == "match" || is_compared || is_looked_into)
        {
            found.push(version);
        }
    }
    found
}

/// Finds `feature =` in an attribute or a `cfg!` that does not stand on `mod` or `use`.
fn feature_inside_a_module<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let is_feature = |at: usize| {
        tokens[at].text == "feature"
            && tokens.get(at + 1).is_some_and(|next| next.text == "=")
            && at > 0
            && ["(", ","].contains(&tokens[at - 1].text)
    };
    (0..tokens.len())
        .filter(|&at| is_feature(at) && !stands_on_a_module(tokens, at))
        .map(|at| tokens[at])
        .collect()
}

fn stands_on_a_module(tokens: &[Token<'_>], at: usize) -> bool {
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

/// Returns the place after the group whose opening bracket stands at `open`.
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

    fn breaks(rule: Rule, code: &str) -> bool {
        !rule(&tokens(code)).is_empty()
    }

    #[test]
    fn a_feature_may_switch_a_module_or_an_import() {
        for code in [
            "#[cfg(feature = )] mod a;",
            "#[cfg(feature = )]\n#[path = ]\npub(crate) mod a;",
            "#[cfg(all(unix, feature = ))] pub use a::b;",
            "#[cfg(unix)] fn a() {}",
            "let feature = 1; call(a, b)",
        ] {
            assert!(!breaks(feature_inside_a_module, code), "{code}");
        }
    }

    #[test]
    fn a_feature_may_not_switch_less_than_a_module() {
        for code in [
            "#[cfg(feature = )] fn a() {}",
            "#[cfg(feature = )] pub struct A;",
            "enum A { #[cfg(feature = )] B }",
            "#[cfg_attr(feature = , derive(A))] mod a;",
            "if cfg!(feature = ) { mod a; }",
            "#[cfg(unix)] mod a; fn b() { cfg!(feature = ) }",
        ] {
            assert!(breaks(feature_inside_a_module, code), "{code}");
        }
    }

    #[test]
    fn a_revision_that_decides_something_is_found() {
        for code in [
            "if settings.protocol_version == a {",
            "if protocol_version != a {",
            "if protocol_version < a {",
            "match protocol_version { a => b }",
            "let modern = protocol_version.starts_with(a);",
            "fn a(of: Revision) {}",
            "let a = b::V2025_11_25;",
        ] {
            assert!(breaks(revisions, code), "{code}");
        }
        for code in [
            "discover(url, &settings.protocol_version).await",
            "settings.protocol_version = version.into()",
            "protocol_version: a.to_owned(),",
            "pub fn protocol_version(self) {}",
        ] {
            assert!(!breaks(revisions, code), "{code}");
        }
    }

    #[test]
    fn printing_is_found() {
        assert!(breaks(printing, "eprintln!()"));
        assert!(!breaks(printing, "print(a)"));
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
            assert!(breaks(environment, code), "{code}");
        }
        for code in ["env!()", "Command::new().env(a, b)", "use a; let env = 1;"] {
            assert!(!breaks(environment, code), "{code}");
        }
    }

    #[test]
    fn one_file_of_the_library_may_read_the_environment() {
        assert!(!may_not_read_environment(
            "crates/turnbuckle-client/src/stdio/environment.rs"
        ));
        assert!(may_not_read_environment(
            "crates/turnbuckle-client/src/stdio.rs"
        ));
        assert!(may_not_read_environment(
            "crates/turnbuckle-server/src/stdio/environment.rs"
        ));
    }

    #[test]
    fn dates_are_found() {
        assert!(breaks(dates, "if revision >= Revision::V2025_06_18 {"));
        assert!(breaks(dates, "use Revision::*; V2025_06_18"));
        assert!(breaks(dates, "revision == Revision::MODERN"));
        assert!(!breaks(dates, "Revision::ALL; V2"));
    }

    #[test]
    fn dates_have_their_places() {
        assert!(!may_not_know_dates(
            "crates/turnbuckle-protocol/src/revision/v2025_06_18.rs"
        ));
        assert!(!may_not_know_dates(
            "crates/turnbuckle-server/src/lifecycle/session.rs"
        ));
        assert!(!may_not_know_dates(
            "crates/turnbuckle-store/src/suite/sessions.rs"
        ));
        assert!(may_not_know_dates(
            "crates/turnbuckle-protocol/src/types/tool.rs"
        ));
        assert!(may_not_know_dates(
            "crates/turnbuckle-server/src/revision/mod.rs"
        ));
    }
}
