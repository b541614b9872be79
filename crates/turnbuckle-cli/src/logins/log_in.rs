//! `turnbuckle login`, step by step: what the server wants, who gives it, and whether it then does.

use std::sync::Arc;

use turnbuckle_auth::client::discovery::{self, Found};
use turnbuckle_auth::client::{FileForm, Grant, OAuth};
use turnbuckle_auth::{self as auth, Challenge, Scopes, Step};
use turnbuckle_client::{ConnectError, TransportError};

use super::fetch_once::FetchOnce;
use super::person::Person;
use super::{account, fetcher, find_store, oauth};
use crate::account::Account;
use crate::commands::Wish;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::place;
use crate::servers::Remote;
use crate::session;
use crate::target::Target;

/// The revision whose words metadata is asked for in.
const REVISION: &str = "2026-07-28";

/// Logs in to a server; nothing if it asks nobody who they are.
pub(crate) async fn log_in(
    target: &Target,
    remote: &Remote,
    wish: &Wish,
    context: &Context,
) -> Result<Option<Account>> {
    let store = find_store(context).ok_or_else(|| {
        Failure::not_asked("there is no folder to keep the login in")
            .hint("set HOME, or XDG_STATE_HOME")
    })?;
    // First of all: nobody should log in only to hear that the keyring is locked.
    if let Some(form) = form(wish) {
        store.keep_as(form).await?;
    }
    let form = store.form().await?;
    let door = knock(target, remote, context).await?;
    let fetch = Arc::new(FetchOnce::new(fetcher(&remote.url)?));
    let Some(way) = way(door, remote, wish, &fetch, context).await? else {
        return Ok(None);
    };
    let mut oauth = oauth(&remote.url, fetch, store, context)?
        .protocol_version(REVISION)
        .grant(way.grant)
        .interact(Person::new(wish, context));
    if let Some(scopes) = wanted(wish) {
        oauth = oauth.scopes(scopes);
    }
    let login = oauth.log_in(&way.challenges).await;
    let login = login.map_err(|failure| explained(&failure, context))?;
    try_out(target, remote, &oauth, context).await?;
    Ok(Some(account(&login, form)))
}

/// What a server says to somebody it does not know.
enum Door {
    /// Come in.
    Open,
    /// Who are you?
    Closed(Vec<Challenge>),
}

/// What is known before anybody is asked.
struct Way {
    challenges: Vec<Challenge>,
    grant: Grant,
}

/// Connects as nobody, to hear what the server says to that.
async fn knock(target: &Target, remote: &Remote, context: &Context) -> Result<Door> {
    let http = place::http(remote, context);
    match session::builder(target, context).connect(http).await {
        Ok(client) => {
            client.close().await;
            Ok(Door::Open)
        }
        Err(ConnectError::Unreachable(TransportError::Refused(refusal)))
            if matches!(refusal.status.as_u16(), 401 | 403) =>
        {
            // What cannot be read says nothing; the metadata may still be where it is usually kept.
            let header = refusal.challenge.as_deref().unwrap_or_default();
            Ok(Door::Closed(Challenge::parse(header).unwrap_or_default()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Chooses how to log in. A server that lets everybody in may still want more than that for some of what it does.
async fn way(
    door: Door,
    remote: &Remote,
    wish: &Wish,
    fetch: &FetchOnce,
    context: &Context,
) -> Result<Option<Way>> {
    let has_browser = !wish.no_browser && Person::has_browser(&context.environment);
    let challenges = match door {
        Door::Closed(challenges) if has_browser || wish.as_client => {
            let grant = grant(wish, false);
            return Ok(Some(Way { challenges, grant }));
        }
        Door::Closed(challenges) => Some(challenges),
        Door::Open => None,
    };
    let known = challenges.as_deref().unwrap_or_default();
    let found = discovery::discover(fetch, &remote.url, known, REVISION).await;
    let found = match (found, &challenges) {
        (Ok(found), Some(_)) => found,
        (Ok(found), None) if found.found == Found::Metadata => found,
        (Err(failure), Some(_)) => return Err(failure.into()),
        (_, None) => return Ok(None),
    };
    let knows_devices = found.server.device_authorization_endpoint.is_some();
    Ok(Some(Way {
        challenges: challenges.unwrap_or_default(),
        grant: grant(wish, knows_devices && !has_browser),
    }))
}

fn grant(wish: &Wish, on_another_device: bool) -> Grant {
    match (wish.as_client, on_another_device) {
        (true, _) => Grant::ClientCredentials,
        (false, true) => Grant::Device,
        (false, false) => Grant::Code,
    }
}

/// Returns how the user wants logins to be kept; nothing if as before.
fn form(wish: &Wish) -> Option<FileForm> {
    match (wish.keyring, wish.no_keyring) {
        (true, _) => Some(FileForm::Sealed),
        (false, true) => Some(FileForm::Plain),
        (false, false) => None,
    }
}

fn wanted(wish: &Wish) -> Option<Scopes> {
    let scopes = wish.scopes.iter().cloned();
    scopes.reduce(|all, more| all.union(&more))
}

/// Says what the options of the command can do about a failure.
fn explained(failure: &auth::Failure, context: &Context) -> Failure {
    let is_known = context.options.authorization.client_id.is_some();
    match failure.step() {
        Step::Registration if !is_known => Failure::from(failure).hint(
            "get a client id from whoever runs the authorization server, and use it with --client-id ID",
        ),
        _ => failure.into(),
    }
}

/// Sees whether the server takes what was given for it; a login that it does not take is not kept.
async fn try_out(target: &Target, remote: &Remote, oauth: &OAuth, context: &Context) -> Result {
    let http = place::http(remote, context).authorization(oauth.clone());
    let client = match session::builder(target, context).connect(http).await {
        Ok(client) => client,
        Err(error) => {
            if let ConnectError::Authorization(failure) = &error
                && failure.step() == Step::Use
            {
                oauth.log_out().await?;
            }
            return Err(error.into());
        }
    };
    client.close().await;
    Ok(())
}
