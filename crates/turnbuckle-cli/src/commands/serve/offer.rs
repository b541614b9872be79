//! The server that is served.

use std::sync::Arc;
use std::time::Duration;

use turnbuckle_context::embedding::http::{ApiKey, HttpEmbedder};
use turnbuckle_context::memory::HalfLife;
use turnbuckle_context::{ContextServer, Library, Owners};
use turnbuckle_server::Server;
use turnbuckle_store::Store;

use super::config::{Embeddings, Limits};
use super::settings::Settings;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::memory;

/// Puts the context server together: for the user who runs it, or where callers are known, for each of them.
pub(super) fn server(settings: &Settings, context: &Context) -> Result<Server> {
    let owners = match settings.authorization {
        Some(_) => Owners::ByPrincipal,
        None => Owners::One(memory::owner(&context.environment)),
    };
    let mut server = ContextServer::new(library(settings)?, owners);
    if let Some(half_life) = settings.half_life {
        server = server.half_life(all_kinds(half_life));
    }
    if let Some(quota) = settings.quota {
        server = server.quota(quota.0);
    }
    if let Some(deadline) = settings.deadline {
        server = server.deadline(deadline);
    }
    if let Some(deadline) = settings.index_deadline {
        server = server.index_deadline(deadline);
    }
    if let Some(embeddings) = &settings.embeddings {
        server = server.embeddings(Arc::new(embedder(embeddings, context)?));
    }
    // Agents that were written after early documents are served too.
    let server = server.build().lenient(true);
    Ok(server.store(store(&settings.limits)))
}

/// Where sessions are kept, within the limits that the settings name.
fn store(limits: &Limits) -> Store {
    let mut all = turnbuckle_store::Limits::default();
    if let Some(most) = limits.max_sessions {
        all.sessions.max_sessions = most.get();
    }
    if let Some(most) = limits.max_sessions_per_caller {
        all.sessions.max_sessions_per_owner = most.get();
    }
    Store::memory_with(all)
}

fn embedder(embeddings: &Embeddings, context: &Context) -> Result<HttpEmbedder> {
    let embedder = HttpEmbedder::new(&embeddings.url, &embeddings.model)?;
    let Some(variable) = &embeddings.api_key_env else {
        return Ok(embedder);
    };
    let key = context.environment.var(variable).ok_or_else(|| {
        Failure::not_asked(format!(
            "the settings name {variable} for the key of the embeddings, and it is not set"
        ))
    })?;
    let key = ApiKey::new(key)
        .map_err(|problem| Failure::not_asked(format!("{variable} is no key: {problem}")))?;
    Ok(embedder.api_key(key))
}

/// The library in the folder for data, which is seen to be usable before anybody relies on it.
fn library(settings: &Settings) -> Result<Library> {
    let library = Library::new(&settings.data);
    library.prepare().map_err(|error| {
        Failure::from(error).hint("--data DIR keeps everything in another folder")
    })?;
    Ok(match &settings.roots {
        None => library,
        Some(roots) => library.within(roots.iter().cloned()),
    })
}

fn all_kinds(half_life: Duration) -> HalfLife {
    HalfLife {
        checkpoint: half_life,
        remediation: half_life,
        skill: half_life,
    }
}
