//! What is tried, check by check. What the authorization server thinks of it is in its journal.

use std::{error::Error, fmt::Debug, time::Duration};

use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;
use turnbuckle_auth::Secret;
use turnbuckle_auth::client::{Login, MemoryStore, Store};
use turnbuckle_auth::fetch::{Fetch, Request};
use turnbuckle_client::http::{Fetcher, Http};
use turnbuckle_client::{Client, EraChoice};

use crate::{Known, Outcome, Task, browser, login, story};

pub(crate) struct Checks {
    task: Task,
    store: MemoryStore,
    client: Option<Client>,
    /// The refresh token, before it was used.
    old: Option<Secret>,
}

/// What the tool `whoami` says.
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
            store: MemoryStore::default(),
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
            "forgotten" => Ok(browser::visit(&format!("{}/forget", self.task.issuer)).await?),
            "again" => self.again().await,
            "stepped_up" => equal(&*self.call("write").await?, "written"),
            "close" => self.close().await,
            _ => Err(format!("there is no check `{check}`").into()),
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
            "2025-11-25" => EraChoice::Legacy,
            _ => EraChoice::Auto,
        };
        let oauth = login::oauth(&self.task, self.store.clone())?;
        let http = Http::new(&self.task.url).authorization(oauth);
        Ok(Client::builder("interop", "1")
            .era(era)
            .connect(http)
            .await?)
    }

    /// The user said no, and whoever asked learns that.
    async fn denied(&self) -> Outcome {
        let Err(error) = self.connect().await else {
            return Err("it was let in".into());
        };
        holds(&story(&*error), "denied")
    }

    async fn whoami(&self) -> Outcome {
        let caller: Caller = serde_json::from_str(&self.call("whoami").await?)?;
        holds(&caller.scopes.join(" "), "mcp:read")?;
        if self.task.subject.is_some() {
            equal(&caller.subject, &self.task.subject)?;
        }
        let known = match self.task.client {
            Known::Dynamic => return Ok(()),
            Known::Known => "known",
            Known::Document => &self.task.document,
            Known::Service => "service",
            Known::Signer => "signer",
        };
        equal(caller.client.as_deref().unwrap_or("nobody"), known)
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
            return Err("there is no refresh token".into());
        };
        match old.expose() == new.expose() {
            true => Err("it is the same token".into()),
            false => Ok(()),
        }
    }

    /// Somebody else has the old token, and uses it: the authorization server then trusts neither.
    async fn reused(&self) -> Outcome {
        let old = self.old.as_ref().ok_or("there is no refresh token")?;
        let client = self.login().await?.client.id;
        let form = format!(
            "grant_type=refresh_token&client_id={client}&refresh_token={}",
            old.expose()
        );
        let endpoint = format!("{}/token", self.task.issuer);
        let request = Request::post(endpoint, "application/x-www-form-urlencoded", form);
        let answer = Fetcher::trusted().fetch(request).await?;
        holds(&String::from_utf8_lossy(&answer.body), "invalid_grant")
    }

    /// Whatever there was has ended.
    async fn again(&self) -> Outcome {
        sleep(Duration::from_millis(self.task.ttl * 1000 + 1500)).await;
        self.call("whoami").await?;
        Ok(())
    }

    async fn close(&self) -> Outcome {
        self.client()?.close().await;
        Ok(())
    }

    async fn call(&self, tool: &str) -> Result<String, Box<dyn Error>> {
        let result = self.client()?.call_tool(tool, json!({})).await?;
        match result.is_error() {
            true => Err(format!("`{tool}` failed: {}", result.text()).into()),
            false => Ok(result.text()),
        }
    }

    fn client(&self) -> Result<&Client, Box<dyn Error>> {
        Ok(self.client.as_ref().ok_or("not connected")?)
    }

    async fn login(&self) -> Result<Login, Box<dyn Error>> {
        let login = self.store.login(&self.task.url).await?;
        Ok(login.ok_or("nobody is logged in")?)
    }
}

fn equal<T: PartialEq + Debug + ?Sized>(actual: &T, expected: &T) -> Outcome {
    if actual == expected {
        return Ok(());
    }
    Err(format!("expected {expected:?}, got {actual:?}").into())
}

fn holds(whole: &str, part: &str) -> Outcome {
    if whole.contains(part) {
        return Ok(());
    }
    Err(format!("expected {part:?} in {whole:?}").into())
}
