//! The stateless lifecycle, 2026-07-28: every request carries the revision, the client info and the capabilities.

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

/// The revision of this lifecycle.
pub(super) const REVISION: Revision = Revision::V2026_07_28;

/// Returns the rules for the requests of a client.
pub(super) fn rules(info: &Implementation, capabilities: &ClientCapabilities) -> RevisionRules {
    let mut capabilities = capabilities.clone();
    capabilities.downgrade_to(REVISION);
    RevisionRules {
        revision: REVISION,
        common_meta: common_meta(info, &capabilities),
        version_header: Some(HeaderValue::from_static(REVISION.as_str())),
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
fn common_meta(info: &Implementation, capabilities: &ClientCapabilities) -> String {
    let version = json(&REVISION.as_str());
    let (info, capabilities) = (json(info), json(capabilities));
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

/// Converts the result of `server/discover`.
pub(super) fn described(mut result: DiscoverResult) -> ServerInfo {
    result.upgrade_from(REVISION);
    ServerInfo {
        info: result.meta.server_info(),
        capabilities: result.capabilities,
        instructions: result.instructions,
        revision: REVISION,
        era: Era::Modern,
        supported_versions: result.supported_versions,
    }
}
