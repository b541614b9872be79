//! Scenarios in which the server requires a token.

use std::{error::Error, sync::Arc};

use serde::Deserialize;
use serde_json::json;
use turnbuckle_auth::{
    AuthorizationError, Secret,
    client::{GrantType, OAuth},
    jwt::{SignatureAlgorithm, SigningKey},
};
use turnbuckle_client::{
    Client,
    http::{HttpFetcher, HttpTarget},
};

use crate::{Task, login::Login};

/// The URL of our metadata document in the suite; it is never fetched.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

pub(crate) async fn run(task: &Task) -> Result<(), Box<dyn Error>> {
    let oauth = oauth(task)?;
    match task.scenario.trim_start_matches("auth/") {
        "resource-mismatch"
        | "metadata-issuer-mismatch"
        | "iss-supported-missing"
        | "iss-wrong-issuer"
        | "iss-unexpected"
        | "iss-normalized"
        | "scope-retry-limit" => expect_rejection(task, oauth).await,
        "authorization-server-migration" => {
            let client = use_tool(task, oauth).await?;
            client.call_tool("test-tool", json!({})).await?;
            client.close().await;
            Ok(())
        }
        _ => {
            use_tool(task, grant(task, oauth)?).await?.close().await;
            Ok(())
        }
    }
}

/// A client with a user who logs in by following a link.
fn oauth(task: &Task) -> Result<OAuth, Box<dyn Error>> {
    let fetcher = HttpFetcher::for_server(&task.url)?;
    Ok(OAuth::new(&task.url, Arc::new(fetcher))
        .client_name("turnbuckle-conformance")
        .client_metadata_url(DOCUMENT)
        .user_agent(Login))
}

/// The credentials that the suite provides, by scenario; they determine the grant.
#[derive(Deserialize)]
#[serde(tag = "name")]
enum ProvidedCredentials {
    #[serde(rename = "auth/pre-registration")]
    Registered {
        client_id: String,
        client_secret: Secret,
    },
    #[serde(rename = "auth/client-credentials-basic")]
    Password {
        client_id: String,
        client_secret: Secret,
    },
    #[serde(rename = "auth/client-credentials-jwt")]
    Key {
        client_id: String,
        private_key_pem: String,
        signing_algorithm: String,
    },
    #[serde(rename = "auth/enterprise-managed-authorization")]
    Enterprise {
        client_id: String,
        client_secret: Secret,
        idp_client_id: String,
        idp_id_token: Secret,
        idp_token_endpoint: String,
    },
    #[serde(rename = "auth/wif-jwt-bearer")]
    Workload {
        client_id: String,
        valid_jwt: Secret,
    },
}

fn grant(task: &Task, oauth: OAuth) -> Result<OAuth, Box<dyn Error>> {
    if task.context.is_null() {
        return Ok(oauth);
    }
    Ok(match ProvidedCredentials::deserialize(&task.context)? {
        ProvidedCredentials::Registered {
            client_id,
            client_secret,
        } => oauth.client_id(client_id).client_secret(client_secret),
        ProvidedCredentials::Password {
            client_id,
            client_secret,
        } => oauth
            .client_id(client_id)
            .client_secret(client_secret)
            .grant(GrantType::ClientCredentials),
        ProvidedCredentials::Key {
            client_id,
            private_key_pem,
            signing_algorithm,
        } => {
            let algorithm: SignatureAlgorithm = signing_algorithm.parse()?;
            let key = SigningKey::from_pem(&private_key_pem, algorithm)?;
            oauth
                .client_id(client_id)
                .grant(GrantType::ClientCredentialsJwt(key))
        }
        ProvidedCredentials::Enterprise {
            client_id,
            client_secret,
            idp_client_id,
            idp_id_token,
            idp_token_endpoint,
        } => oauth
            .client_id(client_id)
            .client_secret(client_secret)
            .grant(GrantType::EnterpriseManaged {
                idp_token_endpoint,
                idp_client_id,
                idp_client_secret: None,
                id_token: idp_id_token,
            }),
        ProvidedCredentials::Workload {
            client_id,
            valid_jwt,
        } => oauth
            .client_id(client_id)
            .grant(GrantType::WorkloadIdentity {
                assertion: valid_jwt,
            }),
    })
}

/// Lists the tools, and calls the only one.
async fn use_tool(task: &Task, oauth: OAuth) -> Result<Client, Box<dyn Error>> {
    let http = HttpTarget::new(&task.url).authorization(oauth);
    let client = task.front.connect(task.client(), http).await?;
    client.tools().all().await?;
    client.call_tool("test-tool", json!({})).await?;
    Ok(client)
}

/// Connecting fails with an authorization error.
async fn expect_rejection(task: &Task, oauth: OAuth) -> Result<(), Box<dyn Error>> {
    let Err(error) = use_tool(task, oauth).await else {
        return Err("the token was used".into());
    };
    let mut cause: Option<&(dyn Error + 'static)> = Some(&*error);
    while let Some(error) = cause {
        if error.is::<AuthorizationError>() {
            return Ok(());
        }
        cause = error.source();
    }
    Err(error)
}
