//! Sender-constrained tokens (DPoP, RFC 9449): each request carries a proof that the sender has the key of the token.
//!
//! [`DpopProver`] creates proofs, [`ProofVerifier`] checks them.

mod replay_cache;
mod verifier;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
pub use verifier::{ExpectedProof, InvalidProof, ProofVerifier};

use crate::{
    Secret,
    jwt::{SigningError, SigningKey, encode},
    unix_time,
};

/// Creates a proof for each request.
#[derive(Clone, Debug)]
pub struct DpopProver {
    key: SigningKey,
}

impl DpopProver {
    /// Creates a prover for a key.
    pub fn new(key: SigningKey) -> Self {
        Self { key }
    }

    /// Returns the key.
    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// Returns the thumbprint of the key: the `dpop_jkt` of an authorization request, the `cnf.jkt` of a token.
    pub fn thumbprint(&self) -> String {
        self.key.thumbprint()
    }

    /// Creates the value of the `DPoP` header for one request; it must not be reused.
    ///
    /// `token` is the access token of the request, if any; `nonce` is the nonce that the server requires, if any. The
    /// query and the fragment of the URL are not part of the proof.
    pub fn proof(
        &self,
        method: &str,
        url: &str,
        token: Option<&Secret>,
        nonce: Option<&str>,
    ) -> Result<String, SigningError> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| SigningError::Randomness)?;
        let url = url.split(['?', '#']).next().unwrap_or_default();
        let mut claims = Map::from_iter([
            ("jti".to_owned(), Value::from(encode(id))),
            ("htm".to_owned(), method.into()),
            ("htu".to_owned(), url.into()),
            ("iat".to_owned(), unix_time::now().into()),
        ]);
        if let Some(token) = token {
            claims.insert("ath".to_owned(), token_hash(token.expose()).into());
        }
        if let Some(nonce) = nonce {
            claims.insert("nonce".to_owned(), nonce.into());
        }
        let header = Map::from_iter([
            ("typ".to_owned(), json!("dpop+jwt")),
            ("jwk".to_owned(), self.key.public_jwk().into()),
        ]);
        self.key.sign(header, &claims)
    }
}

/// Returns the token hash of a proof (`ath`).
pub(crate) fn token_hash(token: &str) -> String {
    encode(Sha256::digest(token))
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

    use super::*;

    fn parts(proof: &str) -> [Value; 2] {
        let mut parts = proof
            .split('.')
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap());
        [parts.next().unwrap(), parts.next().unwrap()]
    }

    #[test]
    fn a_proof_names_the_key_the_request_the_token_and_the_nonce() {
        let prover = DpopProver::new(SigningKey::generate().unwrap());

        let proof = prover
            .proof(
                "POST",
                "https://a.example/mcp?x=1#y",
                // Token and hash of the example in RFC 9449, section 7.1.
                Some(&Secret::new("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU")),
                Some("nonce-1"),
            )
            .unwrap();

        let [header, claims] = parts(&proof);
        assert_eq!(header["typ"], "dpop+jwt");
        assert_eq!(header["alg"], "ES256");
        assert_eq!(header["jwk"], Value::from(prover.key().public_jwk()));
        assert_eq!(claims["htm"], "POST");
        assert_eq!(claims["htu"], "https://a.example/mcp");
        assert_eq!(claims["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
        assert_eq!(claims["nonce"], "nonce-1");
    }

    #[test]
    fn token_and_nonce_are_optional_and_each_proof_is_unique() {
        let prover = DpopProver::new(SigningKey::generate().unwrap());
        let proof = || {
            prover
                .proof("GET", "https://a.example", None, None)
                .unwrap()
        };

        let ([_, one], [_, other]) = (parts(&proof()), parts(&proof()));

        assert_eq!((one.get("ath"), one.get("nonce")), (None, None));
        assert_ne!(one["jti"], other["jti"]);
        assert_eq!(one["jti"].as_str().unwrap().len(), 22);
    }
}
