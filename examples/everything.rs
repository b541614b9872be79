//! Every feature once: a server for notes.
//!
//! Tools, resources and prompts with all their options; progress and log messages; requests to the user and to the model;
//! subscriptions, completion, icons, cache hints, pages.
//!
//! ```console
//! $ cargo example everything                              # on stdio
//! $ cargo example everything -- --listen 127.0.0.1:8080   # on HTTP; --old-transport adds HTTP+SSE
//! $ cargo example everything -- --check                   # calls itself and prints the responses
//! ```

#[path = "checks/everything.rs"]
mod check;

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::sleep};
use turnbuckle::{
    CacheHint, CompletionRequest, Context, Elicitation, ElicitationOutcome, Messages, Prompt,
    RequestError, Resource, ResourceTemplate, SamplingBuilder, Server, Tool, ToolError, ToolResult,
    http::{Http, HttpSse},
    stdio, types,
};

const PIXEL: &[u8] = include_bytes!("pixel.png");

fn server() -> Server {
    let notes = Notes::default();
    let server = Server::new("notes", env!("CARGO_PKG_VERSION"))
        .title("Notes")
        .description("Keeps notes in memory")
        .website("https://example.com/notes")
        .icon(types::Icon::new("https://example.com/notes.svg").mime_type("image/svg+xml"))
        .instructions("Add notes with `add`; read them as resources.")
        .page_size(5)
        .cache_lists(CacheHint::public(Duration::from_secs(60)));
    let server = with_tools(server, &notes);
    let server = with_questions(server, &notes);
    let server = with_resources(server, &notes);
    with_prompts(server, &notes)
}

/// The notes, which all handlers share. Clones have the same notes.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn all(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn push(&self, text: String) -> usize {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(text);
        notes.len()
    }
}

// ------------------------------------------------------------------------------------------------ tools

fn with_tools(server: Server, notes: &Notes) -> Server {
    let (adding, finding, counting, reminding) =
        (notes.clone(), notes.clone(), notes.clone(), notes.clone());
    let schema = json!({
        "type": "object",
        "properties": { "text": { "type": "string", "minLength": 1 } },
        "required": ["text"]
    });
    server
        .tool(
            // The schemas of arguments and result come from their types.
            Tool::new("add", move |args: Add, cx: Context| {
                add(adding.clone(), args, cx)
            })
            .title("Add a note")
            .description("Adds a note")
            .icon(types::Icon::new("https://example.com/add.svg"))
            .destructive(false)
            .open_world(false),
        )
        .tool(
            // A custom schema. Arguments are not checked against it unless the server validates input.
            Tool::raw("find", schema, move |args: Value| {
                find(finding.clone(), args)
            })
            .description("Finds notes that contain a text")
            .read_only(),
        )
        .tool(
            // Long computations run on the pool of blocking threads.
            Tool::blocking("count_words", move || count_words(&counting))
                .description("Counts the words of all notes")
                .read_only()
                .idempotent(),
        )
        .tool(
            // If the client cancels the call, the handler is dropped and adds no note.
            Tool::new("remind", move |args: Remind| {
                remind(reminding.clone(), args)
            })
            .description("Adds a note after a while"),
        )
        .tool(Tool::new("tidy", tidy).description("Takes a while, and tells how far it has come"))
        .tool(Tool::new("card", card).description("Shows what content can be"))
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The text of the note.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Added {
    /// The URI of the note.
    uri: String,
    /// The number of notes.
    count: usize,
}

async fn add(notes: Notes, args: Add, cx: Context) -> Result<Added, ToolError> {
    if args.text.trim().is_empty() {
        return Err(ToolError::new("`text` must not be empty")); // the model gets this message and can correct the call
    }
    let count = notes.push(args.text);
    cx.resource_updated("notes://all"); // notifies subscribed clients
    Ok(Added {
        uri: format!("notes://note/{count}"),
        count,
    })
}

async fn find(notes: Notes, args: Value) -> Result<Vec<String>, ToolError> {
    let Some(text) = args["text"].as_str() else {
        return Err(ToolError::new("`text` must be a string"));
    };
    Ok(notes
        .all()
        .into_iter()
        .filter(|note| note.contains(text))
        .collect())
}

fn count_words(notes: &Notes) -> Result<usize, ToolError> {
    Ok(notes
        .all()
        .iter()
        .map(|note| note.split_whitespace().count())
        .sum())
}

#[derive(Deserialize, JsonSchema)]
struct Remind {
    /// The text of the note.
    text: String,
    /// The seconds to wait, at most 60.
    seconds: f64,
}

async fn remind(notes: Notes, args: Remind) -> Result<String, ToolError> {
    sleep(Duration::try_from_secs_f64(args.seconds.min(60.0))?).await;
    let count = notes.push(args.text);
    Ok(format!("This is note {count}."))
}

async fn tidy(cx: Context) -> Result<String, ToolError> {
    cx.log(types::LogLevel::Info, "tidying up").await;
    for step in 1..=3 {
        cx.progress_message(step, Some(3.0), format!("shelf {step}"))
            .await;
        sleep(Duration::from_millis(20)).await;
    }
    Ok("All is in order.".to_owned())
}

async fn card() -> Result<ToolResult, ToolError> {
    let about = types::ResourceContents::text("notes://about", "Notes, kept in memory.");
    Ok(ToolResult::text("A dot and a text.")
        .image("iVBORw0KGgo=", "image/png")
        .block(types::ContentBlock::resource(about)))
}

// ------------------------------------------------------------------------------------------- client requests

fn with_questions(server: Server, notes: &Notes) -> Server {
    let (signing, summing) = (notes.clone(), notes.clone());
    server
        .tool(
            Tool::new("sign", move |cx: Context| sign(signing.clone(), cx))
                .description("Adds a note signed by the user"),
        )
        .tool(Tool::new("connect", connect).description("Connects an account on a web page"))
        .tool(
            Tool::new("summarize", move |cx: Context| {
                summarize(summing.clone(), cx)
            })
            .description("Lets the client's model summarize the notes"),
        )
        .tool(Tool::new("places", places).description("Lists where the user works"))
}

#[derive(Deserialize, JsonSchema)]
struct Signature {
    /// Your full name.
    name: String,
    /// Whether to add today's date.
    #[serde(default)]
    dated: bool,
}

async fn sign(notes: Notes, cx: Context) -> Result<String, ToolError> {
    match cx
        .elicit(Elicitation::form::<Signature>("Who signs this note?"))
        .await?
    {
        ElicitationOutcome::Accepted(Signature { name, dated }) => {
            notes.push(format!(
                "signed by {name}{}",
                if dated { " today" } else { "" }
            ));
            Ok(format!("Signed by {name}."))
        }
        ElicitationOutcome::Declined => Ok("The user did not want to sign.".to_owned()),
        ElicitationOutcome::Cancelled => Err(ToolError::new(
            "the user closed the question; ask them what they want",
        )),
    }
}

async fn connect(cx: Context) -> Result<String, ToolError> {
    let page = Elicitation::url(
        "Please log in to your account.",
        "https://example.com/login",
    );
    match cx.elicit(page).await?.accepted() {
        Some(()) => Ok("The user went to the page.".to_owned()),
        None => Ok("The user stayed here.".to_owned()),
    }
}

async fn summarize(notes: Notes, cx: Context) -> Result<String, ToolError> {
    // The handler may run again from the start when the response arrives. Side effects, and values that differ between runs,
    // belong into `once`.
    let read = async || {
        notes.push("A summary was asked for.".to_owned());
        Ok(notes.all().join("; "))
    };
    let text: String = cx.once("read", read).await?;
    let question = SamplingBuilder::text(format!("Summarize these notes: {text}")).max_tokens(200);
    let answer = cx.sample("summary", question).await?;
    Ok(format!("In short: {}", answer.text()))
}

async fn places(cx: Context) -> Result<String, ToolError> {
    let roots = cx.roots("roots").await?;
    Ok(roots
        .into_iter()
        .map(|root| root.uri)
        .collect::<Vec<_>>()
        .join(", "))
}

// ------------------------------------------------------------------------------------------- resources

fn with_resources(server: Server, notes: &Notes) -> Server {
    let (all, one, ids) = (notes.clone(), notes.clone(), notes.clone());
    server
        .resource(
            // Constant text.
            Resource::text("notes://about", "about", "Notes, kept in memory.")
                .title("About")
                .cache(CacheHint::public(Duration::from_secs(3600))),
        )
        .resource(
            // Read by a function each time; clients may subscribe to it.
            Resource::new("notes://all", "all", move || read_all(all.clone()))
                .description("All notes, a line each")
                .mime_type("text/plain")
                .annotations(
                    types::Annotations::new()
                        .audience([types::Role::User])
                        .priority(0.8),
                ),
        )
        .resource(
            Resource::bytes("notes://pixel", "pixel", "image/png", PIXEL).description("A dot"),
        )
        .template(
            ResourceTemplate::new("notes://note/{number}", "note", move |note| {
                read_one(one.clone(), note)
            })
            .description("One note by its number")
            .mime_type("text/plain")
            .complete("number", move |typed: CompletionRequest| {
                numbers(ids.clone(), typed)
            })
            .cache(CacheHint::private(Duration::from_secs(10))),
        )
}

async fn read_all(notes: Notes) -> Result<String, RequestError> {
    Ok(notes.all().join("\n"))
}

#[derive(Deserialize)]
struct Number {
    number: String,
}

async fn read_one(notes: Notes, Number { number }: Number) -> Result<String, RequestError> {
    let number: usize = number
        .parse()
        .map_err(|_| RequestError::invalid("`number` must be a number"))?;
    let note = number
        .checked_sub(1)
        .and_then(|at| notes.all().get(at).cloned());
    note.ok_or_else(RequestError::not_found)
}

async fn numbers(notes: Notes, typed: CompletionRequest) -> Result<Vec<String>, RequestError> {
    let numbers = (1..=notes.all().len()).map(|number| number.to_string());
    Ok(numbers
        .filter(|number| number.starts_with(&typed.value))
        .collect())
}

// --------------------------------------------------------------------------------------------- prompts

fn with_prompts(server: Server, notes: &Notes) -> Server {
    let notes = notes.clone();
    server.prompt(
        Prompt::new("review", move |args: Review| review(notes.clone(), args))
            .title("Review the notes")
            .description("Goes through all notes in a given tone")
            .complete("tone", ["friendly", "frank", "formal"]),
    )
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The tone of the review.
    tone: String,
}

async fn review(notes: Notes, args: Review) -> Result<Messages, RequestError> {
    let contents = types::TextResourceContents::new("notes://all", notes.all().join("\n"))
        .mime_type("text/plain");
    Ok(Messages::new([
        types::PromptMessage::user(types::ContentBlock::resource(contents)),
        types::PromptMessage::user(format!("Go through these notes in a {} tone.", args.tone)),
    ]))
}

// --------------------------------------------------------------------------------------------- running

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        ["--listen", address] => listen(Http::new(server()), address).await?,
        ["--listen", address, "--old-transport"] => {
            listen(Http::new(server()).http_sse(HttpSse::new()), address).await?;
        }
        ["--check"] => check::run(server()).await?,
        _ => stdio::serve(server()).await?,
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the example says where it listens")]
async fn listen(http: Http, address: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    http.serve(listener).await
}
