//! PKCE (RFC 7636), with the method `S256` only.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use crate::Secret;

/// A code verifier for the token request, and its hash for the authorization request.
#[derive(Clone, Debug)]
pub struct Pkce {
    verifier: Secret,
}

impl Pkce {
    /// Creates a verifier of 256 random bits.
    ///
    /// Fails if the operating system cannot provide randomness.
    pub fn random() -> std::io::Result<Pkce> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(Pkce::from_verifier(URL_SAFE_NO_PAD.encode(bytes)))
    }

    fn from_verifier(verifier: String) -> Pkce {
        let verifier = Secret::new(verifier);
        Pkce { verifier }
    }

    /// Returns the `code_verifier`, which is sent only in the token request.
    pub fn verifier(&self) -> &Secret {
        &self.verifier
    }

    /// Returns the `code_challenge` for the authorization request.
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        // Example of RFC 7636, appendix B.
        let pkce = Pkce::from_verifier("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into());

        assert_eq!(
            pkce.challenge(),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }

    #[test]
    fn each_verifier_is_random_of_allowed_length_and_not_printed() {
        let (one, other) = (Pkce::random().unwrap(), Pkce::random().unwrap());
        let verifier = one.verifier().expose();

        assert_ne!(verifier, other.verifier().expose());
        assert!((43..=128).contains(&verifier.len()), "{verifier}");
        assert!(!format!("{one:?}").contains(verifier));
    }
}
