//! The metadata of the protected resource: where the refusal says, else below its path, else at the root.

use crate::{
    Challenge, Failure, ProtectedResource, Step,
    client::{safe_url, told},
    is_same_resource,
    place::Place,
    well_known,
};

use super::document::{Asking, Document};

const STEP: Step = Step::ResourceMetadata;

/// Finds the metadata of a server; `None` if it has none.
pub(super) async fn metadata(
    asking: &Asking<'_>,
    server_url: &str,
    challenges: &[Challenge],
) -> Result<Option<ProtectedResource>, Failure> {
    if let Some(url) = announced(challenges) {
        safe_url::check(url, STEP, "announced place of the metadata")?;
        let document = asking.document(url, STEP).await?;
        return read(&document, server_url).map(Some);
    }
    for url in well_known::protected_resource(server_url) {
        if let Some(document) = asking.probe(&url, STEP).await? {
            return read(&document, server_url).map(Some);
        }
    }
    Ok(None)
}

/// Where the refusal says that the metadata is.
fn announced(challenges: &[Challenge]) -> Option<&str> {
    let for_tokens = |challenge: &&Challenge| challenge.is("bearer") || challenge.is("dpop");
    let mut challenges = challenges.iter().filter(for_tokens);
    challenges.find_map(|challenge| challenge.parameter("resource_metadata"))
}

/// Reads metadata, and refuses it unless it is about the server that was asked.
fn read(document: &Document, server_url: &str) -> Result<ProtectedResource, Failure> {
    let metadata: ProtectedResource = serde_json::from_slice(&document.body).map_err(|error| {
        let error = told::shown(&error.to_string());
        document.refuse(
            STEP,
            format!("the metadata of the server cannot be read: {error}"),
        )
    })?;
    if !is_about(&metadata.resource, server_url) {
        let found = told::shown(&metadata.resource);
        let reason = format!("the metadata of `{server_url}` is about another server, `{found}`");
        return Err(document.refuse(STEP, reason).cure(
            "connect to the URL that the metadata names, if that is the one you mean; the server that answered may be after a token for it",
        ));
    }
    if metadata.authorization_servers.is_empty() {
        let reason = "the metadata of the server names nobody who gives tokens";
        return Err(document.refuse(STEP, reason));
    }
    Ok(metadata)
}

/// Whether a resource is this server, or a part of its origin in which it lies.
///
/// RFC 9728 wants the very URL; but the document at the root of an origin is about the origin, and the specification lets a
/// server be named by it. Never is it another origin or another path beside.
fn is_about(resource: &str, server_url: &str) -> bool {
    let Some(Place { origin, path, .. }) = Place::parse(server_url) else {
        return false;
    };
    let above = path.match_indices('/').map(|(at, _)| &path[..at]);
    let mut paths = above.chain([path]);
    is_same_resource(resource, server_url)
        || paths.any(|path| is_same_resource(resource, &format!("{origin}{path}")))
}
