//! The stateless lifecycle, since 2026-07-28: every request carries the revision, the client info and the capabilities.

use http::HeaderValue;
use serde::Serialize;
use turnbuckle_protocol::{
    Revision, VersionedPayload,
    meta::keys,
    types::{ClientCapabilities, DiscoverResult, Implementation},
};

use crate::{
    lifecycle::{Era, RevisionRules, TaskDesign},
    target::ServerInfo,
};

/// Returns the newest stateless revision that both sides support.
pub(super) fn newest_common(supported: &[String]) -> Option<Revision> {
    let revisions = supported.iter();
    revisions
        .filter_map(|name| Revision::stateless_from_name(name))
        .max()
}

/// Returns the rules for the requests of a client in a stateless revision.
pub(super) fn rules(
    revision: Revision,
    info: &Implementation,
    capabilities: &ClientCapabilities,
) -> RevisionRules {
    RevisionRules {
        revision,
        common_meta: common_meta(revision, info, capabilities),
        version_header: Some(HeaderValue::from_static(revision.as_str())),
        mcp_headers: true,
        drop_cancels: true,
        resumable: false,
        reissue_lost_requests: true,
        session: false,
        server_requests_allowed: false,
        has_result_type: true,
        log_level_per_request: true,
        listen_requests: true,
        has_ping: false,
        cache_hints: true,
        validate_output: true,
        roots_notifications: false,
        url_elicitation_required: false,
        tasks: TaskDesign::ServerDirected,
        completions_need_capability: true,
    }
}

/// Returns the `_meta` members that are the same in all requests.
pub(super) fn common_meta(
    revision: Revision,
    info: &Implementation,
    capabilities: &ClientCapabilities,
) -> String {
    let mut capabilities = capabilities.clone();
    capabilities.downgrade_to(revision);
    let version = json(&revision.as_str());
    let (info, capabilities) = (json(info), json(&capabilities));
    format!(
        r#""{}":{version},"{}":{info},"{}":{capabilities}"#,
        keys::PROTOCOL_VERSION,
        keys::CLIENT_INFO,
        keys::CLIENT_CAPABILITIES,
    )
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value)
        .expect("serializing strings and maps with string keys does not fail")
}

/// Converts the result of `server/discover`, which was sent in revision `from`.
pub(super) fn described(
    mut result: DiscoverResult,
    from: Revision,
    negotiated: Revision,
) -> ServerInfo {
    result.upgrade_from(from);
    ServerInfo {
        info: result.meta.server_info(),
        capabilities: result.capabilities,
        instructions: result.instructions,
        revision: negotiated,
        era: Era::Modern,
        supported_versions: result.supported_versions,
        meta: result.meta,
    }
}
