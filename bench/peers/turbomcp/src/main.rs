//! The measured server on turbomcp, as its documentation shows it.
//!
//! ```console
//! $ turnbuckle-bench-turbomcp --listen ADDRESS | --stdio [--tools N] [--more]
//! ```

#[path = "../../contract.rs"]
mod contract;
mod wide;

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use contract::{Contract, DONE, Failure, STEP_COUNT, ServeOn, Sum, TOLD};
use tokio::net::TcpListener;
use turbomcp::{
    LegacySessionAdapter, ServerNotifier,
    http::{HttpConfig, router},
    prelude::*,
};
use wide::Wide;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let contract = Contract::from_process(&[])?;
    let notifier = Notifier::default();
    match (contract.more, contract.extra) {
        (false, 0) => serve(Basics.into_server(), &contract, &notifier).await,
        (false, extra) => {
            let server = Wide::new(Basics, extra).into_server();
            serve(server.with_tools(), &contract, &notifier).await
        }
        (true, extra) => {
            let more = More {
                notifier: Arc::clone(&notifier),
            };
            let server = Wide::new(more, extra).into_server();
            serve(server.with_tools(), &contract, &notifier).await
        }
    }
}

async fn serve<S: McpServerCore>(
    server: ServerBuilder<S>,
    contract: &Contract,
    notifier: &OnceLock<ServerNotifier>,
) -> Result<(), Failure> {
    let service = server.build();
    notifier.get_or_init(|| service.notifier());
    match contract.place {
        ServeOn::Stdio => serve_stdio(LegacySessionAdapter::new(service)).await?,
        ServeOn::Http(address) => {
            // The same as `serve_http`, which does not report its port.
            let terminator = Arc::new(service.session_terminator());
            let config = HttpConfig::new().with_session_terminator(terminator);
            let app = router(service, config);
            let listener = TcpListener::bind(address).await?;
            eprintln!("listening on http://{}/mcp", listener.local_addr()?);
            let app = app.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, app).await?;
        }
    }
    Ok(())
}

/// `echo` and `add`.
#[derive(Clone)]
struct Basics;

#[server(name = "echo", version = "0.1.0")]
impl Basics {
    #[tool(description = "Says the message back")]
    async fn echo(&self, message: String) -> String {
        message
    }

    #[tool(description = "Adds two numbers")]
    async fn add(&self, a: f64, b: f64) -> Json<Sum> {
        Json(Sum { sum: a + b })
    }
}

/// Set once the service is built, which is after its tools.
type Notifier = Arc<OnceLock<ServerNotifier>>;

/// The same with `steps` and `announce`.
#[derive(Clone)]
struct More {
    notifier: Notifier,
}

#[server(name = "echo", version = "0.1.0")]
impl More {
    #[tool(description = "Says the message back")]
    async fn echo(&self, message: String) -> String {
        message
    }

    #[tool(description = "Adds two numbers")]
    async fn add(&self, a: f64, b: f64) -> Json<Sum> {
        Json(Sum { sum: a + b })
    }

    #[tool(description = "Reports three steps, then is done")]
    async fn steps(&self, ctx: &CallToolContext) -> String {
        for step in 1..=STEP_COUNT {
            let total = Some(STEP_COUNT.into());
            ctx.progress.report(step.into(), total, None).await;
        }
        DONE.to_owned()
    }

    #[tool(description = "Tells everyone who listens that the tools changed")]
    async fn announce(&self) -> String {
        if let Some(notifier) = self.notifier.get() {
            notifier.tools_list_changed();
        }
        TOLD.to_owned()
    }
}
