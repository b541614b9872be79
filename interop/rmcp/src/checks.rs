//! The expected behavior of the server, check by check.

mod debug;

use std::{collections::BTreeSet, error::Error, time::Duration};

use rmcp::{
    RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequestParams,
        LoggingLevel, ReadResourceRequestParams, RequestMetaObject, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{PeerRequestOptions, RunningService},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::handlers::{ClientHandlers, to_json};

pub type Outcome = Result<(), Box<dyn Error>>;

const ABOUT: &str = "Notes, kept in memory.";

pub struct Checks {
    pub client: RunningService<RoleClient, ClientHandlers>,
    pub revision: String,
    pub mark: String,
}

impl Checks {
    pub async fn run(&self, name: &str) -> Outcome {
        match name {
            "version" => equal(self.info()["protocolVersion"].take(), &*self.revision),
            "server_info" => equal(self.info()["serverInfo"]["name"].take(), "notes"),
            "tools" => self.tools().await,
            "resources" => self.resources().await,
            "templates" => self.templates().await,
            "prompts" => self.prompts().await,
            "text" => equal(
                text(&self.call("tidy", json!({})).await?),
                "All is in order.",
            ),
            "content" => self.content().await,
            "structured" => self.structured().await,
            "list_result" => self.list_result().await,
            "missing_argument" => self.refused(json!({}), "text").await,
            "invalid_arguments" => self.refused(json!({ "text": 7 }), "text").await,
            "tool_error" => {
                self.refused(json!({ "text": " " }), "must not be empty")
                    .await
            }
            "unknown_tool" => fails(self.call("no_such_tool", json!({})).await, -32602),
            "progress" => self.progress().await,
            "logging" => self.logging().await,
            "read_text" => self.read_text().await,
            "read_bytes" => self.read_bytes().await,
            "read_template" => self.read_template().await,
            "missing_resource" => self.missing_resource().await,
            "prompt" => self.prompt().await,
            "unknown_prompt" => fails(self.get_prompt("no_such_prompt", json!({})).await, -32602),
            "completion" => self.completion().await,
            "elicitation" => self.elicitation().await,
            "declined" => self.declined().await,
            "url_elicitation" => self.url_elicitation().await,
            "sampling" => holds(
                &text(&self.call("summarize", json!({})).await?),
                "all is well",
            ),
            "roots" => equal(
                text(&self.call("places", json!({})).await?),
                "file:///srv/interop",
            ),
            "cancellation" => self.cancellation().await,
            "timeout" => self.timeout().await,
            "subscription" => self.subscription().await,
            "together" => self.together().await,
            "ping" => self.ping().await,
            name if name.starts_with("debug_") => self.debug(name).await,
            _ => Err("there is no such check".into()),
        }
    }

    fn modern(&self) -> bool {
        &*self.revision >= "2026-07-28"
    }

    fn info(&self) -> Value {
        self.client
            .peer_info()
            .map(|info| to_json(&*info))
            .unwrap_or_default()
    }

    async fn tools(&self) -> Outcome {
        let tools = to_json(self.client.list_all_tools().await?);
        let expected = [
            "add",
            "find",
            "count_words",
            "remind",
            "tidy",
            "card",
            "sign",
            "connect",
            "summarize",
            "places",
        ];
        equal(
            set(&tools, "name"),
            BTreeSet::from(expected.map(str::to_owned)),
        )
    }

    async fn resources(&self) -> Outcome {
        let resources = to_json(self.client.list_all_resources().await?);
        let expected = ["notes://about", "notes://all", "notes://pixel"];
        equal(
            set(&resources, "uri"),
            BTreeSet::from(expected.map(str::to_owned)),
        )
    }

    async fn templates(&self) -> Outcome {
        let templates = to_json(self.client.list_all_resource_templates().await?);
        equal(templates[0]["uriTemplate"].clone(), "notes://note/{number}")
    }

    async fn prompts(&self) -> Outcome {
        let prompts = to_json(self.client.list_all_prompts().await?);
        equal(set(&prompts, "name"), BTreeSet::from(["review".to_owned()]))
    }

    async fn content(&self) -> Outcome {
        let result = self.call("card", json!({})).await?;
        let kinds: Vec<_> = (0..3)
            .map(|at| result["content"][at]["type"].clone())
            .collect();
        equal(Value::from(kinds), json!(["text", "image", "resource"]))?;
        equal(result["content"][2]["resource"]["text"].clone(), ABOUT)
    }

    async fn structured(&self) -> Outcome {
        let result = self
            .call(
                "add",
                json!({ "text": format!("structured {}", self.mark) }),
            )
            .await?;
        let value: Value = serde_json::from_str(&text(&result))?;
        equal(result["structuredContent"].clone(), value.clone())?;
        equal(
            value["uri"].clone(),
            format!("notes://note/{}", value["count"]),
        )
    }

    /// A result that is an array, which revisions before the newest cannot hold as structured content.
    async fn list_result(&self) -> Outcome {
        let note = format!("structured {}", self.mark);
        let found = self.call("find", json!({ "text": note })).await?;
        holds(&found.to_string(), &note)
    }

    async fn refused(&self, arguments: Value, why: &str) -> Outcome {
        let result = self.call("add", arguments).await?;
        equal(result["isError"].clone(), true)?;
        holds(&text(&result), why)
    }

    async fn progress(&self) -> Outcome {
        self.handlers().take("progress");
        self.call("tidy", json!({})).await?;
        let steps = self.handlers().take("progress");
        let steps: Vec<_> = steps
            .iter()
            .map(|step| json!([step["progress"], step["total"]]))
            .collect();
        equal(
            Value::from(steps),
            json!([[1.0, 3.0], [2.0, 3.0], [3.0, 3.0]]),
        )
    }

    async fn logging(&self) -> Outcome {
        self.handlers().take("message");
        let mut params = params("tidy", json!({}));
        if self.modern() {
            let mut meta = RequestMetaObject::default();
            meta.set_log_level(LoggingLevel::Info);
            params.meta = Some(meta);
        } else {
            self.client
                .set_level(SetLevelRequestParams::new(LoggingLevel::Info))
                .await?;
        }
        self.client.call_tool(params).await?;
        let message = self.first("message").await?;
        equal(
            json!([message["level"], message["data"]]),
            json!(["info", "tidying up"]),
        )
    }

    async fn read_text(&self) -> Outcome {
        let result = self.read("notes://about").await?;
        equal(result["contents"][0]["text"].clone(), ABOUT)
    }

    async fn read_bytes(&self) -> Outcome {
        let result = self.read("notes://pixel").await?;
        equal(result["contents"][0]["mimeType"].clone(), "image/png")?;
        holds(
            result["contents"][0]["blob"].as_str().unwrap_or_default(),
            "iVBORw0KGgo",
        )
    }

    async fn read_template(&self) -> Outcome {
        let note = format!("template {}", self.mark);
        let added: Value =
            serde_json::from_str(&text(&self.call("add", json!({ "text": note })).await?))?;
        let result = self.read(added["uri"].as_str().ok_or("no URI")?).await?;
        equal(result["contents"][0]["text"].clone(), note)
    }

    async fn missing_resource(&self) -> Outcome {
        let missing = if self.modern() { -32602 } else { -32002 };
        fails(self.read("notes://nowhere").await, missing)?;
        fails(self.read("notes://note/999999").await, missing)
    }

    async fn prompt(&self) -> Outcome {
        let result = self
            .get_prompt("review", json!({ "tone": "frank" }))
            .await?;
        equal(result["messages"][0]["content"]["type"].clone(), "resource")?;
        equal(
            result["messages"][1]["content"]["text"].clone(),
            "Go through these notes in a frank tone.",
        )
    }

    async fn completion(&self) -> Outcome {
        let mut tones = self
            .client
            .complete_prompt_simple("review", "tone", "fr")
            .await?;
        tones.sort();
        equal(tones, vec!["frank".to_owned(), "friendly".to_owned()])?;
        let numbers = self
            .client
            .complete_resource_simple("notes://note/{number}", "number", "1")
            .await?;
        equal(numbers.contains(&"1".to_owned()), true)
    }

    async fn elicitation(&self) -> Outcome {
        equal(text(&self.call("sign", json!({})).await?), "Signed by Ada.")?;
        equal(
            self.handlers().last_request()["message"].clone(),
            "Who signs this note?",
        )
    }

    async fn declined(&self) -> Outcome {
        self.handlers().decline(true);
        let result = self.call("sign", json!({})).await;
        self.handlers().decline(false);
        equal(text(&result?), "The user did not want to sign.")
    }

    async fn url_elicitation(&self) -> Outcome {
        equal(
            text(&self.call("connect", json!({})).await?),
            "The user went to the page.",
        )?;
        equal(
            self.handlers().last_request()["url"].clone(),
            "https://example.com/login",
        )
    }

    /// The tool would leave a note after the time; it must not, once its call is cancelled.
    async fn cancellation(&self) -> Outcome {
        let note = format!("cancelled {}", self.mark);
        let request = request("remind", json!({ "text": note, "seconds": 1.5 }));
        let options = PeerRequestOptions::no_options();
        let handle = self
            .client
            .send_cancellable_request(request, options)
            .await?;
        sleep(Duration::from_millis(200)).await;
        handle.cancel(Some("tried".to_owned())).await?;
        sleep(Duration::from_millis(1600)).await;
        let found = self
            .call("find", json!({ "text": note }))
            .await?
            .to_string();
        if found.contains(&note) {
            Err(format!("the tool went on: {found}").into())
        } else {
            Ok(())
        }
    }

    async fn timeout(&self) -> Outcome {
        let started = Instant::now();
        let request = request("remind", json!({ "text": "late", "seconds": 1.5 }));
        let options = PeerRequestOptions::with_timeout(Duration::from_millis(200));
        let handle = self
            .client
            .send_cancellable_request(request, options)
            .await?;
        let given_up = matches!(
            handle.await_response().await,
            Err(ServiceError::Timeout { .. })
        );
        equal(
            given_up && started.elapsed() < Duration::from_millis(1400),
            true,
        )?;
        sleep(Duration::from_millis(1500)).await;
        equal(
            text(&self.call("tidy", json!({})).await?),
            "All is in order.",
        )
    }

    async fn subscription(&self) -> Outcome {
        let (uri, note) = (
            "notes://all",
            json!({ "text": format!("update {}", self.mark) }),
        );
        if self.modern() {
            let filter = SubscriptionFilter::builder()
                .resource_subscription(uri)
                .build();
            let mut subscription = self.client.listen(filter).await?;
            self.call("add", note).await?;
            let update = to_json(subscription.next().await?);
            equal(update["params"]["uri"].clone(), uri)?;
            return Ok(subscription.cancel().await?);
        }
        self.handlers().take("updated");
        self.client
            .subscribe(SubscribeRequestParams::new(uri))
            .await?;
        self.call("add", note).await?;
        equal(self.first("updated").await?["uri"].clone(), uri)?;
        Ok(self
            .client
            .unsubscribe(UnsubscribeRequestParams::new(uri))
            .await?)
    }

    /// A slow call does not delay others on the same connection.
    async fn together(&self) -> Outcome {
        let note = json!({ "text": format!("slow {}", self.mark), "seconds": 1 });
        let options = PeerRequestOptions::no_options();
        let handle = self
            .client
            .send_cancellable_request(request("remind", note), options)
            .await?;
        let started = Instant::now();
        let quick = || self.call("tidy", json!({}));
        tokio::try_join!(
            quick(),
            quick(),
            quick(),
            quick(),
            quick(),
            quick(),
            quick(),
            quick()
        )?;
        equal(started.elapsed() < Duration::from_millis(950), true)?;
        handle.await_response().await?;
        Ok(())
    }

    async fn ping(&self) -> Outcome {
        let ping = ClientRequest::PingRequest(Default::default());
        self.client.send_request(ping).await?;
        Ok(())
    }

    fn handlers(&self) -> &ClientHandlers {
        self.client.service()
    }

    async fn first(&self, kind: &str) -> Result<Value, Box<dyn Error>> {
        for _ in 0..100 {
            if let Some(notification) = self.handlers().take(kind).into_iter().next() {
                return Ok(notification);
            }
            sleep(Duration::from_millis(50)).await;
        }
        Err("nothing came within 5 s".into())
    }

    async fn call(&self, name: &'static str, arguments: Value) -> Result<Value, ServiceError> {
        self.client
            .call_tool(params(name, arguments))
            .await
            .map(to_json)
    }

    async fn read(&self, uri: &str) -> Result<Value, ServiceError> {
        self.client
            .read_resource(ReadResourceRequestParams::new(uri))
            .await
            .map(to_json)
    }

    async fn get_prompt(&self, name: &str, arguments: Value) -> Result<Value, ServiceError> {
        let mut params = GetPromptRequestParams::new(name);
        params.arguments = arguments.as_object().cloned();
        self.client.get_prompt(params).await.map(to_json)
    }
}

fn request(name: &'static str, arguments: Value) -> ClientRequest {
    ClientRequest::CallToolRequest(CallToolRequest::new(params(name, arguments)))
}

fn params(name: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name)
        .with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

fn set(items: &Value, member: &str) -> BTreeSet<String> {
    let items = items.as_array().into_iter().flatten();
    items
        .filter_map(|item| item[member].as_str().map(str::to_owned))
        .collect()
}

fn text(result: &Value) -> String {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn equal<A: PartialEq<B> + std::fmt::Debug, B: std::fmt::Debug>(actual: A, expected: B) -> Outcome {
    if actual == expected {
        Ok(())
    } else {
        Err(format!("expected {expected:?}, got {actual:?}").into())
    }
}

fn holds(whole: &str, part: &str) -> Outcome {
    if whole.contains(part) {
        Ok(())
    } else {
        Err(format!("expected {part:?} in {whole:?}").into())
    }
}

fn fails(result: Result<Value, ServiceError>, code: i32) -> Outcome {
    match result {
        Err(ServiceError::McpError(error)) => equal(error.code.0, code),
        Err(error) => Err(error.into()),
        Ok(result) => Err(format!("expected error {code}, got {result}").into()),
    }
}
