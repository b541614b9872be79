//! Resources of every kind.

use turnbuckle_server::{Resource, Server};

pub(crate) fn offer(server: Server) -> Server {
    server.resource(
        Resource::text("good://greeting", "greeting", "Hello.")
            .description("A text that does not change"),
    )
}
