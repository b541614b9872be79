//! What clients say about themselves with every request, read once.
//!
//! A cache of a pure function, text to profile: nothing of one request can be seen in another.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use serde::de::DeserializeOwned;
use turnbuckle_protocol::RpcError;
use turnbuckle_store::ClientProfile;

/// Places to remember a client; a server seldom meets more kinds at one time.
const PLACES: usize = 16;

/// Longer texts are read each time, so that what is remembered stays small.
const LONGEST: usize = 4 * 1024;

/// Profiles of clients that were met lately.
#[derive(Default)]
pub(crate) struct Clients {
    places: [ArcSwapOption<Known>; PLACES],
}

struct Known {
    info: Option<Box<str>>,
    capabilities: Box<str>,
    profile: Arc<ClientProfile>,
}

impl Clients {
    /// Returns what the raw `clientInfo` and `clientCapabilities` say.
    pub(crate) fn profile(
        &self,
        info: Option<&str>,
        capabilities: &str,
    ) -> Result<Arc<ClientProfile>, RpcError> {
        let length = info.map_or(0, str::len) + capabilities.len();
        let place = &self.places[length % PLACES];
        if let Some(known) = &*place.load()
            && known.info.as_deref() == info
            && *known.capabilities == *capabilities
        {
            return Ok(known.profile.clone());
        }
        let profile = Arc::new(read(info, capabilities)?);
        if length <= LONGEST {
            place.store(Some(Arc::new(Known {
                info: info.map(Into::into),
                capabilities: capabilities.into(),
                profile: profile.clone(),
            })));
        }
        Ok(profile)
    }
}

/// Reads what a client says about itself.
pub(crate) fn read(info: Option<&str>, capabilities: &str) -> Result<ClientProfile, RpcError> {
    Ok(ClientProfile {
        info: info.map(|raw| member("clientInfo", raw)).transpose()?,
        capabilities: member("clientCapabilities", capabilities)?,
    })
}

fn member<T: DeserializeOwned>(name: &str, raw: &str) -> Result<T, RpcError> {
    serde_json::from_str(raw)
        .map_err(|error| RpcError::invalid_params(format!("`{name}`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_one_place_are_told_apart() {
        let clients = Clients::default();
        let info = |name: &str| format!(r#"{{"name":"{name}","version":"1"}}"#);

        for name in ["one", "two", "one"] {
            let profile = clients.profile(Some(&info(name)), "{}").unwrap();
            assert_eq!(profile.info.as_ref().unwrap().name, name);
        }
        let able = clients
            .profile(Some(&info("one")), r#"{"roots":{}}"#)
            .unwrap();
        assert!(able.capabilities.roots.is_some());
    }

    #[test]
    fn who_says_the_same_shares_a_profile() {
        let clients = Clients::default();

        let one = clients.profile(None, "{}").unwrap();
        let two = clients.profile(None, "{}").unwrap();

        assert!(Arc::ptr_eq(&one, &two));
        assert!(clients.profile(None, "[]").is_err());
    }
}
