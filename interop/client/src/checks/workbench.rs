//! Our test server: the same tools on every package.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use turnbuckle_client::CallError;
use turnbuckle_protocol::types::SubscriptionFilter;

use super::{Checks, Outcome, ServerFacts, equal, holds, not_there, unknown, update};

pub(super) const FACTS: ServerFacts = ServerFacts {
    name: "workbench",
    tools: &[
        "echo",
        "add",
        "count",
        "wait",
        "given_up",
        "summarize",
        "places",
    ],
    needs_arguments: "echo",
};

const GREETING: &str = "workbench://greeting";

pub(super) async fn run(checks: &Checks, check: &str) -> Outcome {
    match check {
        "resources" => resources(checks).await,
        "templates" => templates(checks).await,
        "prompts" => prompts(checks).await,
        "text" => equal(
            checks
                .said("echo", json!({ "text": "Grüße, 世界" }))
                .await?,
            "Grüße, 世界".to_owned(),
        ),
        "structured" => structured(checks).await,
        "progress" => progress(checks).await,
        "logging" => logging(checks).await,
        "read_text" => read(checks, GREETING, "Hello.").await,
        "read_template" => read(checks, "workbench://number/7", "7").await,
        "missing_resource" => not_there(checks.client.read_resource("workbench://nowhere").await),
        "prompt" => prompt(checks).await,
        "completion" => completion(checks).await,
        "elicitation" => elicitation(checks).await,
        "declined" => equal(
            checks.said_when_declined("ask").await?,
            "The answer was decline.".to_owned(),
        ),
        "url_elicitation" => url_elicitation(checks).await,
        "sampling" => sampling(checks).await,
        "roots" => equal(
            checks.said("places", json!({})).await?,
            checks.roots.list()[0].uri.clone(),
        ),
        "cancellation" => cancellation(checks).await,
        "timeout" => timed_out(checks).await,
        "subscription" => subscription(checks).await,
        "together" => together(checks).await,
        _ => unknown(check),
    }
}

async fn resources(checks: &Checks) -> Outcome {
    let resources = checks.client.resources().all().await?;
    let uris: Vec<_> = resources.iter().map(|resource| &*resource.uri).collect();
    equal(uris, vec![GREETING])
}

async fn templates(checks: &Checks) -> Outcome {
    let templates = checks.client.resource_templates().all().await?;
    let templates: Vec<_> = templates.iter().map(|found| &*found.uri_template).collect();
    equal(templates, vec!["workbench://number/{n}"])
}

async fn prompts(checks: &Checks) -> Outcome {
    let prompts = checks.client.prompts().all().await?;
    let names: Vec<_> = prompts.iter().map(|prompt| &*prompt.name).collect();
    equal(names, vec!["greet"])
}

async fn structured(checks: &Checks) -> Outcome {
    let result = checks.call("add", json!({ "a": 1, "b": 2.5 })).await?;
    equal(result.structured::<Value>()?, json!({ "sum": 3.5 }))
}

async fn progress(checks: &Checks) -> Outcome {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&steps);
    let call = checks.client.call_tool("count", json!({ "to": 3 }));
    call.on_progress(move |step| {
        let mut steps = received.lock().expect("no thread panics while holding it");
        steps.push((step.progress, step.total));
    })
    .await?;
    let steps = steps.lock().expect("no thread panics while holding it");
    let three = Some(3.0);
    equal(&*steps, &vec![(1.0, three), (2.0, three), (3.0, three)])
}

async fn logging(checks: &Checks) -> Outcome {
    checks.log_from_info_on().await?;
    checks.said("log", json!({})).await?;
    checks.logs("at work").await
}

async fn read(checks: &Checks, uri: &str, expected: &str) -> Outcome {
    let result = checks.client.read_resource(uri).await?;
    let contents = serde_json::to_value(&result.contents)?;
    equal(contents[0]["text"].as_str(), Some(expected))
}

async fn prompt(checks: &Checks) -> Outcome {
    let arguments = [("name", "Ada"), ("tone", "warm")];
    let result = checks.client.get_prompt("greet", arguments).await?;
    let messages = serde_json::to_string(&result.messages)?;
    holds(&messages, "Greet Ada in a warm tone.")
}

async fn completion(checks: &Checks) -> Outcome {
    let tones = checks.completions("greet", "tone", "wa").await?;
    equal(tones, vec!["warm".to_owned(), "wary".to_owned()])
}

/// The field that is left empty gets its default.
async fn elicitation(checks: &Checks) -> Outcome {
    let said = checks.said("ask", json!({})).await?;
    equal(&*said, "Good day, Ada.")?;
    equal(&*checks.handlers.take_request(), "Who is there?")
}

async fn url_elicitation(checks: &Checks) -> Outcome {
    let said = checks.said("visit", json!({})).await?;
    equal(&*said, "The answer was accept.")?;
    equal(
        &*checks.handlers.take_request(),
        "https://example.com/login",
    )
}

async fn sampling(checks: &Checks) -> Outcome {
    let said = checks.said("summarize", json!({})).await?;
    equal(&*said, "all is well")?;
    holds(&checks.handlers.take_request(), "Sum up.")
}

/// The server cancels a call that the client drops.
async fn cancellation(checks: &Checks) -> Outcome {
    let before = given_up(checks).await?;
    let call = checks.client.call_tool("wait", json!({ "seconds": 10 }));
    let dropped = timeout(Duration::from_millis(300), call.into_future()).await;
    equal(dropped.is_err(), true)?;
    one_more(checks, before).await
}

async fn timed_out(checks: &Checks) -> Outcome {
    let before = given_up(checks).await?;
    let call = checks.client.call_tool("wait", json!({ "seconds": 10 }));
    match call.timeout(Duration::from_millis(300)).await {
        Err(CallError::TimedOut { .. }) => one_more(checks, before).await,
        other => Err(format!("expected to be given up, got {other:?}").into()),
    }
}

async fn subscription(checks: &Checks) -> Outcome {
    let filter = SubscriptionFilter::new().resource_subscriptions([GREETING.to_owned()]);
    let mut changes = checks.client.listen(filter).await?;
    checks.said("touch", json!({})).await?;
    update(&mut changes, GREETING).await
}

/// A slow call does not delay others on the same connection.
async fn together(checks: &Checks) -> Outcome {
    let slow = checks.client.call_tool("wait", json!({ "seconds": 2 }));
    let slow = tokio::spawn(slow.into_future());
    sleep(Duration::from_millis(50)).await;
    let quick = (0..8).map(|number| {
        let text = number.to_string();
        let call = checks.client.call_tool("echo", json!({ "text": text }));
        tokio::spawn(call.into_future())
    });
    for (number, quick) in quick.collect::<Vec<_>>().into_iter().enumerate() {
        equal(quick.await??.text(), number.to_string())?;
    }
    equal(slow.is_finished(), false)?;
    equal(slow.await??.text(), "waited".to_owned())
}

async fn given_up(checks: &Checks) -> Result<usize, Box<dyn std::error::Error>> {
    Ok(checks.said("given_up", json!({})).await?.parse()?)
}

async fn one_more(checks: &Checks, before: usize) -> Outcome {
    for _ in 0..60 {
        if given_up(checks).await? == before + 1 {
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
    Err("the server went on for 3 s".into())
}
