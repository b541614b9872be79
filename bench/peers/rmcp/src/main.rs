//! The measured server on rmcp.
//!
//! ```console
//! $ turnbuckle-bench-rmcp --listen ADDRESS | --stdio [--tools N] [--more] [--nodelay] [--tuned]
//! ```
//!
//! Without a switch it is the server of rmcp's documentation. `--nodelay` only sets TCP_NODELAY, which the documentation
//! does not mention and without which every response on a keep-alive connection waits for a delayed acknowledgement. `--tuned` is
//! the best that we know: TCP_NODELAY, JSON instead of a stream of one event, and one router for all requests.

#[path = "../../contract.rs"]
mod contract;

use std::sync::{Arc, Mutex, PoisonError};

use axum::{Router, serve::ListenerExt};
use contract::{
    ADD, ANNOUNCE, Add, Contract, DONE, ECHO, Echo, FOUND, Failure, Order, STEP_COUNT, STEPS,
    ServeOn, Sum, TOLD, extra_tools,
};
use rmcp::{
    ErrorData, Json, Peer, RoleServer, ServerHandler, ServiceExt,
    handler::server::{
        common::schema_for_input,
        router::tool::{ToolRoute, ToolRouter},
        wrapper::Parameters,
    },
    model::{
        CallToolResult, ContentBlock, ProgressNotificationParam, ServerCapabilities, ServerConfig,
        SubscriptionFilter, Tool,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
    tool, tool_handler, tool_router,
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use tokio::{net::TcpListener, sync::broadcast};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let contract = Contract::from_process(&["--nodelay", "--tuned"])?;
    let tuned = contract.switches.iter().any(|switch| switch == "--tuned");
    let server = Measured::new(&contract, tuned);
    match contract.place {
        ServeOn::Stdio => {
            server.serve(stdio()).await?.waiting().await?;
        }
        ServeOn::Http(address) => {
            let listener = TcpListener::bind(address).await?;
            eprintln!("listening on http://{}/mcp", listener.local_addr()?);
            let app = app(server, tuned);
            if contract.switches.is_empty() {
                axum::serve(listener, app).await?;
            } else {
                let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
                axum::serve(listener, app).await?;
            }
        }
    }
    Ok(())
}

fn app(server: Measured, tuned: bool) -> Router {
    let config = StreamableHttpServerConfig::default().with_json_response(tuned);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    Router::new().nest_service("/mcp", service)
}

#[derive(Clone)]
struct Measured {
    /// Names and descriptions of the further tools.
    extra: Arc<[(&'static str, &'static str)]>,
    /// The subscribers of changes, if there is a tool that announces them.
    listeners: Option<Arc<Listeners>>,
    /// The router of the tuned form.
    router: Option<Arc<ToolRouter<Measured>>>,
}

/// rmcp leaves it to the server to store its subscribers.
struct Listeners {
    /// Streams of `subscriptions/listen`.
    streams: broadcast::Sender<()>,
    /// Sessions.
    sessions: Mutex<Vec<Peer<RoleServer>>>,
}

impl Measured {
    fn new(contract: &Contract, tuned: bool) -> Measured {
        let listeners = contract.more.then(|| {
            Arc::new(Listeners {
                streams: broadcast::channel(64).0,
                sessions: Mutex::default(),
            })
        });
        let mut server = Measured {
            // Leaked for the life of the program, like literals.
            extra: extra_tools(contract.extra)
                .map(|(name, description)| (&*name.leak(), &*description.leak()))
                .collect(),
            listeners,
            router: None,
        };
        server.router = tuned.then(|| server.router());
        server
    }

    /// Creates a router for each request, as `#[tool_router(server_handler)]` does, unless one is stored.
    fn router(&self) -> Arc<ToolRouter<Measured>> {
        if let Some(router) = &self.router {
            return Arc::clone(router);
        }
        let mut router = Measured::tool_router();
        for (name, description) in self.extra.iter() {
            router.add_route(extra_tool(name, description));
        }
        if self.listeners.is_some() {
            router.merge(Measured::more_router());
        }
        Arc::new(router)
    }
}

fn extra_tool(name: &'static str, description: &'static str) -> ToolRoute<Measured> {
    let schema = schema_for_input::<Order>().expect("a struct is an object");
    ToolRoute::new(
        Tool::new(name, description, schema),
        async |_: Parameters<Order>| CallToolResult::success(vec![ContentBlock::text(FOUND)]),
    )
}

#[tool_router]
impl Measured {
    #[tool(description = ECHO)]
    fn echo(&self, Parameters(Echo { message }): Parameters<Echo>) -> String {
        message
    }

    #[tool(description = ADD)]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> Json<Sum> {
        Json(Sum { sum: a + b })
    }
}

#[tool_router(router = more_router)]
impl Measured {
    #[tool(description = STEPS)]
    async fn steps(&self, context: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        if let Some(token) = context.meta.get_progress_token() {
            for step in 1..=STEP_COUNT {
                let progress = ProgressNotificationParam::new(token.clone(), step.into())
                    .with_total(STEP_COUNT.into());
                context
                    .peer
                    .notify_progress(progress)
                    .await
                    .map_err(broken)?;
            }
        }
        Ok(DONE.to_owned())
    }

    #[tool(description = ANNOUNCE)]
    async fn announce(&self) -> String {
        if let Some(listeners) = &self.listeners {
            // An error means that no listener is left.
            let _ = listeners.streams.send(());
            for session in listeners.sessions() {
                let _ = session.notify_tool_list_changed().await;
            }
        }
        TOLD.to_owned()
    }
}

impl Listeners {
    fn sessions(&self) -> Vec<Peer<RoleServer>> {
        let sessions = self.sessions.lock();
        sessions.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[tool_handler(router = self.router())]
impl ServerHandler for Measured {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools();
        ServerConfig::new(match self.listeners {
            Some(_) => tools.enable_tool_list_changed().build(),
            None => tools.build(),
        })
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(listeners) = &self.listeners else {
            return Ok(());
        };
        let mut changes = listeners.streams.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => match change {
                    Ok(()) => context.sink().notify_tool_list_changed().await.map_err(broken)?,
                    Err(_) => return Ok(()),
                }
            }
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Some(listeners) = &self.listeners {
            let sessions = listeners.sessions.lock();
            sessions
                .unwrap_or_else(PoisonError::into_inner)
                .push(context.peer);
        }
    }
}

fn broken(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
