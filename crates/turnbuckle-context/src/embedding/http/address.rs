//! The URL of the endpoint.

use hyper::Uri;

use super::EmbeddingError;

/// The URL of an endpoint, `…/embeddings`.
#[derive(Clone, Debug)]
pub(super) struct EndpointUrl(Uri);

impl EndpointUrl {
    pub(super) fn new(base: &str) -> Result<Self, EmbeddingError> {
        let base = base.trim().trim_end_matches('/');
        let base = base.strip_suffix("/embeddings").unwrap_or(base);
        if base.contains(['#', '?', '@', '\\']) {
            return Err(EmbeddingError::InvalidUrl);
        }
        let uri: Uri = format!("{base}/embeddings")
            .parse()
            .map_err(|_| EmbeddingError::InvalidUrl)?;
        let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
        match uri.host() {
            Some(host) if is_known && !host.is_empty() => Ok(Self(uri)),
            _ => Err(EmbeddingError::InvalidUrl),
        }
    }

    pub(super) fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    pub(super) fn uri(&self) -> Uri {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_may_end_as_people_write_it() {
        for base in [
            "http://localhost:1/v1",
            "http://localhost:1/v1/",
            " http://localhost:1/v1/embeddings ",
        ] {
            let address = EndpointUrl::new(base).unwrap();
            assert_eq!(
                address.uri().to_string(),
                "http://localhost:1/v1/embeddings"
            );
        }
        assert!(
            EndpointUrl::new("https://api.internal/v1")
                .unwrap()
                .is_https()
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for base in [
            "",
            "localhost:1",
            "ftp://host/v1",
            "http://",
            "http://ada:pw@host/v1",
            "http://host/v1?key=1",
            "http://ho st/",
        ] {
            assert!(
                matches!(EndpointUrl::new(base), Err(EmbeddingError::InvalidUrl)),
                "{base}"
            );
        }
    }
}
