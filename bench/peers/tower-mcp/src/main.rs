//! The measured server on tower-mcp, as its documentation shows it.
//!
//! ```console
//! $ turnbuckle-bench-tower-mcp --listen ADDRESS | --stdio [--tools N] [--more]
//! ```

#[path = "../../contract.rs"]
mod contract;

use contract::{
    ADD, ANNOUNCE, Add, Contract, DONE, ECHO, Echo, FOUND, Failure, Order, STEP_COUNT, STEPS,
    ServeOn, Sum, TOLD, extra_tools,
};
use tokio::net::TcpListener;
use tower_mcp::{
    CallToolResult, HttpTransport, McpRouter, StdioTransport, SubscriptionLimits, Tool,
    ToolBuilder,
    context::{NotificationSender, ServerNotification, notification_channel},
    extract::{Context, State},
};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let contract = Contract::from_process(&[])?;
    match contract.place {
        ServeOn::Stdio => StdioTransport::new(server(&contract, None)).run().await?,
        ServeOn::Http(address) => {
            let (tell, told) = notification_channel(64);
            let server = server(&contract, Some(tell));
            let transport = if contract.more {
                // By default 256 may listen.
                let limits = SubscriptionLimits::default().max_active(10_000);
                HttpTransport::with_notifications(server, told).subscription_limits(limits)
            } else {
                HttpTransport::new(server)
            };
            let listener = TcpListener::bind(address).await?;
            eprintln!("listening on http://{}/mcp", listener.local_addr()?);
            axum::serve(listener, transport.into_router_at("/mcp")).await?;
        }
    }
    Ok(())
}

fn server(contract: &Contract, tell: Option<NotificationSender>) -> McpRouter {
    let mut server = McpRouter::new()
        .server_info("echo", "0.1.0")
        .tool(echo())
        .tool(add());
    for (name, description) in extra_tools(contract.extra) {
        server = server.tool(extra_tool(name, description));
    }
    if contract.more {
        server = server
            .tools_list_changed(true)
            .tool(steps())
            .tool(announce(tell));
    }
    server
}

fn echo() -> Tool {
    ToolBuilder::new("echo")
        .description(ECHO)
        .handler(async |input: Echo| Ok(CallToolResult::text(input.message)))
        .build()
}

fn add() -> Tool {
    ToolBuilder::new("add")
        .description(ADD)
        .output_schema_for::<Sum>()
        .handler(async |Add { a, b }: Add| CallToolResult::from_serialize(&Sum { sum: a + b }))
        .build()
}

fn extra_tool(name: String, description: String) -> Tool {
    ToolBuilder::new(name)
        .description(description)
        .handler(async |_: Order| Ok(CallToolResult::text(FOUND)))
        .build()
}

fn steps() -> Tool {
    ToolBuilder::new("steps")
        .description(STEPS)
        .extractor_handler((), async |context: Context| {
            for step in 1..=STEP_COUNT {
                let total = Some(STEP_COUNT.into());
                context.report_progress(step.into(), total, None).await;
            }
            Ok(CallToolResult::text(DONE))
        })
        .build()
}

/// On HTTP a request can only tell its own session, so the tool has a channel to all of them.
fn announce(tell: Option<NotificationSender>) -> Tool {
    ToolBuilder::new("announce")
        .description(ANNOUNCE)
        .extractor_handler(
            tell,
            async |State(tell): State<Option<NotificationSender>>, context: Context| {
                match tell {
                    Some(tell) => drop(tell.send(ServerNotification::ToolsListChanged).await),
                    None => drop(context.notify_tools_list_changed()),
                }
                Ok(CallToolResult::text(TOLD))
            },
        )
        .build()
}
