//! Builds the context server from the settings.

use std::{sync::Arc, time::Duration};

use turnbuckle_context::{
    ContextServer, DataDir, HalfLife, OwnershipPolicy, ToolSet, embedding::http::HttpEmbedder,
};
use turnbuckle_server::Server;
use turnbuckle_store::{Store, StoreLimits};

use super::config::{EmbeddingConfig, ServeLimits, ServeSettings, ToolSetOption};
use crate::{
    commands::database::Database,
    context::CommandContext,
    error::{CliError, Result},
    listener::log,
};

/// Builds the context server: with the data of the user who runs it, or of each authenticated caller. `database` has the memory,
/// unless it is in the data directory.
pub(super) fn build(
    settings: &ServeSettings,
    database: Option<&Database>,
    context: &CommandContext,
) -> Result<Server> {
    let owners = match settings.access.authorization {
        Some(_) => OwnershipPolicy::PerPrincipal,
        None => OwnershipPolicy::Single(super::super::context::owner(&context.environment)),
    };
    let tool_set = match settings.tools {
        ToolSetOption::All => ToolSet::All,
        ToolSetOption::Core => ToolSet::Core,
    };
    let mut server = ContextServer::new(data_dir(settings)?, owners)
        .tool_set(tool_set)
        .timing(log::operations());
    if let Some(database) = database {
        server = server.memory_store(database.store.clone());
    }
    if let Some(half_life) = settings.half_life {
        server = server.half_life(same_half_life(half_life));
    }
    if let Some(quota) = settings.quota {
        server = server.quota(quota.0);
    }
    if let Some(deadline) = settings.deadline {
        server = server.call_timeout(deadline);
    }
    if let Some(deadline) = settings.index_deadline {
        server = server.index_timeout(deadline);
    }
    if let Some(embeddings) = &settings.embeddings {
        server = server.embedder(Arc::new(embedder(embeddings, context)?));
    }
    // Also serves clients that were written for early drafts.
    let server = server.build().lenient(true);
    Ok(server.store(Store::memory_with(store_limits(&settings.limits))))
}

/// Returns the limits of the store, with those of the settings.
pub(super) fn store_limits(limits: &ServeLimits) -> StoreLimits {
    let mut all = StoreLimits::default();
    if let Some(max) = limits.max_sessions {
        all.sessions.max_sessions = max.get();
    }
    if let Some(max) = limits.max_sessions_per_caller {
        all.sessions.max_sessions_per_owner = max.get();
    }
    all
}

fn embedder(embeddings: &EmbeddingConfig, context: &CommandContext) -> Result<HttpEmbedder> {
    let embedder = HttpEmbedder::new(&embeddings.url, &embeddings.model)?;
    let Some(variable) = &embeddings.api_key_env else {
        return Ok(embedder);
    };
    let key = context.environment.var(variable).ok_or_else(|| {
        CliError::could_not_run(format!(
            "the environment variable {variable} with the embeddings API key is not set"
        ))
    })?;
    embedder.api_key(key).map_err(|problem| {
        CliError::could_not_run(format!("{variable} is not a valid API key: {problem}"))
    })
}

/// Opens the data directory, and checks that it is usable.
fn data_dir(settings: &ServeSettings) -> Result<DataDir> {
    let library = DataDir::new(&settings.data);
    library.prepare().map_err(|error| {
        CliError::from(error).hint("use --data DIR to store data in another directory")
    })?;
    Ok(match &settings.roots {
        None => library,
        Some(roots) => library.restrict_to(roots.iter().cloned()),
    })
}

fn same_half_life(half_life: Duration) -> HalfLife {
    HalfLife {
        checkpoint: half_life,
        remediation: half_life,
        skill: half_life,
    }
}
