//! What a sealed state is bound to.

use std::{fmt::Write as _, sync::OnceLock};

use sha2::{Digest, Sha256};
use turnbuckle_protocol::jsonrpc::Params;
use turnbuckle_server::relay::RelayedRequest;

use crate::{calls::TargetName, upstream::UpstreamServer};

/// What a sealed state is bound to, in addition to the caller: server, method, target and arguments.
///
/// The digest is computed when it is needed first: few calls have a state.
pub(crate) struct StatePurpose<'a> {
    server: &'a UpstreamServer,
    request: &'a RelayedRequest,
    params: &'a Params<'a>,
    target: Option<&'a TargetName>,
    digest: OnceLock<String>,
}

impl<'a> StatePurpose<'a> {
    pub(super) fn new(
        server: &'a UpstreamServer,
        request: &'a RelayedRequest,
        params: &'a Params<'a>,
        target: Option<&'a TargetName>,
    ) -> Self {
        Self {
            server,
            request,
            params,
            target,
            digest: OnceLock::new(),
        }
    }

    /// Returns a text that differs if the state must not be used.
    pub(crate) fn as_str(&self) -> &str {
        self.digest.get_or_init(|| self.digest())
    }

    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for part in [
            self.server.name(),
            self.request.method(),
            self.target.map_or("", |target| &target.original),
            self.params.get("arguments").unwrap_or(""),
            self.params.get("uri").unwrap_or(""),
        ] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        let mut text = String::new();
        for byte in digest.finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}
