//! Headers that the user wants on every request, such as a token: sent, never shown.

use std::fmt;

use ::http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH,
        CONTENT_TYPE, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
    },
};

use super::url::Origin;

/// Who we are, for servers that refuse those who do not say.
const OURS: HeaderValue =
    HeaderValue::from_static(concat!("turnbuckle/", env!("CARGO_PKG_VERSION")));

/// For so many headers there is a place without looking for a larger one.
const ROOM: usize = 12;

/// The headers of every request; their values print as `***`.
#[derive(Clone)]
pub(crate) struct Headers {
    all: HeaderMap,
    /// Those of them that have no value yet: a request has one, or goes without.
    places: &'static [HeaderName],
}

/// Why a header cannot be sent with every request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHeader {
    /// The name is not one of HTTP.
    #[error("`{name}` is not the name of a header")]
    Name {
        /// The name.
        name: String,
    },
    /// The value has a line end or another control character in it.
    #[error("the value of the header `{name}` holds a character that no header can hold")]
    Value {
        /// The name; the value may be a secret.
        name: String,
    },
    /// The protocol itself decides about this header.
    #[error("the header `{name}` belongs to the protocol and cannot be set")]
    Reserved {
        /// The name.
        name: String,
    },
}

impl Headers {
    pub(crate) fn new() -> Self {
        Self {
            all: HeaderMap::from_iter([(USER_AGENT, OURS)]),
            places: &[],
        }
    }

    /// Says whom requests are for, and that we could unpack nothing: a small body that unpacks to a huge one would pass
    /// every limit.
    pub(super) fn address(&mut self, origin: &Origin) {
        if !self.all.contains_key(HOST) {
            self.all.insert(HOST, origin.host_header());
        }
        let identity = HeaderValue::from_static("identity");
        self.all.insert(ACCEPT_ENCODING, identity);
    }

    /// Adds a header; one of the same name stays, except for our own.
    pub(crate) fn add(&mut self, name: &str, value: &str) -> Result<(), BadHeader> {
        let owned = || name.to_owned();
        let key: HeaderName = name
            .parse()
            .map_err(|_| BadHeader::Name { name: owned() })?;
        if is_reserved(&key) {
            return Err(BadHeader::Reserved { name: owned() });
        }
        let value = HeaderValue::from_str(value);
        let mut value = value.map_err(|_| BadHeader::Value { name: owned() })?;
        value.set_sensitive(true);
        if key == USER_AGENT {
            self.all.remove(USER_AGENT);
        }
        self.all.append(key, value);
        Ok(())
    }

    /// Says whether there are credentials among them.
    pub(super) fn authorize(&self) -> bool {
        self.all.contains_key(AUTHORIZATION)
    }

    /// Makes the headers of one request: these, and its own, which win.
    pub(crate) fn with(&self, own: &[(HeaderName, HeaderValue)], length: usize) -> HeaderMap {
        let mut all = self.all.clone();
        for (name, value) in own {
            all.insert(name, value.clone());
        }
        for place in self.places {
            if !own.iter().any(|(name, _)| name == place) {
                all.remove(place);
            }
        }
        if let Some(place) = all.get_mut(CONTENT_LENGTH) {
            *place = length.into();
        }
        all
    }

    /// Adds what requests with a body have in common. They are copied then, which takes less than putting them together.
    ///
    /// What most of them have, each its own, gets a place, as their length does: if it were added later, all others would
    /// have to move.
    pub(crate) fn prepared(
        &self,
        common: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
        places: &'static [HeaderName],
    ) -> Self {
        let mut all = HeaderMap::with_capacity(ROOM);
        all.extend(self.all.clone());
        for place in self.places {
            all.remove(place);
        }
        all.insert(CONTENT_LENGTH, 0.into());
        for (name, value) in common {
            all.insert(name, value);
        }
        for place in places {
            all.insert(place, HeaderValue::from_static(""));
        }
        Self { all, places }
    }
}

/// The headers of one request: what was prepared for its kind, if anything was, and its own, which win.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestHeaders<'a> {
    pub(crate) prepared: Option<&'a Headers>,
    pub(crate) own: &'a [(HeaderName, HeaderValue)],
}

impl<'a> From<&'a [(HeaderName, HeaderValue)]> for RequestHeaders<'a> {
    fn from(own: &'a [(HeaderName, HeaderValue)]) -> Self {
        let prepared = None;
        Self { prepared, own }
    }
}

/// Says whether a header frames the message or says what we can read.
fn is_reserved(name: &HeaderName) -> bool {
    const OTHERS: [&str; 6] = [
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "last-event-id",
        "keep-alive",
    ];
    let framing = [
        ACCEPT,
        ACCEPT_ENCODING,
        CONNECTION,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        CONTENT_TYPE,
        EXPECT,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    framing.contains(name)
        || OTHERS.contains(&name.as_str())
        || name.as_str().starts_with("mcp-param-")
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.all.keys().map(|name| (name, "***"));
        f.debug_map().entries(hidden).finish()
    }
}

#[cfg(test)]
mod tests {
    use ::http::header::{FROM, RANGE};

    use super::*;

    #[test]
    fn values_are_never_shown() {
        let mut headers = Headers::new();
        headers.add("Authorization", "Bearer sesame").unwrap();
        headers.add("X-Key", "sesame").unwrap();

        let shown = format!("{headers:?} {headers:#?} {:?}", headers.with(&[], 0));

        assert!(shown.contains("x-key"));
        assert!(!shown.contains("sesame"), "{shown}");
    }

    #[test]
    fn what_no_header_can_be_is_refused_without_its_value() {
        let mut headers = Headers::new();

        let name = headers.add("X Key", "v").unwrap_err();
        let value = headers.add("X-Key", "sesame\r\nHost: evil").unwrap_err();

        assert!(matches!(name, BadHeader::Name { .. }));
        assert!(matches!(value, BadHeader::Value { .. }));
        assert!(!value.to_string().contains("sesame"));
    }

    #[test]
    fn the_protocol_keeps_its_own_headers() {
        for name in [
            "Content-Length",
            "ACCEPT",
            "Mcp-Session-Id",
            "Mcp-Param-City",
            "Last-Event-ID",
        ] {
            let refused = Headers::new().add(name, "1");
            assert!(matches!(refused, Err(BadHeader::Reserved { .. })), "{name}");
        }
    }

    #[test]
    fn a_request_keeps_what_it_says_itself() {
        let mut headers = Headers::new();
        headers.add("x-a", "1").unwrap();
        headers.add("x-a", "2").unwrap();
        headers.add("User-Agent", "mine").unwrap();
        let own = [(ACCEPT, HeaderValue::from_static("a/b"))];

        let all = headers.with(&own, 0);

        assert_eq!(all.get_all("x-a").iter().count(), 2);
        assert_eq!(all[USER_AGENT], "mine");
        assert_eq!(all.get_all(USER_AGENT).iter().count(), 1);
        assert_eq!(all[ACCEPT], "a/b");
    }

    #[test]
    fn what_is_prepared_is_as_if_it_were_said_each_time() {
        let mut headers = Headers::new();
        headers.add("x-a", "1").unwrap();
        headers.add("x-a", "2").unwrap();
        let value = HeaderValue::from_static;
        let prepared = headers.prepared(
            [(ACCEPT, value("a/b")), (CONTENT_TYPE, value("c/d"))],
            &[RANGE, FROM],
        );

        let all = prepared.with(&[(CONTENT_TYPE, value("e/f")), (FROM, value("me"))], 17);

        assert_eq!(all.get_all("x-a").iter().count(), 2);
        assert_eq!(all[ACCEPT], "a/b");
        assert_eq!(all[CONTENT_TYPE], "e/f");
        assert_eq!(all[CONTENT_LENGTH], "17");
        assert_eq!(all[FROM], "me");
        assert!(!all.contains_key(RANGE));
        assert!(!headers.with(&[], 17).contains_key(CONTENT_LENGTH));
    }
}
