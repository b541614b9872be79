//! Prompts of every kind.

use turnbuckle_server::{Prompt, RequestError, Server};

pub(crate) fn offer(server: Server) -> Server {
    server.prompt(Prompt::new("greet", greet).description("Greets"))
}

async fn greet() -> Result<&'static str, RequestError> {
    Ok("Say hello.")
}
