//! From a line to the message in it.

use std::sync::{Arc, atomic::Ordering};

use turnbuckle_protocol::{RpcError, codec::lines::Line, jsonrpc};

use super::{call::Outlet, connection::Connection};

impl Connection {
    /// Takes one line. What can be answered at once is added to the sink; the writer is not woken.
    pub(crate) fn receive(self: &Arc<Self>, line: Line<'_>) {
        let bytes = match line {
            Line::Message(bytes) => bytes,
            Line::TooLong => return self.refuse(&too_long(self.line_limit())),
            Line::LspHeader => return self.refuse_headers(),
        };
        match jsonrpc::parse(bytes) {
            Ok(incoming) => self.handle(incoming, &|| self.arrival()),
            Err(malformed) => self.complain(malformed, Outlet::Line),
        }
    }

    fn refuse_headers(&self) {
        if !self.has_seen_headers.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the client frames its messages with `Content-Length`, as language servers do; \
                 this protocol has one message per line"
            );
        }
        self.refuse(&RpcError::parse_error(
            "`Content-Length` framing is not part of this protocol: send one message per line",
        ));
    }
}

fn too_long(limit: usize) -> RpcError {
    RpcError::invalid_request(format!(
        "the line is longer than the {limit} bytes that this server reads"
    ))
}
