//! Tools that ask the client: its user, its model, its roots.

use turnbuckle_server::Server;

pub(crate) fn offer(server: Server) -> Server {
    server
}
