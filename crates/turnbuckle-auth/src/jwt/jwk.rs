//! Public keys (JWK and JWKS, RFC 7517) and their thumbprints (RFC 7638).

use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use turnbuckle_protocol::json;

use super::{SignatureAlgorithm, decode};

/// A public key.
#[derive(Clone, Debug)]
pub struct Jwk {
    id: Option<String>,
    /// The only algorithm the key may be used with, if it names one.
    algorithm: Option<SignatureAlgorithm>,
    material: KeyMaterial,
    thumbprint: String,
}

#[derive(Clone, Debug)]
enum KeyMaterial {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Reason why a JWK cannot verify signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJwk {
    /// The key type or curve is not supported.
    #[error("the key type is not supported")]
    UnsupportedKeyType,
    /// A member is missing or invalid.
    #[error("the key is incomplete")]
    Incomplete,
    /// An RSA key of fewer than 2048 or more than 8192 bits.
    #[error("an RSA key must have 2048 to 8192 bits")]
    Length,
    /// The key is declared for another use or algorithm.
    #[error("the key is not for signatures")]
    Purpose,
    /// The JWK contains a private key.
    #[error("the key is not public")]
    Private,
}

impl Jwk {
    /// Parses a public key: RSA, EC on P-256 or P-384, or Ed25519.
    pub fn parse(jwk: &Map<String, Value>) -> Result<Self, InvalidJwk> {
        // `k` is a shared secret; the others are members of private keys.
        if ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]
            .iter()
            .any(|name| jwk.contains_key(*name))
        {
            return Err(InvalidJwk::Private);
        }
        if !is_for_signatures(jwk) {
            return Err(InvalidJwk::Purpose);
        }
        let material = KeyMaterial::parse(jwk)?;
        let algorithm = match jwk.get("alg") {
            None => None,
            Some(name) => {
                let algorithm = name.as_str().and_then(|name| name.parse().ok());
                Some(
                    algorithm
                        .filter(|it| material.supports(*it))
                        .ok_or(InvalidJwk::Purpose)?,
                )
            }
        };
        Ok(Self {
            id: jwk.get("kid").and_then(Value::as_str).map(str::to_owned),
            algorithm,
            material,
            thumbprint: thumbprint(jwk).ok_or(InvalidJwk::UnsupportedKeyType)?,
        })
    }

    /// Returns the key id (`kid`).
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the thumbprint (RFC 7638).
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Returns whether the key can verify signatures of this algorithm.
    pub fn supports(&self, algorithm: SignatureAlgorithm) -> bool {
        self.material.supports(algorithm) && self.algorithm.is_none_or(|own| own == algorithm)
    }

    /// Verifies a signature. Returns `false` if the key does not [support](Self::supports) the algorithm.
    pub fn verify(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        self.supports(algorithm) && self.material.verify(algorithm, message, signature)
    }
}

impl KeyMaterial {
    fn parse(jwk: &Map<String, Value>) -> Result<Self, InvalidJwk> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let part = |name| text(name).and_then(decode).ok_or(InvalidJwk::Incomplete);
        match (text("kty"), text("crv")) {
            (Some("RSA"), _) => rsa(&part("n")?, &part("e")?),
            (Some("EC"), Some("P-256")) => {
                point(32, &part("x")?, &part("y")?).map(KeyMaterial::P256)
            }
            (Some("EC"), Some("P-384")) => {
                point(48, &part("x")?, &part("y")?).map(KeyMaterial::P384)
            }
            (Some("OKP"), Some("Ed25519")) => match part("x")? {
                x if x.len() == 32 => Ok(KeyMaterial::Ed25519(x)),
                _ => Err(InvalidJwk::Incomplete),
            },
            _ => Err(InvalidJwk::UnsupportedKeyType),
        }
    }

    fn supports(&self, algorithm: SignatureAlgorithm) -> bool {
        match self {
            KeyMaterial::Rsa { .. } => rsa_scheme(algorithm).is_some(),
            KeyMaterial::P256(_) => algorithm == SignatureAlgorithm::Es256,
            KeyMaterial::P384(_) => algorithm == SignatureAlgorithm::Es384,
            KeyMaterial::Ed25519(_) => algorithm == SignatureAlgorithm::EdDsa,
        }
    }

    fn verify(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        let unparsed = |scheme: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(scheme, key).verify(message, signature)
        };
        let verified = match self {
            KeyMaterial::Rsa { n, e } => {
                let Some(scheme) = rsa_scheme(algorithm) else {
                    return false;
                };
                RsaPublicKeyComponents { n, e }.verify(scheme, message, signature)
            }
            KeyMaterial::P256(point) => unparsed(&signature::ECDSA_P256_SHA256_FIXED, point),
            KeyMaterial::P384(point) => unparsed(&signature::ECDSA_P384_SHA384_FIXED, point),
            KeyMaterial::Ed25519(key) => unparsed(&signature::ED25519, key),
        };
        verified.is_ok()
    }
}

/// Returns whether the key may verify signatures; a key without `use` and `key_ops` may.
fn is_for_signatures(jwk: &Map<String, Value>) -> bool {
    let usage = jwk.get("use").is_none_or(|usage| usage == "sig");
    let operations = jwk.get("key_ops").is_none_or(|operations| {
        let operations = operations.as_array().map(Vec::as_slice).unwrap_or_default();
        operations.iter().any(|operation| operation == "verify")
    });
    usage && operations
}

fn rsa(n: &[u8], e: &[u8]) -> Result<KeyMaterial, InvalidJwk> {
    // Some issuers write a leading zero byte, as ASN.1 does.
    let [n, e] = [n, e].map(|number| {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        number[zeros..].to_vec()
    });
    let bits = match n.first() {
        Some(first) => n.len() * 8 - first.leading_zeros() as usize,
        None => 0,
    };
    if (2048..=8192).contains(&bits) && !e.is_empty() {
        Ok(KeyMaterial::Rsa { n, e })
    } else {
        Err(InvalidJwk::Length)
    }
}

/// Encodes a point in uncompressed form, as `ring` expects it.
fn point(length: usize, x: &[u8], y: &[u8]) -> Result<Vec<u8>, InvalidJwk> {
    if x.len() == length && y.len() == length {
        Ok([&[4], x, y].concat())
    } else {
        Err(InvalidJwk::Incomplete)
    }
}

fn rsa_scheme(algorithm: SignatureAlgorithm) -> Option<&'static signature::RsaParameters> {
    Some(match algorithm {
        SignatureAlgorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        SignatureAlgorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        SignatureAlgorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        SignatureAlgorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
        SignatureAlgorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
        SignatureAlgorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
        SignatureAlgorithm::Es256 | SignatureAlgorithm::Es384 | SignatureAlgorithm::EdDsa => {
            return None;
        }
    })
}

/// The public keys of an issuer.
#[derive(Clone, Debug, Default)]
pub struct Jwks {
    keys: Vec<Jwk>,
}

/// Reason why a key set is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJwks {
    /// More than [`Jwks::MAX_BYTES`] or [`Jwks::MAX_KEYS`].
    #[error(
        "a key set has at most {} bytes and {} keys",
        Jwks::MAX_BYTES,
        Jwks::MAX_KEYS
    )]
    TooLarge,
    /// Not JSON of the expected shape.
    #[error("invalid key set: {0}")]
    InvalidJson(String),
}

impl Jwks {
    /// Maximum size of a key set, in bytes.
    pub const MAX_BYTES: usize = 512 * 1024;
    /// Maximum number of keys in a set.
    pub const MAX_KEYS: usize = 100;
    /// Maximum number of keys that are tried for one token.
    const MAX_TRIED: usize = 8;

    /// Parses a key set. Keys that cannot verify signatures are skipped.
    pub fn parse(json: &[u8]) -> Result<Self, InvalidJwks> {
        #[derive(Deserialize)]
        struct KeySetJson {
            keys: Vec<Map<String, Value>>,
        }

        if json.len() > Self::MAX_BYTES {
            return Err(InvalidJwks::TooLarge);
        }
        let set: KeySetJson =
            json::from_slice(json).map_err(|error| InvalidJwks::InvalidJson(error.to_string()))?;
        if set.keys.len() > Self::MAX_KEYS {
            return Err(InvalidJwks::TooLarge);
        }
        let keys = set.keys.iter().filter_map(|key| Jwk::parse(key).ok());
        Ok(keys.collect())
    }

    /// Iterates over the keys.
    pub fn iter(&self) -> impl Iterator<Item = &Jwk> {
        self.keys.iter()
    }

    /// Returns whether a key has this id.
    pub fn contains(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id() == Some(id))
    }

    /// Returns the keys that may have signed a token with this key id and algorithm, limited to a few.
    ///
    /// Keys without an id always match, and all keys match if the token names none.
    pub fn candidates(
        &self,
        id: Option<&str>,
        algorithm: SignatureAlgorithm,
    ) -> impl Iterator<Item = &Jwk> {
        self.keys
            .iter()
            .filter(move |key| id.is_none() || key.id().is_none() || key.id() == id)
            .filter(move |key| key.supports(algorithm))
            .take(Self::MAX_TRIED)
    }
}

impl FromIterator<Jwk> for Jwks {
    fn from_iter<I: IntoIterator<Item = Jwk>>(keys: I) -> Self {
        let keys = keys.into_iter().collect();
        Self { keys }
    }
}

/// Returns the thumbprint of a JWK (RFC 7638): the hash of its required members. `None` if the key type is unknown.
pub(crate) fn thumbprint(jwk: &Map<String, Value>) -> Option<String> {
    let members: &[&str] = match jwk.get("kty")?.as_str()? {
        "EC" => &["crv", "kty", "x", "y"],
        "OKP" => &["crv", "kty", "x"],
        "RSA" => &["e", "kty", "n"],
        _ => return None,
    };
    let written: Option<Vec<String>> = members
        .iter()
        .map(|name| {
            Some(format!(
                "\"{name}\":{}",
                Value::from(jwk.get(*name)?.as_str()?)
            ))
        })
        .collect();
    let canonical = format!("{{{}}}", written?.join(","));
    Some(super::encode(Sha256::digest(canonical)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thumbprint_is_that_of_rfc_7638() {
        // Examples of RFC 7638, section 3.1, and RFC 8037, appendix A.3.
        let rsa = serde_json::json!({
            "kid": "2011-04-29", "alg": "RS256", "e": "AQAB", "kty": "RSA",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        });
        let ed25519 = serde_json::json!({
            "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        });

        for (key, expected) in [
            (rsa, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"),
            (ed25519, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"),
        ] {
            assert_eq!(
                thumbprint(key.as_object().unwrap()).as_deref(),
                Some(expected)
            );
        }
    }
}
