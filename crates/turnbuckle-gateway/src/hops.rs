//! The gateways that a request has passed, and those behind a server: they end requests in a ring of gateways.
//!
//! A gateway refuses to connect to a server behind which it finds itself. Two gateways that connect to each other at the
//! same time do not see that, so requests carry the ids of the gateways that they have passed.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};
use turnbuckle_protocol::{
    Meta, RpcError, json,
    jsonrpc::{Params, RawObject},
    types::JsonObject,
};

use crate::raw_json::ObjectWriter;

/// The member of `_meta` that counts the gateways of a request.
pub(crate) const HOPS: &str = "dev.turnbuckle/hops";
/// The member of `_meta` with the ids of gateways: those that a request has passed, and in `initialize` and
/// `server/discover` those that requests to a server can pass.
pub(crate) const GATEWAYS: &str = "dev.turnbuckle/gateways";

/// Maximum number of gateways that a request passes.
const MAX_HOPS: u64 = 8;
/// Maximum number of gateways behind a server that are remembered.
const MAX_GATEWAYS: usize = 64;
/// Maximum length of the id of a gateway.
const MAX_ID_BYTES: usize = 64;

/// Identifies a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GatewayId {
    id: Arc<str>,
    /// The hops of a request that has passed only this gateway.
    first: Hops,
}

impl GatewayId {
    /// Returns a new id, without information about the host.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut bytes = [0; 8];
        // Without randomness, ids are unique in this process only.
        let _ = getrandom::fill(&mut bytes);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let random = u64::from_le_bytes(bytes);
        let id = format!("{random:016x}{count:x}");
        Self {
            first: Hops::new(1, &[&id]),
            id: id.into(),
        }
    }

    /// Returns the value of [`GATEWAYS`] for a handshake: this gateway, and those behind it.
    pub(crate) fn handshake_value(&self, others: impl IntoIterator<Item = String>) -> Value {
        let mut ids = vec![self.id.to_string()];
        for id in others {
            if ids.len() < MAX_GATEWAYS && !ids.contains(&id) {
                ids.push(id);
            }
        }
        json!(ids)
    }

    /// Returns whether requests to a server can come back to this gateway.
    pub(crate) fn is_behind(&self, handshake: &Meta) -> bool {
        gateways(handshake).any(|id| id == &*self.id)
    }
}

/// Returns the gateways behind a server, by the `_meta` of its handshake.
pub(crate) fn gateways(handshake: &Meta) -> impl Iterator<Item = &str> {
    let ids = handshake.get(GATEWAYS).and_then(Value::as_array);
    let ids = ids.into_iter().flatten().filter_map(Value::as_str);
    ids.filter(|id| id.len() <= MAX_ID_BYTES).take(MAX_GATEWAYS)
}

/// The gateways that a request has passed, with this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hops {
    /// The members of `_meta`, as JSON text without braces.
    members: Arc<str>,
}

impl Hops {
    fn new(count: u64, passed: &[impl AsRef<str>]) -> Self {
        let passed: Vec<_> = passed.iter().map(AsRef::as_ref).collect();
        let mut meta = ObjectWriter::new();
        meta.member(HOPS, &count.to_string());
        meta.member(GATEWAYS, &json!(passed).to_string());
        Self {
            members: meta.into_members().into(),
        }
    }

    /// The hops of a request that a gateway sends without a request of a client.
    pub(crate) fn first(own: &GatewayId) -> Self {
        own.first.clone()
    }

    /// Adds this gateway to those of a request with this `_meta`. Returns an error if the request has passed too many
    /// gateways, or this one before.
    pub(crate) fn next(meta: &RawObject<'_>, own: &GatewayId) -> Result<Self, RpcError> {
        let count = meta.get(HOPS).and_then(|hops| hops.parse().ok());
        let count = count.unwrap_or(0_u64);
        if count == 0 {
            return Ok(Self::first(own));
        }
        let passed = meta.get(GATEWAYS);
        let passed: Option<Vec<String>> = passed.and_then(|passed| json::from_str(passed).ok());
        let mut passed = passed.unwrap_or_default();
        passed.retain(|id| id.len() <= MAX_ID_BYTES);
        let is_ring = passed.iter().any(|id| **id == *own.id);
        if count >= MAX_HOPS || is_ring {
            return Err(RpcError::internal(
                "the request has passed too many gateways, or this one before",
            ));
        }
        passed.truncate(usize::try_from(MAX_HOPS).unwrap_or_default());
        passed.push(own.id.to_string());
        Ok(Self::new(count + 1, &passed))
    }

    /// Like [`next`](Self::next), for a request with these parameters.
    pub(crate) fn of_request(params: &Params<'_>, own: &GatewayId) -> Result<Self, RpcError> {
        Self::next(&params.meta_object()?.unwrap_or_default(), own)
    }

    /// Returns the `_meta` of a request.
    pub(crate) fn to_meta(&self) -> Meta {
        let members = format!("{{{}}}", self.members);
        let members: JsonObject = json::from_str(&members).unwrap_or_default();
        let mut meta = Meta::new();
        for (name, value) in members {
            meta.insert_reserved(name, value);
        }
        meta
    }

    /// Returns the members of `_meta`, as JSON text without braces.
    pub(crate) fn members(&self) -> &str {
        &self.members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(meta: &str, own: &GatewayId) -> Result<String, RpcError> {
        let meta = RawObject::parse(meta)?;
        Hops::next(&meta, own).map(|hops| format!("{{{}}}", hops.members()))
    }

    #[test]
    fn a_request_passes_a_gateway_once_and_eight_in_all() {
        let own = GatewayId::new();
        let mut meta = next("{}", &own).unwrap();
        assert!(next(&meta, &own).is_err());
        for _ in 1..8 {
            meta = next(&meta, &GatewayId::new()).unwrap();
        }
        assert!(next(&meta, &GatewayId::new()).is_err());
    }

    #[test]
    fn malformed_members_are_ignored() {
        let own = GatewayId::new();
        for meta in [
            r#"{"dev.turnbuckle/hops":-1}"#,
            r#"{"dev.turnbuckle/hops":"x","dev.turnbuckle/gateways":{}}"#,
            r#"{"dev.turnbuckle/hops":2,"dev.turnbuckle/gateways":[[]]}"#,
        ] {
            assert!(next(meta, &own).is_ok(), "{meta}");
        }
        let long = vec!["x"; 1_000];
        let meta = json!({ HOPS: 1, GATEWAYS: long }).to_string();
        assert!(next(&meta, &own).unwrap().len() < 200);
    }

    #[test]
    fn the_gateways_behind_a_server_are_limited() {
        let own = GatewayId::new();
        let ids = own.handshake_value((0..1_000).map(|id| id.to_string()));
        assert_eq!(ids.as_array().unwrap().len(), MAX_GATEWAYS);
        let mut meta = Meta::new();
        meta.insert_reserved(GATEWAYS, ids);
        assert!(own.is_behind(&meta));
        assert!(!GatewayId::new().is_behind(&meta));
    }
}
