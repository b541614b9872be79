//! From a URL to a client: Streamable HTTP first, then the transport that was before it.

use std::sync::Arc;

use ::http::StatusCode;

use super::{
    Endpoint, Http, HttpSse, Ways,
    headers::Headers,
    url::Url,
    wire::{Limits, Wire},
};
use crate::{
    EraChoice,
    builder::ClientBuilder,
    client::Inner,
    error::{ConnectError, TransportError},
    hub::Hub,
    lifecycle::only_newer,
    transport::Transport,
};

/// Finds the transport that the server has, and agrees with it on a revision.
pub(crate) async fn reach(
    http: Http,
    mut settings: ClientBuilder,
    hub: Arc<Hub>,
) -> Result<Arc<Inner>, ConnectError> {
    let url: Url = http.url.parse()?;
    let name = Some(url.origin().to_string());
    if let Some(authorization) = &http.authorization {
        settings.declare(authorization.extensions());
    }
    let mut refusal = None;
    if http.ways == Ways::Both {
        let endpoint = Endpoint::new(http.wire(&url, &hub)?, url.clone());
        let transport = Transport::Http(endpoint);
        let hub = Arc::clone(&hub);
        match Inner::agree(settings.clone(), transport, name.clone(), hub).await {
            Err(error) if settings.choice != EraChoice::Modern && may_be_older(&error) => {
                refusal = Some(error);
            }
            outcome => return outcome,
        }
    }
    // There is no newer revision on this transport to ask about.
    settings.choice = EraChoice::Legacy;
    let server = HttpSse::new(http.wire(&url, &hub)?, url);
    let outcome = Inner::agree(settings, Transport::HttpSse(server), name, hub).await;
    // If it is not that either, the first refusal says more.
    outcome.map_err(|error| refusal.unwrap_or(error))
}

impl Http {
    fn wire(&self, url: &Url, hub: &Hub) -> Result<Wire, ConnectError> {
        let mut headers = Headers::new();
        for (name, value) in &self.headers {
            headers.add(name, value)?;
        }
        let limits = Limits {
            connect: self.connect_timeout,
            body: hub.limits.message,
        };
        let wire = Wire::new(url, self.dialer.clone(), headers, limits);
        let wire = wire.map_err(TransportError::from)?;
        Ok(wire.authorized_by(self.authorization.clone()))
    }
}

/// Says whether a server refused the handshake in the way that one does who knows no POST at this URL.
fn may_be_older(error: &ConnectError) -> bool {
    let status = match error {
        ConnectError::Unreachable(TransportError::Refused(refusal)) => Some(refusal.status),
        ConnectError::Refused { source, status, .. } if !only_newer(source) => *status,
        _ => None,
    };
    matches!(
        status,
        Some(StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
    )
}
