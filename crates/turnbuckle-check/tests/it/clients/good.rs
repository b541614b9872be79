//! The good client: our own client with all features, which passes all rules.

use std::{io, sync::Arc, time::Duration};

use serde_json::json;
use tokio::io::DuplexStream;
use turnbuckle_auth::client::OAuth;
use turnbuckle_check::{
    CheckOptions, ClientTarget, MockServerAddress, Report, check_client,
    report::{RuleOutcome, RuleStatus},
};
use turnbuckle_client::{
    Client, ClientBuilder, ElicitationAction, FormRequest, Roots, SamplingRequest, Target,
    UrlElicitationRequest, http::HttpTarget, ndjson::NdjsonClient,
};
use turnbuckle_protocol::{
    Revision,
    types::{
        CompleteParams, CompletionReference, ContentBlock, CreateMessageResult, LogLevel,
        SubscriptionFilter,
    },
};

use super::user::{Connect, TestUser};

/// Runs the client on ndjson.
pub(crate) async fn run_on_ndjson(stream: DuplexStream) {
    let (reader, writer) = tokio::io::split(stream);
    run(NdjsonClient::new(reader, writer).into()).await;
}

/// Runs the client on HTTP, with connections from a callback.
pub(crate) async fn run_on_http<F>(url: &str, address: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = io::Result<DuplexStream>> + Send + 'static,
{
    let address: Connect = Arc::new(move || Box::pin(address()));
    let user = TestUser(address.clone());
    let oauth = OAuth::new(url, Arc::new(user.clone()))
        .client_name("good")
        .user_agent(user);
    let http = HttpTarget::new(url)
        .connector(move || address())
        .authorization(oauth);
    run(http.into()).await;
}

pub(crate) async fn on_ndjson(address: MockServerAddress) {
    run_on_ndjson(address.connect().await.unwrap()).await;
}

pub(crate) async fn on_http(address: MockServerAddress) {
    let url = address.url().to_owned();
    run_on_http(&url, move || {
        let address = address.clone();
        async move { address.connect().await }
    })
    .await;
}

fn builder() -> ClientBuilder {
    Client::builder("good", "1.0")
        .roots(Roots::new(["file:///home/ada/project"]).unwrap())
        .on_sampling(|_: SamplingRequest| async {
            Ok(CreateMessageResult::new(
                "parrot",
                ContentBlock::text("Hello."),
            ))
        })
        .on_form_elicitation(
            |form: FormRequest| async move { form.accept(json!({ "name": "Ada" })) },
        )
        .on_url_elicitation(|_: UrlElicitationRequest| async { ElicitationAction::Decline })
}

/// Uses all features of a server. Errors are ignored: some scenarios return them on purpose.
async fn run(server: Target) {
    let Ok(client) = builder().connect(server).await else {
        return;
    };
    let has = client.server().capabilities.clone();
    if has.logging.is_some() {
        let _ = client.set_log_level(LogLevel::Info).await;
    }
    let mut tools = client.tools().all().await;
    if tools.is_err() {
        tools = client.tools().all().await;
    }
    for tool in tools.unwrap_or_default() {
        call(&client, &tool.name).await;
    }
    if has.resources.is_some() {
        let _ = client.resources().all().await;
        let _ = client.resource_templates().all().await;
        let _ = client.read_resource("note:///one").await;
    }
    if has.prompts.is_some() {
        let _ = client.prompts().all().await;
        let _ = client.get_prompt("greeting", [("name", "Ada")]).await;
        let _ = client.get_prompt("gr\u{fc}\u{df}e", [("", ""); 0]).await;
    }
    if has.completions.is_some() {
        let reference = CompletionReference::prompt("greeting");
        let _ = client
            .complete(CompleteParams::new(reference, "name", "A"))
            .await;
    }
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    drop(client.listen(filter).await);
    let _ = client.ping().await;
    client.close().await;
}

async fn call(client: &Client, tool: &str) {
    let arguments = match tool {
        "weather" => vec![
            json!({ "city": "Z\u{fc}rich", "days": 3, "exact": null }),
            json!({ "city": " padded ", "exact": true }),
        ],
        _ => vec![json!({})],
    };
    let response_timeout = match tool {
        "slow" => Duration::from_millis(200),
        _ => Duration::from_secs(5),
    };
    for arguments in arguments {
        let call = client.call_tool(tool, arguments).timeout(response_timeout);
        let _ = call.on_progress(|_| {}).await;
    }
}

/// Formats an outcome with the texts of its evidence.
pub(crate) fn brief(outcome: &RuleOutcome) -> String {
    match outcome {
        RuleOutcome::Passed(_) => "passed".to_owned(),
        RuleOutcome::Violated {
            observed, evidence, ..
        } => {
            let texts: Vec<_> = evidence.iter().map(|shown| shown.text.as_str()).collect();
            format!("violated: {observed}\n    {}", texts.join("\n    "))
        }
        RuleOutcome::NotApplicable(why) | RuleOutcome::NotTested(why) => why.clone(),
    }
}

fn assert_good(report: &Report) {
    assert_eq!(report.runs.len(), Revision::ALL.len());
    for run in &report.runs {
        assert_eq!(run.unsupported, None, "{}", run.revision);
        assert!(!run.results.is_empty(), "{}", run.revision);
    }
    let bad: Vec<_> = report
        .results()
        .filter(|(_, result)| {
            matches!(
                result.status(),
                RuleStatus::Fail | RuleStatus::Warn | RuleStatus::Advice | RuleStatus::NotTested
            )
        })
        .map(|(run, result)| {
            format!(
                "{} {} {}",
                run.revision,
                result.rule.id,
                brief(&result.outcome)
            )
        })
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn passes_all_rules_on_ndjson() {
    let target = ClientTarget::on_ndjson("good", on_ndjson);
    assert_good(
        &check_client(&target, &CheckOptions::default())
            .await
            .unwrap(),
    );
}

#[tokio::test(start_paused = true)]
async fn passes_all_rules_on_http() {
    let target = ClientTarget::on_http("good", on_http);
    assert_good(
        &check_client(&target, &CheckOptions::default())
            .await
            .unwrap(),
    );
}
