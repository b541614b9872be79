//! The OAuth configuration of a case.

use std::{error::Error, sync::Arc};

use turnbuckle_auth::{
    Secret,
    client::{DpopMode, FileStore, GrantType, LoopbackUserAgent, OAuth},
    jwt::{SignatureAlgorithm, SigningKey},
};
use turnbuckle_client::http::HttpFetcher;

use crate::{Identity, Task, browser};

/// Returns the store of logins, in the folder of this run.
pub(crate) fn store() -> FileStore {
    FileStore::new("logins")
}

/// Returns a client with a user who logs in at once.
pub(crate) fn oauth(task: &Task) -> Result<OAuth, Box<dyn Error>> {
    let fetcher = HttpFetcher::for_server(&task.url)?;
    let oauth = OAuth::new(&task.url, Arc::new(fetcher))
        .client_name("interop")
        .store(store())
        .dpop(if task.dpop {
            DpopMode::Always
        } else {
            DpopMode::WhenRequired
        })
        .user_agent(LoopbackUserAgent::new(|url| {
            let url = url.to_owned();
            tokio::spawn(async move { browser::follow_redirects(&url).await });
            Ok(())
        }));
    Ok(match task.client {
        Identity::Dynamic => oauth,
        Identity::Known if task.device => oauth.client_id("known").grant(GrantType::DeviceCode),
        Identity::Known => oauth.client_id("known"),
        Identity::Document => oauth.client_metadata_url(&task.document),
        Identity::Service => oauth
            .client_id("service")
            .client_secret(Secret::new(&task.secret))
            .grant(GrantType::ClientCredentials),
        Identity::Signer => {
            let key = SigningKey::from_pem(&task.private_key()?, SignatureAlgorithm::Es256)?;
            oauth
                .client_id("signer")
                .grant(GrantType::ClientCredentialsJwt(key))
        }
    })
}
