//! The checks. The log of the authorization server has its view of them.

use std::{env, error::Error, fmt::Debug, time::Duration};

use serde::Deserialize;
use serde_json::json;
use tokio::{process::Command, task::JoinSet, time::sleep};
use turnbuckle_auth::{
    Secret,
    client::{StoredLogin, TokenStore},
    fetch::{Fetch, FetchRequest},
};
use turnbuckle_client::{
    Client, LifecycleMode,
    http::{HttpFetcher, HttpTarget},
};

use crate::{Identity, Outcome, Task, browser, error_chain, login};

pub(crate) struct Checks {
    task: Task,
    client: Option<Client>,
    /// The refresh token, before it was used.
    old: Option<Secret>,
}

/// The result of the tool `whoami`.
#[derive(Deserialize)]
struct Caller {
    subject: Option<String>,
    client: Option<String>,
    scopes: Vec<String>,
}

impl Checks {
    pub(crate) fn new(task: Task) -> Self {
        Self {
            task,
            client: None,
            old: None,
        }
    }

    pub(crate) async fn run(&mut self, check: &str) -> Outcome {
        match check {
            "connect" => self.connected().await,
            "denied" => self.denied().await,
            "whoami" => self.whoami().await,
            "many" => self.many().await,
            "refreshed" => self.refreshed().await,
            "rotated" => self.rotated().await,
            "reused" => self.reused().await,
            "forgotten" => {
                Ok(browser::follow_redirects(&format!("{}/forget", self.task.issuer)).await?)
            }
            "again" => self.again().await,
            "together" => self.together().await,
            "shared" => self.shared().await,
            "stepped_up" => equal(&*self.call("write").await?, "written"),
            "close" => self.close().await,
            _ => Err(format!("unknown check `{check}`").into()),
        }
    }

    async fn connected(&mut self) -> Outcome {
        let client = self.connect().await?;
        let revision = client.server().revision.to_string();
        self.client = Some(client);
        equal(&*revision, &*self.task.revision)
    }

    async fn connect(&self) -> Result<Client, Box<dyn Error>> {
        let era = match &*self.task.revision {
            "2025-11-25" => LifecycleMode::Legacy,
            _ => LifecycleMode::Auto,
        };
        let oauth = login::oauth(&self.task)?;
        let http = HttpTarget::new(&self.task.url).authorization(oauth);
        Ok(Client::builder("interop", "1")
            .lifecycle_mode(era)
            .connect(http)
            .await?)
    }

    /// The user denies the login, and the client reports it.
    async fn denied(&self) -> Outcome {
        let Err(error) = self.connect().await else {
            return Err("the request was accepted".into());
        };
        contains(&error_chain(&*error), "denied")
    }

    async fn whoami(&self) -> Outcome {
        let caller: Caller = serde_json::from_str(&self.call("whoami").await?)?;
        contains(&caller.scopes.join(" "), "mcp:read")?;
        if self.task.subject.is_some() {
            equal(&caller.subject, &self.task.subject)?;
        }
        let known = match self.task.client {
            Identity::Dynamic => return Ok(()),
            Identity::Known => "known",
            Identity::Document => &self.task.document,
            Identity::Service => "service",
            Identity::Signer => "signer",
        };
        equal(caller.client.as_deref().unwrap_or("none"), known)
    }

    async fn many(&self) -> Outcome {
        for _ in 0..10 {
            self.call("whoami").await?;
        }
        Ok(())
    }

    async fn refreshed(&mut self) -> Outcome {
        self.old = self.login().await?.tokens.refresh;
        self.again().await
    }

    async fn rotated(&self) -> Outcome {
        let new = self.login().await?.tokens.refresh;
        let (Some(old), Some(new)) = (&self.old, &new) else {
            return Err("no refresh token".into());
        };
        if old.expose() == new.expose() {
            return Err("the refresh token was not rotated".into());
        }
        Ok(())
    }

    /// Uses the old refresh token again; the authorization server then revokes both.
    async fn reused(&self) -> Outcome {
        let old = self.old.as_ref().ok_or("no refresh token")?;
        let client = self.login().await?.client.id;
        let form = format!(
            "grant_type=refresh_token&client_id={client}&refresh_token={}",
            old.expose()
        );
        let endpoint = format!("{}/token", self.task.issuer);
        let request = FetchRequest::post(endpoint, "application/x-www-form-urlencoded", form);
        let response = HttpFetcher::trusted().fetch(request).await?;
        contains(&String::from_utf8_lossy(&response.body), "invalid_grant")
    }

    /// Calls a tool after the token has expired.
    async fn again(&self) -> Outcome {
        sleep(self.token_lifetime()).await;
        self.call("whoami").await?;
        Ok(())
    }

    /// Sends concurrent calls after the token has expired.
    async fn together(&self) -> Outcome {
        sleep(self.token_lifetime()).await;
        let client = self.client()?;
        let mut calls = JoinSet::new();
        for _ in 0..8 {
            let client = client.clone();
            calls.spawn(async move { client.call_tool("whoami", json!({})).await });
        }
        while let Some(called) = calls.join_next().await {
            called??;
        }
        Ok(())
    }

    /// A second process uses the same login, and both refresh it.
    async fn shared(&self) -> Outcome {
        let task = Task {
            checks: ["connect", "again", "again", "close"]
                .map(Into::into)
                .into(),
            is_second: true,
            ..self.task.clone()
        };
        let mut second = Command::new(env::current_exe()?);
        let second = second.arg(serde_json::to_string(&task)?).output();
        let first = async { self.again().await.and(self.again().await) };
        let (first, second) = tokio::join!(first, second);
        first?;
        let report = String::from_utf8(second?.stdout)?;
        if report.matches("\"ok\":true").count() != task.checks.len() {
            return Err(format!("the second process reported {report}").into());
        }
        Ok(())
    }

    async fn close(&self) -> Outcome {
        self.client()?.close().await;
        Ok(())
    }

    async fn call(&self, tool: &str) -> Result<String, Box<dyn Error>> {
        let result = self.client()?.call_tool(tool, json!({})).await?;
        if result.is_error() {
            return Err(format!("`{tool}` failed: {}", result.text()).into());
        }
        Ok(result.text())
    }

    /// Returns the time until a token has expired.
    fn token_lifetime(&self) -> Duration {
        Duration::from_millis(self.task.ttl * 1000 + 1500)
    }

    fn client(&self) -> Result<&Client, Box<dyn Error>> {
        Ok(self.client.as_ref().ok_or("not connected")?)
    }

    async fn login(&self) -> Result<StoredLogin, Box<dyn Error>> {
        let login = login::store().login(&self.task.url).await?;
        Ok(login.ok_or("not logged in")?)
    }
}

fn equal<T: PartialEq + Debug + ?Sized>(actual: &T, expected: &T) -> Outcome {
    if actual == expected {
        return Ok(());
    }
    Err(format!("expected {expected:?}, got {actual:?}").into())
}

fn contains(whole: &str, part: &str) -> Outcome {
    if whole.contains(part) {
        return Ok(());
    }
    Err(format!("expected {part:?} in {whole:?}").into())
}
