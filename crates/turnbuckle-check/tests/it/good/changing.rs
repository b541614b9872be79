//! Tools that report progress, log, take long, or change what the server has.

use turnbuckle_server::Server;

pub(crate) fn offer(server: Server) -> Server {
    server
}
