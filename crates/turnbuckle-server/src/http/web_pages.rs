//! Web pages of the program, on other paths than the endpoint.

use std::{net::SocketAddr, sync::Arc};

use ::http::{Method, Request, Response, request::Parts};
use bytes::Bytes;
use turnbuckle_protocol::authenticator::BoxFuture;

use crate::http::{
    Http, body::ResponseBody, connection::ConnectionHandle, endpoint::Endpoint, responses,
    session::limits::owner_for_address,
};

/// Pages that users open in a browser, for example those of a login.
pub trait WebPages: Send + Sync + 'static {
    /// Returns whether a path is one of a page. Paths of the endpoint are not asked for.
    fn has_path(&self, path: &str) -> bool;

    /// Responds to a GET request for such a path.
    fn respond(&self, request: Request<()>) -> BoxFuture<'_, Response<Bytes>>;
}

/// The pages, as an option of [`Http`].
#[derive(Clone)]
pub(super) struct SharedPages(Arc<dyn WebPages>);

impl std::fmt::Debug for SharedPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebPages")
    }
}

impl Http {
    /// Also serves web pages. `Host` and `Origin` are checked as for the endpoint, but no credentials are required.
    #[must_use]
    pub fn web_pages(mut self, pages: impl WebPages) -> Self {
        self.options.web_pages = Some(SharedPages(Arc::new(pages)));
        self
    }
}

impl SharedPages {
    pub(super) fn has_path(&self, parts: &Parts) -> bool {
        self.0.has_path(parts.uri.path())
    }

    /// Responds to a request for a page. It counts as in flight.
    pub(super) async fn respond(
        &self,
        endpoint: &Arc<Endpoint>,
        parts: Parts,
        connection: &ConnectionHandle,
    ) -> Response<ResponseBody> {
        if parts.method != Method::GET {
            return responses::method_not_allowed("GET");
        }
        let peer = parts.extensions.get::<SocketAddr>().copied();
        let peer = peer.or_else(|| connection.peer());
        let _permit = match endpoint.acquire_permit(|| owner_for_address(peer)) {
            Ok(permit) => permit,
            Err(response) => return response,
        };
        let response = self.0.respond(Request::from_parts(parts, ())).await;
        response.map(ResponseBody::full)
    }
}
