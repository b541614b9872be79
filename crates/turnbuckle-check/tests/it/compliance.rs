//! The compliance checklist of the documentation is made from the catalogue and from what our own server and client get.

use std::{env, fs, path::PathBuf};

use turnbuckle_check::{
    CheckOptions, ClientTarget, Report, catalog, check_client, check_server, checklist, rule::Role,
};

use crate::{clients, good};

const HEAD: &str = "# The compliance checklist

What `turnbuckle check` looks at, by area: each rule with how much it matters in which revision of the specification, and the
requirements of [the ledger](../spec/requirements.csv) that it judges; then the lines of the checklist, each with its rules
or the reason why it cannot be seen from outside (`turnbuckle check --checklist` prints the same); then what no rule judges.
How to run it is told in [Checking a server or a client](check.md).

This page is made from the catalogue and from runs against our own server and client. A test compares; to make it anew:

```console
$ TURNBUCKLE_UPDATE=1 cargo nextest run -p turnbuckle-check compliance
```

";

#[tokio::test(start_paused = true)]
async fn the_checklist_is_true() {
    let page = page().await;
    assert_headings(&page);
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/compliance.md");
    if env::var_os("TURNBUCKLE_UPDATE").is_some() {
        fs::write(&file, &page).expect("the page can be written");
    }

    let written = fs::read_to_string(&file).unwrap_or_default();

    let differs = written
        .lines()
        .zip(page.lines())
        .find(|(is, should)| is != should);
    assert!(
        written == page,
        "docs/compliance.md is out of date: {differs:#?}\nmake it anew: TURNBUCKLE_UPDATE=1 cargo nextest run -p turnbuckle-check compliance"
    );
}

async fn page() -> String {
    let rules: Vec<_> = catalog::all().collect();
    let reports = reports().await;
    let rows = checklist::rules_markdown(&rules, &reports);
    let lines = checklist::lines_markdown(&checklist::lines(), &reports);
    let servers = checklist::uncovered_requirements(&rules, Role::Server);
    let clients = checklist::uncovered_requirements(&rules, Role::Client);
    format!("{HEAD}{rows}\n{lines}\n{servers}\n{clients}")
}

/// Every heading begins a line, and no line break is written out as two characters.
fn assert_headings(page: &str) {
    let escaped = page.lines().find(|line| line.contains("\\n"));
    assert_eq!(escaped, None);
    for heading in [
        "## Rules for servers",
        "## Rules for clients",
        "## The checklist, line by line",
        "## What no rule judges: servers",
        "## What no rule judges: clients",
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
    for (target, place) in servers.iter().zip(["lines", "HTTP"]) {
        let report = check_server(target, &options).await;
        let report = report.expect("our server is there");
        reports.push(named(report, &format!("our server on {place}")));
    }
    for (target, place) in clients.iter().zip(["lines", "HTTP"]) {
        let report = check_client(target, &options).await;
        let report = report.expect("our client speaks something");
        reports.push(named(report, &format!("our client on {place}")));
    }
    reports
}

fn named(mut report: Report, name: &str) -> Report {
    report.target = name.to_owned();
    report
}
