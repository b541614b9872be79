//! What the client connects to: the suite's server, or a gateway in front of it.

use std::{cell::RefCell, error::Error};

use turnbuckle::{
    gateway::{Gateway, RunningGateway, Upstream},
    memory,
};
use turnbuckle_client::{Client, ClientBuilder, LifecycleMode, http::HttpTarget};

/// The way to the server. The default is a direct connection.
#[derive(Default)]
pub(crate) struct Front {
    /// The era in which the client connects to a gateway.
    gateway_mode: Option<LifecycleMode>,
    /// The gateways that were started.
    gateways: RefCell<Vec<RunningGateway>>,
}

impl Front {
    /// Puts a gateway in front of the server. Clients connect to it in the given era.
    pub(crate) fn gateway(era: &str) -> Result<Self, Box<dyn Error>> {
        let mode = match era {
            "legacy" => LifecycleMode::Legacy,
            "modern" => LifecycleMode::Modern,
            other => return Err(format!("unknown era `{other}`").into()),
        };
        Ok(Self {
            gateway_mode: Some(mode),
            gateways: RefCell::default(),
        })
    }

    /// Connects a client to the server. A gateway is the one that logs in, and that detects the era of the server.
    pub(crate) async fn connect(
        &self,
        client: ClientBuilder,
        server: HttpTarget,
    ) -> Result<Client, Box<dyn Error>> {
        let Some(mode) = self.gateway_mode else {
            return Ok(client.connect(server).await?);
        };
        let upstream = Upstream::new("suite", move || server.clone().into());
        let gateway = Gateway::new("turnbuckle-gateway", env!("CARGO_PKG_VERSION"))
            .upstream(upstream)
            .start()
            .await?;
        self.gateways.borrow_mut().push(gateway.clone());
        Ok(memory::connect_with(client.lifecycle_mode(mode), gateway.server()).await?)
    }

    /// Ends the sessions of the gateways.
    pub(crate) async fn close(&self) {
        for gateway in self.gateways.take() {
            gateway.close().await;
        }
    }
}
