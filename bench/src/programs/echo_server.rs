//! The measured server: two small tools, with the defaults except for one limit.
//!
//! Uses only the public API, with every default check on; schema validation is not a default. `--tools N` fills the list up to
//! N tools, `--more` adds those that do more than return a result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use turnbuckle::{Context, Server, Tool, ToolError, http::Http};
use turnbuckle_bench::{Failure, options::Options};

/// The one raised limit: 10,000 clients may listen, and another calls.
const IN_FLIGHT: usize = 10_100;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// Both numbers together.
    sum: f64,
}

async fn add(args: Add) -> Result<Sum, ToolError> {
    Ok(Sum {
        sum: args.a + args.b,
    })
}

// The arguments of the tools that are only listed. No documentation: it would be part of the schema.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "its schema is all that counts")]
struct Order {
    /// What is to be looked for.
    query: String,
    /// How many results are wanted at most.
    limit: u32,
    /// Where to look, as a path from the top.
    place: String,
}

/// Reports progress three times, then returns.
async fn steps(cx: Context) -> Result<String, ToolError> {
    for step in 1..=3 {
        cx.progress(step, 3).await;
    }
    Ok("done".to_owned())
}

/// Notifies all listeners that the tools changed.
async fn announce(cx: Context) -> Result<String, ToolError> {
    cx.tools_changed();
    Ok("told".to_owned())
}

/// Creates a server with `tools` tools, and with those that do more than return a result.
fn server(tools: usize, more: bool) -> Server {
    let echo = Tool::new("echo", async |args: Echo| Ok(args.message));
    filled(echo, tools, more)
}

/// Creates a server with this tool `echo` and more tools up to the total.
pub(super) fn filled(echo: Tool, tools: usize, more: bool) -> Server {
    let add = Tool::new("add", add);
    let mut server =
        Server::new("echo", "0.1.0").tool(echo.description("Says the message back").read_only());
    if tools > 1 {
        server = server.tool(add.description("Adds two numbers"));
    }
    let server = (0..tools.saturating_sub(2)).fold(server, |server, number| {
        let tool = Tool::new(format!("tool-{number:03}"), async |_: Order| {
            Ok("found nothing".to_owned())
        });
        let description =
            format!("Looks for something at place {number:03}, and says what it found");
        server.tool(tool.description(description))
    });
    if more {
        let steps = Tool::new("steps", steps);
        let announce = Tool::new("announce", announce);
        return server
            .tool(steps.description("Reports three steps, then is done"))
            .tool(announce.description("Tells everyone who listens that the tools changed"));
    }
    server
}

/// Serves until the process or its input ends.
pub(super) fn run(options: Options) -> Result<bool, Failure> {
    serve(options, server)
}

/// Serves as the command line requests.
#[tokio::main]
pub(super) async fn serve(
    mut options: Options,
    server: impl Fn(usize, bool) -> Server,
) -> Result<bool, Failure> {
    let stdio = options.switch("--stdio");
    let listen = options.value::<String>("--listen")?;
    let tools = options.value("--tools")?.unwrap_or(2);
    let server = server(tools, options.switch("--more"));
    options.finish()?;
    match listen {
        Some(address) if !stdio => {
            let listener = TcpListener::bind(address).await?;
            eprintln!("listening on http://{}/mcp", listener.local_addr()?);
            Http::new(server)
                .max_in_flight(IN_FLIGHT)
                .serve(listener)
                .await?;
        }
        None if stdio => turnbuckle::stdio::serve(server).await?,
        _ => {
            return Err("usage: (--listen ADDR | --stdio) [--tools N] [--more]".into());
        }
    }
    Ok(true)
}
