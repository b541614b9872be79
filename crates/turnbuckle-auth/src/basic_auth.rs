//! The HTTP Basic header of OAuth clients.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use turnbuckle_text::percent::encode_component;

use crate::Secret;

/// Returns the `Authorization` header of `client_secret_basic` (RFC 6749, section 2.3.1). Id and secret are
/// form-encoded before they are joined.
pub(crate) fn basic_auth_header(id: &str, secret: &Secret) -> Secret {
    let (id, secret) = (encode_component(id), encode_component(secret.expose()));
    Secret::new(format!(
        "Basic {}",
        STANDARD.encode(format!("{id}:{secret}"))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_in_a_secret_is_encoded() {
        let header = basic_auth_header("desk", &Secret::new("a:b c"));

        assert_eq!(
            header.expose(),
            format!("Basic {}", STANDARD.encode("desk:a%3Ab%20c"))
        );
    }
}
