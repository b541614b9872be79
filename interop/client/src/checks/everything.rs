//! The reference server with all features. It supports only the legacy era.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::sleep;
use turnbuckle_client::{Call, CallError, ToolOutput};
use turnbuckle_protocol::types::SubscriptionFilter;

use super::{Checks, Outcome, ServerFacts, equal, holds, not_there, unknown, update};

pub(super) const FACTS: ServerFacts = ServerFacts {
    name: "mcp-servers/everything",
    tools: &[
        "echo",
        "get-sum",
        "get-structured-content",
        "get-tiny-image",
        "trigger-long-running-operation",
    ],
    needs_arguments: "get-sum",
};

pub(super) async fn run(checks: &Checks, check: &str) -> Outcome {
    match check {
        "resources" => equal(checks.client.resources().all().await?.is_empty(), false),
        "templates" => templates(checks).await,
        "prompts" => prompts(checks).await,
        "text" => equal(
            checks.said("echo", json!({ "message": "hello" })).await?,
            "Echo: hello".to_owned(),
        ),
        "structured" => structured(checks).await,
        "progress" => progress(checks).await,
        "read_text" => read_text(checks).await,
        "read_template" => read_template(checks).await,
        "missing_resource" => not_there(checks.client.read_resource("demo://nowhere").await),
        "prompt" => prompt(checks).await,
        "completion" => equal(
            checks
                .completions("completable-prompt", "department", "S")
                .await?,
            vec!["Sales".to_owned(), "Support".to_owned()],
        ),
        "elicitation" => elicitation(checks).await,
        "declined" => holds(
            &checks
                .said_when_declined("trigger-elicitation-request")
                .await?,
            "User declined",
        ),
        "url_elicitation" => url_elicitation(checks).await,
        "sampling" => sampling(checks).await,
        "roots" => holds(
            &checks.said("get-roots-list", json!({})).await?,
            &checks.roots.list()[0].uri,
        ),
        "timeout" => timed_out(checks).await,
        "subscription" => subscription(checks).await,
        "together" => together(checks).await,
        "logging" => logging(checks).await,
        _ => unknown(check),
    }
}

async fn templates(checks: &Checks) -> Outcome {
    let templates = checks.client.resource_templates().all().await?;
    let templates = serde_json::to_string(&templates)?;
    holds(&templates, "demo://resource/dynamic/text/{resourceId}")
}

async fn prompts(checks: &Checks) -> Outcome {
    let prompts = checks.client.prompts().all().await?;
    holds(&serde_json::to_string(&prompts)?, "completable-prompt")
}

async fn structured(checks: &Checks) -> Outcome {
    let arguments = json!({ "location": "Chicago" });
    let result = checks.call("get-structured-content", arguments).await?;
    let structured = result.structured::<Value>()?;
    equal(structured["temperature"].clone(), json!(36))
}

async fn progress(checks: &Checks) -> Outcome {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&steps);
    let call = long_running(checks, 0.3);
    call.on_progress(move |step| {
        let mut steps = received.lock().expect("no thread panics while holding it");
        steps.push(step.progress);
    })
    .await?;
    let steps = steps.lock().expect("no thread panics while holding it");
    equal(&*steps, &vec![1.0, 2.0, 3.0])
}

async fn read_text(checks: &Checks) -> Outcome {
    let resources = checks.client.resources().all().await?;
    let first = resources.first().ok_or("there is none")?;
    let result = checks.client.read_resource(&first.uri).await?;
    let contents = serde_json::to_value(&result.contents)?;
    equal(contents[0]["uri"].as_str(), Some(first.uri.as_str()))?;
    equal(contents[0]["text"].is_string(), true)
}

async fn read_template(checks: &Checks) -> Outcome {
    let uri = "demo://resource/dynamic/text/7";
    let result = checks.client.read_resource(uri).await?;
    holds(&serde_json::to_string(&result.contents)?, "Resource 7")
}

async fn prompt(checks: &Checks) -> Outcome {
    let arguments = [("department", "Sales"), ("name", "Eve")];
    let result = checks
        .client
        .get_prompt("completable-prompt", arguments)
        .await?;
    let messages = serde_json::to_string(&result.messages)?;
    holds(
        &messages,
        "Please promote Eve to the head of the Sales team.",
    )
}

/// Thirteen kinds of fields; all but one get their default.
async fn elicitation(checks: &Checks) -> Outcome {
    let said = checks
        .said("trigger-elicitation-request", json!({}))
        .await?;
    for part in [
        "- Name: Ada",
        "- Favorite Integer: 42",
        "\"titledSingleSelectEnum\": \"hero-1\"",
    ] {
        holds(&said, part)?;
    }
    Ok(())
}

async fn url_elicitation(checks: &Checks) -> Outcome {
    let url = "https://example.com/login";
    let said = checks.said("trigger-url-elicitation", json!({ "url": url }));
    holds(&said.await?, "User completed the URL elicitation flow")?;
    equal(&*checks.handlers.take_request(), url)
}

async fn sampling(checks: &Checks) -> Outcome {
    let arguments = json!({ "prompt": "Sum up." });
    let said = checks.said("trigger-sampling-request", arguments).await?;
    holds(&said, "all is well")?;
    holds(&checks.handlers.take_request(), "Sum up.")
}

/// This server continues a cancelled call; the connection must still work.
async fn timed_out(checks: &Checks) -> Outcome {
    let call = long_running(checks, 1.0);
    match call.timeout(Duration::from_millis(200)).await {
        Err(CallError::TimedOut { .. }) => {}
        other => return Err(format!("expected to be given up, got {other:?}").into()),
    }
    sleep(Duration::from_millis(1200)).await;
    let said = checks.said("echo", json!({ "message": "still" })).await?;
    equal(&*said, "Echo: still")
}

/// A slow call does not delay others on the same connection.
async fn together(checks: &Checks) -> Outcome {
    let slow = tokio::spawn(long_running(checks, 2.0).into_future());
    for number in 0..8 {
        let said = checks.said("echo", json!({ "message": number.to_string() }));
        equal(said.await?, format!("Echo: {number}"))?;
    }
    equal(slow.is_finished(), false)?;
    holds(&slow.await??.text(), "completed")
}

fn long_running(checks: &Checks, seconds: f64) -> Call<ToolOutput> {
    let arguments = json!({ "duration": seconds, "steps": 3 });
    let tool = "trigger-long-running-operation";
    checks.client.call_tool(tool, arguments)
}

async fn subscription(checks: &Checks) -> Outcome {
    let uri = "demo://resource/dynamic/text/2";
    let filter = SubscriptionFilter::new().resource_subscriptions([uri.to_owned()]);
    let mut changes = checks.client.listen(filter).await?;
    checks.said("toggle-subscriber-updates", json!({})).await?;
    update(&mut changes, uri).await?;
    checks.said("toggle-subscriber-updates", json!({})).await?;
    Ok(())
}

async fn logging(checks: &Checks) -> Outcome {
    checks.log_from_info_on().await?;
    // It sends this on every subscription.
    checks
        .client
        .subscribe("demo://resource/dynamic/text/1")
        .await?;
    checks.logs("Subscribe").await
}
