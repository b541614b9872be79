//! Tools whose calls become tasks.

use turnbuckle_server::Server;

pub(crate) fn offer(server: Server) -> Server {
    server
}
