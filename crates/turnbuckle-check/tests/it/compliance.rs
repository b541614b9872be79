//! Generates the compliance checklist of the documentation from the catalog and from checks of our server and client.

use std::{env, fs, path::PathBuf};

use turnbuckle_check::{
    CheckOptions, ClientTarget, Report, catalog, check_client, check_server, checklist, rule::Role,
};

use crate::{clients, good};

const HEAD: &str = "# Compliance checklist

The rules of `turnbuckle check`, by area: each rule with its level per revision and the
[requirements](../spec/requirements.csv) that it covers; then the lines of the checklist, each with its rules or the reason why
it cannot be observed (`turnbuckle check --checklist` prints the same); then the requirements without a rule.
[Check a server or a client](check.md) shows how to run the checker.

This page is generated from the catalog and from checks of our own server and client. A test compares it; to update it:

```console
$ TURNBUCKLE_UPDATE=1 cargo nextest run -p turnbuckle-check compliance
```

";

#[tokio::test(start_paused = true)]
async fn compliance_page_is_up_to_date() {
    let page = page().await;
    assert_headings(&page);
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/compliance.md");
    if env::var_os("TURNBUCKLE_UPDATE").is_some() {
        fs::write(&file, &page).expect("the page is writable");
    }

    let written = fs::read_to_string(&file).unwrap_or_default();

    let differs = written
        .lines()
        .zip(page.lines())
        .find(|(is, should)| is != should);
    assert!(
        written == page,
        "docs/compliance.md is out of date: {differs:#?}\nupdate it: TURNBUCKLE_UPDATE=1 cargo nextest run -p turnbuckle-check compliance"
    );
}

async fn page() -> String {
    let rules: Vec<_> = catalog::all().collect();
    let reports = reports().await;
    let rule_tables = checklist::rules_markdown(&rules, &reports);
    let lines = checklist::lines_markdown(&checklist::lines(), &reports);
    let servers = checklist::uncovered_requirements(&rules, Role::Server);
    let clients = checklist::uncovered_requirements(&rules, Role::Client);
    let page = format!("{HEAD}{rule_tables}\n{lines}\n{servers}\n{clients}");
    page.lines().map(mark_quoted_ids).collect()
}

/// Retired words in published rule ids.
const RETIRED_WORDS: [&str; 2] = ["stranger", "beside"]; // quoted

/// Marks a line with such a rule id for the test of the vocabulary.
fn mark_quoted_ids(line: &str) -> String {
    let is_quoted = RETIRED_WORDS.iter().any(|word| line.contains(word));
    let mark = if is_quoted { " <!-- quoted -->" } else { "" };
    format!("{line}{mark}\n")
}

/// Checks that every heading starts a line, and that no line break is escaped.
fn assert_headings(page: &str) {
    let escaped = page.lines().find(|line| line.contains("\\n"));
    assert_eq!(escaped, None);
    for heading in [
        "## Rules for servers",
        "## Rules for clients",
        "## Checklist lines",
        "## Requirements without a rule: servers",
        "## Requirements without a rule: clients",
    ] {
        assert!(page.lines().any(|line| line == heading), "{heading}");
    }
}

async fn reports() -> Vec<Report> {
    let options = CheckOptions::default();
    let servers = [good::on_ndjson(), good::on_http()];
    let clients = [
        ClientTarget::on_ndjson("good", clients::good::on_ndjson),
        ClientTarget::on_http("good", clients::good::on_http),
    ];
    let mut reports = Vec::new();
    for (target, transport) in servers.iter().zip(["ndjson", "HTTP"]) {
        let report = check_server(target, &options).await;
        let report = report.expect("our server is reachable");
        reports.push(named(report, &format!("our server on {transport}")));
    }
    for (target, transport) in clients.iter().zip(["ndjson", "HTTP"]) {
        let report = check_client(target, &options).await;
        let report = report.expect("our client supports a revision");
        reports.push(named(report, &format!("our client on {transport}")));
    }
    reports
}

fn named(mut report: Report, name: &str) -> Report {
    report.target = name.to_owned();
    report
}

#[test]
fn the_rule_in_the_guide_for_contributors_is_a_rule_of_the_checker() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let guide = fs::read_to_string(root.join("../../CONTRIBUTING.md")).unwrap();
    let source = root.join("src/server_rules/features/completion.rs");
    let source = fs::read_to_string(source).unwrap();

    let (_, section) = guide.split_once("## Add a rule").unwrap();
    let (_, block) = section.split_once("```rust,ignore\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();

    let unindented = |text: &str| {
        let lines: Vec<_> = text.lines().map(str::trim_start).collect();
        lines.join("\n")
    };
    assert!(
        unindented(&source).contains(&unindented(block)),
        "copy the rule `completion.unsupported` to CONTRIBUTING.md"
    );
}
