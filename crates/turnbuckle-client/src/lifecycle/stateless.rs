//! 2026-07-28: every request says its revision, who asks and what the client can do.

use http::HeaderValue;
use serde::Serialize;
use turnbuckle_protocol::Revision;
use turnbuckle_protocol::Versioned;
use turnbuckle_protocol::meta::keys;
use turnbuckle_protocol::types::{ClientCapabilities, DiscoverResult, Implementation};

use super::{Era, Rules, TaskDesign};
use crate::server::Server;

/// The revision of this way to live.
pub(super) const REVISION: Revision = Revision::V2026_07_28;

/// Makes the rules for requests of a client.
pub(super) fn rules(info: &Implementation, capabilities: &ClientCapabilities) -> Rules {
    let mut capabilities = capabilities.clone();
    capabilities.lower(REVISION);
    Rules {
        revision: REVISION,
        stamp: stamp(info, &capabilities),
        version_header: Some(HeaderValue::from_static(REVISION.as_str())),
        mirrored: true,
        drop_cancels: true,
        resumable: false,
        reissues: true,
        session: false,
        server_asks: false,
        result_type: true,
        log_level_per_request: true,
        listens: true,
        pings: false,
        caches: true,
        promises: true,
        roots_change: false,
        visits_first: false,
        tasks: TaskDesign::Offered,
        completions_declared: true,
    }
}

/// Writes the part of `_meta` that is the same in all requests.
fn stamp(info: &Implementation, capabilities: &ClientCapabilities) -> String {
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
    serde_json::to_string(value).expect("strings and maps with string keys are always JSON")
}

/// Reads what the server said when it was asked about itself.
pub(super) fn described(mut result: DiscoverResult) -> Server {
    result.raise(REVISION);
    Server {
        info: result.meta.server_info(),
        capabilities: result.capabilities,
        instructions: result.instructions,
        revision: REVISION,
        era: Era::Modern,
        supported: result.supported_versions,
    }
}
