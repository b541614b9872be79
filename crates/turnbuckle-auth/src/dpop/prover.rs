//! The side that has the key.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    Secret,
    jwt::{SigningError, SigningKey, encode},
};

/// Makes a proof for each request that is sent.
#[derive(Clone, Debug)]
pub struct Prover {
    key: SigningKey,
}

impl Prover {
    /// Proves by a key.
    pub fn new(key: SigningKey) -> Self {
        Self { key }
    }

    /// Returns the key.
    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// Returns the hash that names the key: the `dpop_jkt` of a login, the `cnf.jkt` of a token.
    pub fn thumbprint(&self) -> String {
        self.key.thumbprint()
    }

    /// Makes the value of the `DPoP` header for one request, never to be used again.
    ///
    /// With the token that goes along, if one does, and with the nonce that the server wants, if it wants one. Of the URL, the
    /// query and the fragment are left out.
    pub fn proof(
        &self,
        method: &str,
        url: &str,
        token: Option<&Secret>,
        nonce: Option<&str>,
    ) -> Result<String, SigningError> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| SigningError::Randomness)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let url = url.split(['?', '#']).next().unwrap_or_default();
        let mut claims = Map::from_iter([
            ("jti".to_owned(), Value::from(encode(id))),
            ("htm".to_owned(), method.into()),
            ("htu".to_owned(), url.into()),
            ("iat".to_owned(), now.unwrap_or_default().as_secs().into()),
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

/// What a proof says about the token that goes along (`ath`).
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
        let prover = Prover::new(SigningKey::generate().unwrap());

        let proof = prover
            .proof(
                "POST",
                "https://a.example/mcp?x=1#y",
                // The token and its hash are the example of RFC 9449, section 7.1.
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
    fn without_token_and_nonce_neither_is_named_and_no_proof_is_like_another() {
        let prover = Prover::new(SigningKey::generate().unwrap());
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
